/* SPDX-License-Identifier: MIT */
/* Reads Hugging Face's tokenizer.json. Refuses by name every unknown component that would change
 * the ids: a wrong id is worse than none. */
#include "json/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "gguf/gguf-tokenizer.h"
#include "pretokenize/character.h"
#include "steps/byte-steps.h"
#include "tokenizer-files/tokenizer-file.h"

/* --- normalizer, pre-tokenizer and decoder -----------------------------------------------------
 */

/* Replaces the steps by a compiled pattern that does the same, if there is one. */
static void use_compiled(struct dt_tokenizer *t)
{
    t->nfc = dt_steps_are_only(&t->normalizer, "NFC");
    t->pattern = dt_byte_steps_find_pattern(&t->splitter);
    t->has_steps = t->pattern == NULL || (t->normalizer.count > 0 && !t->nfc);
    if (t->has_steps) {
        t->nfc = false;
        t->pattern = NULL;
        return;
    }
    dt_steps_release(&t->normalizer);
    dt_steps_release(&t->splitter);
}

/* The decoder must agree with the pre-tokenizer: steps before ByteLevel would see its alphabet. */
static int check_byte_level(struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    const struct dt_steps *d = &t->decoder;
    bool decodes = d->count == 0 || strcmp(d->items[0].type->name, "ByteLevel") == 0;
    DT_TRY(dt_byte_steps_settle(&t->splitter, &t->byte_level, path, err));
    if (t->byte_level && !decodes)
        return dt_fail(err, DT_EFORMAT,
                       "%s: decoder %s is not supported with the pre_tokenizer ByteLevel", path,
                       d->items[0].type->name);
    if (!t->byte_level)
        dt_byte_steps_settle_decoder(&t->decoder);
    return 0;
}

/* A pattern that the user chose replaces the pre-tokenizer. */
static int choose_pattern(struct dt_tokenizer *t, const struct dt_pattern *pattern,
                          const char *path, struct dt_error *err)
{
    if (t->normalizer.count > 0 && !dt_steps_are_only(&t->normalizer, "NFC"))
        return dt_fail(err, DT_EINVALID, "%s: --pattern is not supported with normalizer %s", path,
                       t->normalizer.items[0].type->name);
    t->nfc = t->normalizer.count > 0;
    t->pattern = pattern;
    dt_steps_release(&t->normalizer);
    dt_steps_release(&t->splitter);
    return 0;
}

/* Drops the decoders of byte-level tokens that change nothing. */
static void use_bytes(struct dt_tokenizer *t)
{
    if (t->byte_level && dt_steps_are_only(&t->decoder, "ByteLevel"))
        dt_steps_release(&t->decoder);
}

static int read_steps(struct dt_tokenizer *t, struct json_object *root,
                      const struct dt_pattern *pattern, const char *path, struct dt_error *err)
{
    DT_TRY(dt_steps_read(&t->normalizer, DT_STEPS_NORMALIZER,
                         json_object_object_get(root, "normalizer"), path, err));
    DT_TRY(dt_steps_read(&t->decoder, DT_STEPS_DECODER, json_object_object_get(root, "decoder"),
                         path, err));
    if (pattern == NULL)
        DT_TRY(dt_steps_read(&t->splitter, DT_STEPS_PRE_TOKENIZER,
                             json_object_object_get(root, "pre_tokenizer"), path, err));
    if (pattern == NULL)
        DT_TRY(check_byte_level(t, path, err));
    use_bytes(t);
    if (pattern)
        return choose_pattern(t, pattern, path, err);
    use_compiled(t);
    return 0;
}

/* --- BERT's rules, which are compiled -----------------------------------------------------------
 */

static bool is_bert(struct json_object *root, struct json_object *model)
{
    struct json_object *decoder = json_object_object_get(root, "decoder");
    struct json_object *added = json_object_object_get(root, "added_tokens");
    bool list = json_object_is_type(added, json_type_array);
    for (size_t i = 0; list && i < json_object_array_length(added); i++)
        if (dt_step_flag(json_object_array_get_idx(added, i), "normalized", false))
            return false;
    return dt_tokenizer_component_is(model, "WordPiece") &&
           dt_tokenizer_component_is(json_object_object_get(root, "normalizer"),
                                     "BertNormalizer") &&
           dt_tokenizer_component_is(json_object_object_get(root, "pre_tokenizer"),
                                     "BertPreTokenizer") &&
           (decoder == NULL || dt_tokenizer_component_is(decoder, "WordPiece"));
}

/* --- vocabulary --------------------------------------------------------------------------------
 */

/* Indexes the list as {"content": added token} and checks each element. */
static int index_added(struct json_object *list, struct json_object *index, const char *path,
                       struct dt_error *err)
{
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *token = json_object_array_get_idx(list, i);
        const char *content;
        int64_t id;
        char location[DT_ERROR_TEXT];
        snprintf(location, sizeof location, "%s: added token %zu", path, i + 1);
        DT_TRY(dt_json_get_string(token, "content", location, &content, err));
        DT_TRY(dt_json_get_int(token, "id", location, &id, err));
        DT_TRY(dt_step_check_flags(token, location, err));
        if (id < 0 || json_object_object_get_ex(index, content, NULL))
            return dt_fail(err, DT_EFORMAT, "%s: '%s' %s", location, content,
                           id < 0 ? "has a negative id" : "is listed twice");
        dt_json_object_add(index, content, json_object_get(token));
    }
    return 0;
}

static int add_added(struct dt_tokenizer *t, struct json_object *index, struct json_object *model,
                     const char *path, struct dt_error *err)
{
    struct json_object *vocabulary = json_object_object_get(model, "vocab");
    bool known = json_object_is_type(vocabulary, json_type_object); /* Unigram has a list */
    int rc = 0;
    json_object_object_foreach(index, content, token)
    {
        int64_t id = json_object_get_int64(json_object_object_get(token, "id"));
        if (rc == 0)
            rc = dt_tokenizer_add(t, (uint64_t)id, content, strlen(content), err);
        if (rc == 0)
            dt_tokenizer_mark_added(
                t, (struct dt_added_token){
                       .id = (uint32_t)id,
                       .special = dt_step_flag(token, "special", false),
                       .normalized = dt_step_flag(token, "normalized", false),
                       .single_word = dt_step_flag(token, "single_word", false),
                       .strip_left = dt_step_flag(token, "lstrip", false),
                       .strip_right = dt_step_flag(token, "rstrip", false),
                       .apart = known && !json_object_object_get_ex(vocabulary, content, NULL)});
    }
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
}

/* Some files of Mistral's tokenizer were published with Llama 3's pattern. */
static int refuse_wrong_mistral(const struct dt_tokenizer *t, const char *path,
                                struct dt_error *err)
{
    if (strcmp(t->pattern->name, "llama3") != 0 ||
        dt_tokenizer_find(t, "[INST]", 6) == DT_NO_TOKEN ||
        dt_tokenizer_find(t, "<s>", 3) == DT_NO_TOKEN)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: is Mistral's tokenizer with the pattern llama3 instead of tekken, a known "
                   "mistake of published files: choose one with --pattern",
                   path);
}

/* An added token with rstrip; DT_NO_TOKEN if there is none. */
static uint32_t find_strips_right(const struct dt_tokenizer *t, bool normalized)
{
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].strip_right && t->added[i].normalized == normalized)
            return t->added[i].id;
    return DT_NO_TOKEN;
}

/* White space that tokenizers gives to a token with rstrip is searched for others again, so that
 * they overlap. */
static int refuse_overlaps(const struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    const uint32_t others[] = {find_strips_right(t, false), find_strips_right(t, true)};
    dt_character_table_init();
    for (uint32_t i = 0; i < t->added_count; i++) {
        const struct dt_added_token *a = &t->added[i];
        const unsigned char *p = (const unsigned char *)t->bytes.data + a->match.start;
        uint32_t other = others[a->normalized];
        unsigned length;
        if (other != DT_NO_TOKEN &&
            DT_SET_SPACES >> dt_character_class(p, p + a->match.length, &length) & 1)
            return dt_fail(err, DT_EFORMAT,
                           "%s: added token %u begins with white space, and %u has rstrip, which "
                           "is not supported together",
                           path, a->id, other);
    }
    return 0;
}

static int fill(struct dt_tokenizer *t, const struct dt_model_format *format,
                struct json_object *root, struct json_object *model, struct json_object *index,
                const char *path, struct dt_error *err)
{
    struct json_object *added = json_object_object_get(root, "added_tokens");
    if (added && !json_object_is_type(added, json_type_array))
        return dt_fail(err, DT_EFORMAT, "%s: member \"added_tokens\" is not an array", path);
    DT_TRY(index_added(added, index, path, err));
    DT_TRY(format->read_vocabulary(t, model, index, path, err));
    DT_TRY(add_added(t, index, model, path, err));
    DT_TRY(format->read_rest(t, model, path, err));
    DT_TRY(dt_tokenizer_read_post_processor(t, json_object_object_get(root, "post_processor"), path,
                                            err));
    if (dt_tokenizer_finish(t, err) < 0)
        return dt_fail_context(err, "%s", path);
    return refuse_overlaps(t, path, err);
}

static int load_model(struct dt_tokenizer *t, struct json_object *root, struct json_object *model,
                      const struct dt_pattern *pattern, const char *path, struct dt_error *err)
{
    bool named = json_object_object_get(model, "type") != NULL; /* not in early files, all BPE */
    const char *name = named ? dt_tokenizer_component_type(model) : "BPE";
    const struct dt_model_format *format = dt_model_format_find(name);
    if (format == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: model %s is not supported", path, name);
    if (pattern && format->model != DT_TOKEN_BPE_MERGES)
        return dt_fail(err, DT_EINVALID, "%s: %s takes no pattern: remove --pattern", path, name);
    DT_TRY(dt_step_check_flags(model, path, err));
    t->model = format->model;
    if (is_bert(root, model)) {
        struct json_object *normalizer = json_object_object_get(root, "normalizer");
        DT_TRY(dt_step_check_flags(normalizer, path, err));
        t->byte_level = false;
        t->bert = dt_bert_rules_read(normalizer);
    } else {
        DT_TRY(read_steps(t, root, pattern, path, err));
    }
    struct json_object *index = dt_json_new_object();
    int rc = fill(t, format, root, model, index, path, err);
    json_object_put(index);
    return rc == 0 && t->pattern && pattern == NULL ? refuse_wrong_mistral(t, path, err) : rc;
}

static int load_root(struct dt_tokenizer *t, struct json_object *root,
                     const struct dt_pattern *pattern, const char *path, struct dt_error *err)
{
    struct json_object *model;
    if (json_object_object_get(root, "config") &&
        json_object_is_type(json_object_object_get(root, "vocab"), json_type_array))
        return dt_tokenizer_fill_from_tekken(t, root, pattern, path, err);
    DT_TRY(dt_json_get(root, "model", json_type_object, path, &model, err));
    return load_model(t, root, model, pattern, path, err);
}

int dt_tokenizer_load_json(struct dt_tokenizer **t, const char *path,
                           const struct dt_pattern *pattern, struct dt_error *err)
{
    struct json_object *root;
    *t = NULL;
    struct dt_error why;
    int rc = dt_json_read_with_zeros(path, &root, &why);
    if (rc < 0)
        return dt_fail(err, rc, "%s%s", why.text,
                       rc == DT_EFORMAT ? ": expected a complete tokenizer.json" : "");
    *t = dt_tokenizer_new(NULL);
    rc = load_root(*t, root, pattern, path, err);
    json_object_put(root);
    return rc;
}

int dt_tokenizer_load_gguf(struct dt_tokenizer **t, const char *path,
                           const struct dt_pattern *pattern, struct dt_error *err)
{
    struct json_object *root;
    *t = NULL;
    DT_TRY(dt_gguf_tokenizer_load(path, &root, err));
    *t = dt_tokenizer_new(NULL);
    int rc = load_root(*t, root, pattern, path, err);
    json_object_put(root);
    return rc;
}
