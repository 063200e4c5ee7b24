/* SPDX-License-Identifier: MIT */
/* Reads Hugging Face's tokenizer.json with byte-level BPE or WordPiece. Refuses by name every
 * unknown component that would change the ids: a wrong id is worse than none. */
#include "json/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "pretokenize/byte-level.h"
#include "token/steps-internal.h"
#include "token/tokenizer-file.h"
#include "json/json.h"

/* The type of a component {"type": ...}; "null" for null. */
static const char *type_of(struct json_object *component)
{
    struct json_object *type = json_object_is_type(component, json_type_object)
                                   ? json_object_object_get(component, "type")
                                   : NULL;
    const char *name = dt_json_text(type);
    return component == NULL ? "null" : name ? name : "(no type)";
}

static bool is_type(struct json_object *component, const char *name)
{
    return strcmp(type_of(component), name) == 0;
}

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

/* --- components of byte-level BPE ------------------------------------------------------------- */

/* Keeps the steps of the file only where no compiled pattern does the same. */
static void use_compiled(struct dt_tokenizer *t)
{
    const struct dt_pattern *pattern = dt_pre_tokenizers_find_pattern(&t->splitter);
    if (pattern == NULL || (t->normalizer.count > 0 && !t->nfc))
        return;
    t->pattern = pattern;
    dt_steps_release(&t->normalizer);
    dt_steps_release(&t->splitter);
}

static int read_steps(struct dt_tokenizer *t, struct json_object *root,
                      const struct dt_pattern *pattern, const char *path, struct dt_error *err)
{
    struct json_object *pre = json_object_object_get(root, "pre_tokenizer");
    DT_TRY(dt_steps_read(&t->normalizer, DT_STEPS_NORMALIZER,
                         json_object_object_get(root, "normalizer"), path, err));
    t->nfc = dt_steps_are_only(&t->normalizer, "NFC");
    if (pattern)
        return t->pattern = pattern, 0;
    DT_TRY(dt_steps_read(&t->splitter, DT_STEPS_PRE_TOKENIZER, pre, path, err));
    if (!dt_pre_tokenizers_are_byte_level(&t->splitter))
        return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer %s is not supported", path,
                       type_of(pre));
    use_compiled(t);
    return 0;
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

static int check_bpe(struct json_object *root, struct json_object *model, const char *path,
                     struct dt_error *err)
{
    static const char *const refused[] = {"dropout", "continuing_subword_prefix", "byte_fallback",
                                          "end_of_word_suffix", NULL};
    struct json_object *decoder = json_object_object_get(root, "decoder");
    if (decoder && !is_type(decoder, "ByteLevel"))
        return dt_fail(err, DT_EFORMAT, "%s: decoder %s is not supported", path, type_of(decoder));
    for (int i = 0; refused[i]; i++)
        DT_TRY(refuse_member(model, refused[i], path, err));
    return 0;
}

/* --- components of WordPiece ------------------------------------------------------------------ */

static int check_word_piece(struct json_object *root, struct json_object *model, const char *path,
                            struct dt_error *err)
{
    struct json_object *normalizer = json_object_object_get(root, "normalizer");
    struct json_object *pre = json_object_object_get(root, "pre_tokenizer");
    struct json_object *decoder = json_object_object_get(root, "decoder");
    const char *prefix;
    if (!is_type(normalizer, "BertNormalizer"))
        return dt_fail(err, DT_EFORMAT, "%s: normalizer %s with WordPiece is not supported", path,
                       type_of(normalizer));
    if (!is_type(pre, "BertPreTokenizer"))
        return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer %s with WordPiece is not supported",
                       path, type_of(pre));
    if (decoder && !is_type(decoder, "WordPiece"))
        return dt_fail(err, DT_EFORMAT, "%s: decoder %s is not supported", path, type_of(decoder));
    DT_TRY(dt_json_get_string(model, "continuing_subword_prefix", path, &prefix, err));
    if (strcmp(prefix, "##") != 0)
        return dt_fail(err, DT_EFORMAT,
                       "%s: \"continuing_subword_prefix\": \"%s\" is not supported", path, prefix);
    return 0;
}

static int read_word_piece(struct dt_tokenizer *t, struct json_object *root,
                           struct json_object *model, const char *path, struct dt_error *err)
{
    struct json_object *normalizer = json_object_object_get(root, "normalizer");
    const char *unknown;
    int64_t longest;
    t->bert.lower = dt_step_flag(normalizer, "lowercase", true);
    t->bert.strip_accents = dt_step_flag(normalizer, "strip_accents", t->bert.lower);
    t->bert.clean = dt_step_flag(normalizer, "clean_text", true);
    t->bert.isolate_cjk = dt_step_flag(normalizer, "handle_chinese_chars", true);
    DT_TRY(dt_json_get_string(model, "unk_token", path, &unknown, err));
    DT_TRY(dt_json_get_int(model, "max_input_chars_per_word", path, &longest, err));
    t->unknown = dt_tokenizer_find(t, unknown, strlen(unknown));
    if (t->unknown == DT_NO_TOKEN)
        return dt_fail(err, DT_EFORMAT, "%s: the unknown token '%s' is not in the vocabulary", path,
                       unknown);
    if (longest < 1 || longest > 1000)
        return dt_fail(err, DT_EFORMAT, "%s: \"max_input_chars_per_word\" is not 1 to 1000", path);
    t->max_word_chars = (uint32_t)longest;
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].normalized)
            return dt_fail(err, DT_EFORMAT,
                           "%s: added token %u: \"normalized\" with BertNormalizer is not "
                           "supported",
                           path, i + 1);
    return 0;
}

/* --- the template for documents --------------------------------------------------------------- */

static int add_template_id(const struct dt_tokenizer *t, struct dt_ids *ids, int64_t id,
                           const char *path, struct dt_error *err)
{
    if (id < 0 || id >= t->size || t->tokens[id].length == 0 || ids->count == DT_FRAME_MAX)
        return dt_fail(
            err, DT_EFORMAT,
            "%s: post_processor: id %lld is not in the vocabulary, or exceeds %d ids on one side",
            path, (long long)id, DT_FRAME_MAX);
    dt_ids_add(ids, (uint32_t)id);
    return 0;
}

/* ["[SEP]", 102] */
static int add_named_id(const struct dt_tokenizer *t, struct json_object *post, const char *name,
                        struct dt_ids *ids, const char *path, struct dt_error *err)
{
    struct json_object *pair;
    DT_TRY(dt_json_get(post, name, json_type_array, path, &pair, err));
    return add_template_id(t, ids, json_object_get_int64(json_object_array_get_idx(pair, 1)), path,
                           err);
}

static int add_template_step(struct dt_tokenizer *t, struct json_object *post,
                             struct json_object *step, bool *after_text, const char *path,
                             struct dt_error *err)
{
    struct json_object *special = json_object_object_get(step, "SpecialToken"), *all, *token, *ids;
    const char *name;
    if (special == NULL) {
        *after_text = true;
        return 0;
    }
    DT_TRY(dt_json_get_string(special, "id", path, &name, err));
    DT_TRY(dt_json_get(post, "special_tokens", json_type_object, path, &all, err));
    DT_TRY(dt_json_get(all, name, json_type_object, path, &token, err));
    DT_TRY(dt_json_get(token, "ids", json_type_array, path, &ids, err));
    for (size_t i = 0; i < json_object_array_length(ids); i++)
        DT_TRY(add_template_id(t, *after_text ? &t->after : &t->before,
                               json_object_get_int64(json_object_array_get_idx(ids, i)), path,
                               err));
    return 0;
}

static int read_template(struct dt_tokenizer *t, struct json_object *post, const char *path,
                         struct dt_error *err)
{
    struct json_object *single;
    bool after_text = false;
    DT_TRY(dt_json_get(post, "single", json_type_array, path, &single, err));
    for (size_t i = 0; i < json_object_array_length(single); i++)
        DT_TRY(add_template_step(t, post, json_object_array_get_idx(single, i), &after_text, path,
                                 err));
    return 0;
}

static int read_post_processor(struct dt_tokenizer *t, struct json_object *post, const char *path,
                               struct dt_error *err)
{
    struct json_object *steps;
    if (post == NULL || is_type(post, "ByteLevel"))
        return 0;
    if (is_type(post, "TemplateProcessing"))
        return read_template(t, post, path, err);
    if (is_type(post, "BertProcessing") || is_type(post, "RobertaProcessing")) {
        DT_TRY(add_named_id(t, post, "cls", &t->before, path, err));
        return add_named_id(t, post, "sep", &t->after, path, err);
    }
    if (!is_type(post, "Sequence"))
        return dt_fail(err, DT_EFORMAT, "%s: post_processor %s is not supported", path,
                       type_of(post));
    DT_TRY(dt_json_get(post, "processors", json_type_array, path, &steps, err));
    for (size_t i = 0; i < json_object_array_length(steps); i++) {
        struct json_object *step = json_object_array_get_idx(steps, i);
        if (is_type(step, "Sequence"))
            return dt_fail(err, DT_EFORMAT, "%s: post_processor: a Sequence in a Sequence", path);
        DT_TRY(read_post_processor(t, step, path, err));
    }
    return 0;
}

/* --- vocabulary and merges -------------------------------------------------------------------- */

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
        if (id < 0 || json_object_object_get_ex(index, content, NULL))
            return dt_fail(err, DT_EFORMAT, "%s: '%s' %s", location, content,
                           id < 0 ? "has a negative id" : "is listed twice");
        dt_json_object_add(index, content, json_object_get(token));
    }
    return 0;
}

static int add_added(struct dt_tokenizer *t, struct json_object *index, const char *path,
                     struct dt_error *err)
{
    int rc = 0;
    json_object_object_foreach(index, content, token)
    {
        int64_t id = json_object_get_int64(json_object_object_get(token, "id"));
        if (rc == 0)
            rc = dt_tokenizer_add(t, (uint64_t)id, content, strlen(content), err);
        if (rc == 0)
            dt_tokenizer_mark_added(
                t, (struct dt_added_token){.id = (uint32_t)id,
                                           .special = dt_step_flag(token, "special", false),
                                           .normalized = dt_step_flag(token, "normalized", false),
                                           .single_word = dt_step_flag(token, "single_word", false),
                                           .strip_left = dt_step_flag(token, "lstrip", false),
                                           .strip_right = dt_step_flag(token, "rstrip", false)});
    }
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
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

static int fill(struct dt_tokenizer *t, struct json_object *root, struct json_object *model,
                struct json_object *index, const char *path, struct dt_error *err)
{
    struct json_object *vocabulary, *merges, *added = json_object_object_get(root, "added_tokens");
    bool is_bpe = !dt_vocabulary_is_word_piece(t);
    if (added && !json_object_is_type(added, json_type_array))
        return dt_fail(err, DT_EFORMAT, "%s: member \"added_tokens\" is not an array", path);
    DT_TRY(dt_json_get(model, "vocab", json_type_object, path, &vocabulary, err));
    if (is_bpe)
        DT_TRY(dt_json_get(model, "merges", json_type_array, path, &merges, err));
    DT_TRY(index_added(added, index, path, err));
    DT_TRY(dt_tokenizer_add_vocabulary(t, vocabulary, index, path, err));
    DT_TRY(add_added(t, index, path, err));
    if (is_bpe)
        DT_TRY(add_merges(t, merges, path, err));
    else
        DT_TRY(read_word_piece(t, root, model, path, err));
    DT_TRY(read_post_processor(t, json_object_object_get(root, "post_processor"), path, err));
    return dt_tokenizer_finish(t, err) < 0 ? dt_fail_context(err, "%s", path) : 0;
}

static int new_bpe(struct dt_tokenizer **t, struct json_object *root, struct json_object *model,
                   const struct dt_pattern *pattern, const char *path, struct dt_error *err)
{
    DT_TRY(check_bpe(root, model, path, err));
    *t = dt_tokenizer_new(NULL);
    (*t)->ignore_merges = dt_step_flag(model, "ignore_merges", false);
    return read_steps(*t, root, pattern, path, err);
}

static int new_word_piece(struct dt_tokenizer **t, struct json_object *root,
                          struct json_object *model, const struct dt_pattern *pattern,
                          const char *path, struct dt_error *err)
{
    if (pattern)
        return dt_fail(err, DT_EINVALID, "%s: WordPiece takes no pattern: remove --pattern", path);
    DT_TRY(check_word_piece(root, model, path, err));
    *t = dt_tokenizer_new_word_piece(true);
    return 0;
}

static int load_root(struct dt_tokenizer **t, struct json_object *root,
                     const struct dt_pattern *pattern, const char *path, struct dt_error *err)
{
    struct json_object *model;
    if (json_object_object_get(root, "config") &&
        json_object_is_type(json_object_object_get(root, "vocab"), json_type_array)) {
        *t = dt_tokenizer_new(NULL);
        return dt_tokenizer_fill_from_tekken(*t, root, pattern, path, err);
    }
    DT_TRY(dt_json_get(root, "model", json_type_object, path, &model, err));
    if (is_type(model, "WordPiece"))
        DT_TRY(new_word_piece(t, root, model, pattern, path, err));
    else if (is_type(model, "BPE") || json_object_object_get(model, "type") == NULL)
        DT_TRY(new_bpe(t, root, model, pattern, path, err));
    else
        return dt_fail(err, DT_EFORMAT, "%s: model %s is not supported", path, type_of(model));
    struct json_object *index = dt_json_new_object();
    int rc = fill(*t, root, model, index, path, err);
    json_object_put(index);
    if (rc == 0 && (*t)->pattern && pattern == NULL)
        rc = refuse_wrong_mistral(*t, path, err);
    return rc;
}

int dt_tokenizer_load_json(struct dt_tokenizer **t, const char *path,
                           const struct dt_pattern *pattern, struct dt_error *err)
{
    struct json_object *root;
    *t = NULL;
    struct dt_error why;
    int rc = dt_json_read(path, &root, &why);
    if (rc < 0)
        return dt_fail(err, rc, "%s%s", why.text,
                       rc == DT_EFORMAT ? ": expected a complete tokenizer.json" : "");
    rc = load_root(t, root, pattern, path, err);
    json_object_put(root);
    return rc;
}
