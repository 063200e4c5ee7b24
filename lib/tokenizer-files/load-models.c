/* SPDX-License-Identifier: MIT */
/* Reads the models of tokenizer.json: BPE, WordPiece, WordLevel, Unigram. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "token/replaced-bytes.h"
#include "tokenizer-files/load-unigram.h"
#include "tokenizer-files/tokenizer-file.h"
#include "json/json.h"

static int read_vocabulary(struct dt_tokenizer *t, struct json_object *model,
                           struct json_object *added, const char *path, struct dt_error *err)
{
    struct json_object *vocabulary;
    DT_TRY(dt_json_get(model, "vocab", json_type_object, path, &vocabulary, err));
    return dt_tokenizer_add_vocabulary(t, vocabulary, added, path, err);
}

/* The unknown token, if the model defines one. */
static int read_unknown(struct dt_tokenizer *t, struct json_object *model, const char *path,
                        struct dt_error *err)
{
    const char *unknown;
    if (json_object_object_get(model, "unk_token") == NULL)
        return 0;
    DT_TRY(dt_json_get_string(model, "unk_token", path, &unknown, err));
    t->unknown = dt_tokenizer_find(t, unknown, strlen(unknown));
    return t->unknown != DT_NO_TOKEN
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: the unknown token '%s' is not in the vocabulary",
                         path, unknown);
}

/* --- BPE ---------------------------------------------------------------------------------------
 */

/* Refuses a member, unsupported by dt, unless it is absent, null, false or empty. */
static int refuse_member(struct json_object *object, const char *name, const char *location,
                         struct dt_error *err)
{
    struct json_object *value = json_object_object_get(object, name);
    if (value == NULL ||
        (json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value)))
        return 0;
    if (json_object_is_type(value, json_type_string) && json_object_get_string_len(value) == 0)
        return 0;
    if (json_object_is_type(value, json_type_double) && json_object_get_double(value) == 0)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: \"%s\": %.64s is not supported", location, name,
                   dt_json_text(value));
}

static int add_merge(struct dt_tokenizer *t, struct json_object *merge, const char *location,
                     struct dt_error *err)
{
    if (json_object_is_type(merge, json_type_string))
        return dt_tokenizer_add_merge_line(
            t, dt_json_text(merge), (size_t)json_object_get_string_len(merge), location, err);
    bool is_pair = json_object_is_type(merge, json_type_array) &&
                   json_object_array_length(merge) == 2 &&
                   json_object_is_type(json_object_array_get_idx(merge, 0), json_type_string) &&
                   json_object_is_type(json_object_array_get_idx(merge, 1), json_type_string);
    if (!is_pair)
        return dt_fail(err, DT_EFORMAT, "%s: is neither \"left right\" nor [\"left\", \"right\"]",
                       location);
    struct json_object *left = json_object_array_get_idx(merge, 0);
    struct json_object *right = json_object_array_get_idx(merge, 1);
    return dt_tokenizer_add_spelled_merge(
        t, dt_json_text(left), (size_t)json_object_get_string_len(left), dt_json_text(right),
        (size_t)json_object_get_string_len(right), location, err);
}

static int add_merges(struct dt_tokenizer *t, struct json_object *merges, const char *path,
                      struct dt_error *err)
{
    char location[DT_ERROR_TEXT];
    for (size_t i = 0; i < json_object_array_length(merges); i++) {
        snprintf(location, sizeof location, "%s: merge %zu", path, i + 1);
        DT_TRY(add_merge(t, json_object_array_get_idx(merges, i), location, err));
    }
    return 0;
}

/* A copy of a string that is absent, null or empty in most files: then NULL. */
static int read_affix(char **affix, struct json_object *model, const char *name, const char *path,
                      struct dt_error *err)
{
    const char *text;
    if (json_object_object_get(model, name) == NULL)
        return 0;
    DT_TRY(dt_json_get_string(model, name, path, &text, err));
    *affix = *text ? dt_strdup(text) : NULL;
    return 0;
}

/* Whether byte-level tokens lack bytes of UTF-8, as StarCoder's do: `tokenizers` takes those for
 * unknown characters. */
static bool drops_bytes(const struct dt_tokenizer *t)
{
    bool drops = false;
    for (int c = 0; t->byte_level && c < 256; c++)
        drops |=
            !dt_replaced_bytes_is(c) && dt_tokenizer_find(t, &(char){(char)c}, 1) == DT_NO_TOKEN;
    return drops;
}

static int read_bpe(struct dt_tokenizer *t, struct json_object *model, const char *path,
                    struct dt_error *err)
{
    struct json_object *merges;
    DT_TRY(refuse_member(model, "dropout", path, err));
    DT_TRY(read_affix(&t->rules.prefix, model, "continuing_subword_prefix", path, err));
    DT_TRY(read_affix(&t->rules.suffix, model, "end_of_word_suffix", path, err));
    DT_TRY(dt_json_get(model, "merges", json_type_array, path, &merges, err));
    t->drops_bytes = drops_bytes(t);
    if (!dt_vocabulary_is_plain_bytes(t))
        DT_TRY(read_unknown(t, model, path, err));
    t->rules.byte_fallback = dt_step_flag(model, "byte_fallback", false);
    if (t->drops_bytes && t->rules.byte_fallback)
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"byte_fallback\" is not supported with the pre_tokenizer ByteLevel "
                       "and tokens that lack bytes",
                       path);
    if (t->rules.byte_fallback && (t->rules.prefix || t->rules.suffix))
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"byte_fallback\" is not supported with affixes, whose bytes "
                       "`tokenizers` spells",
                       path);
    t->rules.fuse_unknown = dt_step_flag(model, "fuse_unk", false);
    t->ignore_merges = dt_step_flag(model, "ignore_merges", false);
    return add_merges(t, merges, path, err);
}

/* --- WordPiece, WordLevel ----------------------------------------------------------------------
 */

static int read_word_piece(struct dt_tokenizer *t, struct json_object *model, const char *path,
                           struct dt_error *err)
{
    const char *prefix;
    int64_t longest;
    DT_TRY(dt_json_get_string(model, "continuing_subword_prefix", path, &prefix, err));
    if (strcmp(prefix, "##") != 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"continuing_subword_prefix\": \"%s\" is not supported", path, prefix);
    DT_TRY(dt_json_get_int(model, "max_input_chars_per_word", path, &longest, err));
    if (longest < 1 || longest > 1000)
        return dt_fail(err, DT_EFORMAT, "%s: \"max_input_chars_per_word\" is not 1 to 1000", path);
    t->max_word_chars = (uint32_t)longest;
    DT_TRY(read_unknown(t, model, path, err));
    return t->unknown != DT_NO_TOKEN
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: member \"unk_token\" is missing", path);
}

static int read_word_level(struct dt_tokenizer *t, struct json_object *model, const char *path,
                           struct dt_error *err)
{
    DT_TRY(read_unknown(t, model, path, err));
    return t->unknown != DT_NO_TOKEN
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: member \"unk_token\" is missing", path);
}

static const struct dt_model_format formats[] = {
    {"BPE", DT_TOKEN_BPE_MERGES, read_vocabulary, read_bpe},
    {"WordPiece", DT_TOKEN_WORD_PIECE, read_vocabulary, read_word_piece},
    {"WordLevel", DT_TOKEN_WORD_LEVEL, read_vocabulary, read_word_level},
    {"Unigram", DT_TOKEN_UNIGRAM, dt_unigram_read_vocabulary, dt_unigram_read_json},
};

const struct dt_model_format *dt_model_format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
