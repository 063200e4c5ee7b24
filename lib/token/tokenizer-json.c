/* SPDX-License-Identifier: MIT */
/* Reading and writing Hugging Face's tokenizer.json, as far as it describes
 * byte-level BPE. Whatever would change the ids and is not known is refused by
 * name: a wrong id is worse than none. */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "token/byte-level.h"
#include "token/tokenizer-file.h"

/* What a component {"type": ...} calls itself; "null" for null. */
static const char *type_of(struct json_object *component)
{
    struct json_object *type = json_object_is_type(component, json_type_object)
                                   ? json_object_object_get(component, "type")
                                   : NULL;
    const char *name = json_object_get_string(type);
    return component == NULL ? "null" : name ? name : "(no type)";
}

static bool is_type(struct json_object *component, const char *name)
{
    return strcmp(type_of(component), name) == 0;
}

/* A member that must be absent, null, false or empty, because dt does not do
 * what it asks for. */
static int refuse_member(struct json_object *object, const char *name, const char *place,
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
    return dt_fail(err, DT_EFORMAT, "%s: \"%s\": %.64s is not supported", place, name,
                   json_object_to_json_string(value));
}

/* Split by a regular expression, then ByteLevel without one of its own. */
static int find_split(struct json_object *steps, const struct dt_pattern **pattern,
                      const char *path, struct dt_error *err)
{
    struct json_object *split = json_object_array_get_idx(steps, 0), *regex;
    struct json_object *bytes = json_object_array_get_idx(steps, 1);
    for (size_t i = 0; i < json_object_array_length(steps); i++) {
        const char *type = type_of(json_object_array_get_idx(steps, i));
        if (strcmp(type, i == 0 ? "Split" : "ByteLevel") != 0 || i > 1)
            return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer %s as step %zu is not supported",
                           path, type, i + 1);
    }
    const char *behavior = json_object_get_string(json_object_object_get(split, "behavior"));
    struct json_object *own = json_object_object_get(bytes, "use_regex");
    DT_TRY(dt_json_get(split, "pattern", json_type_object, path, &regex, err));
    DT_TRY(dt_json_get(regex, "Regex", json_type_string, path, &regex, err));
    DT_TRY(refuse_member(split, "invert", path, err));
    DT_TRY(refuse_member(bytes, "add_prefix_space", path, err));
    if (behavior == NULL || strcmp(behavior, "Isolated") != 0 || own == NULL ||
        json_object_get_boolean(own))
        return dt_fail(err, DT_EFORMAT,
                       "%s: a Split that is not isolated, or not followed by a "
                       "ByteLevel without regex, is not supported",
                       path);
    *pattern = dt_pattern_find_regex(json_object_get_string(regex));
    if (*pattern == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer Split with the pattern %s is not known",
                       path, json_object_get_string(regex));
    return 0;
}

static int find_pattern(struct json_object *root, const struct dt_pattern **pattern,
                        const char *path, struct dt_error *err)
{
    struct json_object *pre = json_object_object_get(root, "pre_tokenizer");
    if (is_type(pre, "Sequence")) {
        struct json_object *steps;
        DT_TRY(dt_json_get(pre, "pretokenizers", json_type_array, path, &steps, err));
        return find_split(steps, pattern, path, err);
    }
    if (!is_type(pre, "ByteLevel"))
        return dt_fail(err, DT_EFORMAT, "%s: pre_tokenizer %s is not supported", path,
                       type_of(pre));
    struct json_object *regex = json_object_object_get(pre, "use_regex");
    if (regex && !json_object_get_boolean(regex))
        return dt_fail(err, DT_EFORMAT,
                       "%s: pre_tokenizer ByteLevel without regex is not supported", path);
    DT_TRY(refuse_member(pre, "add_prefix_space", path, err));
    *pattern = dt_pattern_find("gpt2");
    return 0;
}

static int check_components(struct json_object *root, struct json_object *model, const char *path,
                            struct dt_error *err)
{
    static const char *const refused[] = {"dropout",       "continuing_subword_prefix",
                                          "byte_fallback", "end_of_word_suffix",
                                          "ignore_merges", NULL};
    struct json_object *normalizer = json_object_object_get(root, "normalizer");
    struct json_object *decoder = json_object_object_get(root, "decoder");
    struct json_object *post = json_object_object_get(root, "post_processor");
    if (!is_type(model, "BPE") && json_object_object_get(model, "type"))
        return dt_fail(err, DT_EFORMAT, "%s: model %s is not supported", path, type_of(model));
    if (normalizer)
        return dt_fail(err, DT_EFORMAT, "%s: normalizer %s is not supported", path,
                       type_of(normalizer));
    if (decoder && !is_type(decoder, "ByteLevel"))
        return dt_fail(err, DT_EFORMAT, "%s: decoder %s is not supported", path, type_of(decoder));
    if (post && !is_type(post, "ByteLevel"))
        return dt_fail(err, DT_EFORMAT, "%s: post_processor %s is not supported", path,
                       type_of(post));
    for (int i = 0; refused[i]; i++)
        DT_TRY(refuse_member(model, refused[i], path, err));
    return 0;
}

/* Makes {"content": added token} out of the list, each element checked. */
static int index_added(struct json_object *list, struct json_object *index, const char *path,
                       struct dt_error *err)
{
    static const char *const refused[] = {"single_word", "lstrip", "rstrip", NULL};
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *token = json_object_array_get_idx(list, i);
        const char *content;
        int64_t id;
        char place[DT_ERROR_TEXT];
        snprintf(place, sizeof place, "%s: added token %zu", path, i + 1);
        DT_TRY(dt_json_get_string(token, "content", place, &content, err));
        DT_TRY(dt_json_get_int(token, "id", place, &id, err));
        for (int k = 0; refused[k]; k++)
            DT_TRY(refuse_member(token, refused[k], place, err));
        if (id < 0 || json_object_object_get_ex(index, content, NULL))
            return dt_fail(err, DT_EFORMAT, "%s: '%s' %s", place, content,
                           id < 0 ? "has a negative id" : "stands there twice");
        json_object_object_add(index, content, json_object_get(token));
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
        bool special = json_object_get_boolean(json_object_object_get(token, "special"));
        if (rc == 0)
            rc = dt_tokenizer_add(t, (uint64_t)id, content, strlen(content), err);
        if (rc == 0)
            dt_tokenizer_mark_added(t, (uint32_t)id, special);
    }
    return rc < 0 ? dt_fail_context(err, "%s", path) : 0;
}

static int add_merge(struct dt_tokenizer *t, struct json_object *merge, const char *place,
                     struct dt_error *err)
{
    if (json_object_is_type(merge, json_type_string))
        return dt_tokenizer_add_merge_line(t, json_object_get_string(merge),
                                           (size_t)json_object_get_string_len(merge), place, err);
    bool is_pair = json_object_is_type(merge, json_type_array) &&
                   json_object_array_length(merge) == 2 &&
                   json_object_is_type(json_object_array_get_idx(merge, 0), json_type_string) &&
                   json_object_is_type(json_object_array_get_idx(merge, 1), json_type_string);
    if (!is_pair)
        return dt_fail(err, DT_EFORMAT, "%s: is neither \"left right\" nor [\"left\", \"right\"]",
                       place);
    struct json_object *left = json_object_array_get_idx(merge, 0);
    struct json_object *right = json_object_array_get_idx(merge, 1);
    return dt_tokenizer_add_spelled_merge(
        t, json_object_get_string(left), (size_t)json_object_get_string_len(left),
        json_object_get_string(right), (size_t)json_object_get_string_len(right), place, err);
}

static int add_merges(struct dt_tokenizer *t, struct json_object *merges, const char *path,
                      struct dt_error *err)
{
    char place[DT_ERROR_TEXT];
    for (size_t i = 0; i < json_object_array_length(merges); i++) {
        snprintf(place, sizeof place, "%s: merge %zu", path, i + 1);
        DT_TRY(add_merge(t, json_object_array_get_idx(merges, i), place, err));
    }
    return 0;
}

static int fill(struct dt_tokenizer *t, struct json_object *root, struct json_object *model,
                struct json_object *index, const char *path, struct dt_error *err)
{
    struct json_object *vocabulary, *merges, *added = json_object_object_get(root, "added_tokens");
    if (added && !json_object_is_type(added, json_type_array))
        return dt_fail(err, DT_EFORMAT, "%s: member \"added_tokens\" is not an array", path);
    DT_TRY(dt_json_get(model, "vocab", json_type_object, path, &vocabulary, err));
    DT_TRY(dt_json_get(model, "merges", json_type_array, path, &merges, err));
    DT_TRY(index_added(added, index, path, err));
    DT_TRY(dt_tokenizer_add_vocabulary(t, vocabulary, index, path, err));
    DT_TRY(add_added(t, index, path, err));
    DT_TRY(add_merges(t, merges, path, err));
    return dt_tokenizer_finish(t, err) < 0 ? dt_fail_context(err, "%s", path) : 0;
}

static int load_root(struct dt_tokenizer **t, struct json_object *root, const char *path,
                     struct dt_error *err)
{
    struct json_object *model;
    const struct dt_pattern *pattern = NULL;
    DT_TRY(dt_json_get(root, "model", json_type_object, path, &model, err));
    DT_TRY(check_components(root, model, path, err));
    DT_TRY(find_pattern(root, &pattern, path, err));
    *t = dt_tokenizer_new(pattern);
    struct json_object *index = json_object_new_object();
    int rc = fill(*t, root, model, index, path, err);
    json_object_put(index);
    return rc;
}

int dt_tokenizer_load_json(struct dt_tokenizer **t, const char *path, struct dt_error *err)
{
    struct json_object *root;
    *t = NULL;
    struct dt_error why;
    int rc = dt_json_read(path, &root, &why);
    if (rc < 0)
        return dt_fail(err, rc, "%s%s", why.text,
                       rc == DT_EFORMAT ? ": is no whole tokenizer.json" : "");
    rc = load_root(t, root, path, err);
    json_object_put(root);
    return rc;
}

/* --- writing ------------------------------------------------------------------------------- */

static void add_added_list(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    dt_buffer_add_string(b, "  \"added_tokens\": [");
    for (uint32_t i = 0; i < t->added_count; i++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, t->added[i].id, &size);
        dt_buffer_printf(b, "%s\n    {\"id\": %u, \"content\": ", i ? "," : "", t->added[i].id);
        dt_json_add_string(b, bytes, size);
        dt_buffer_printf(b,
                         ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                         "\"normalized\": false, \"special\": %s}",
                         t->added[i].special ? "true" : "false");
    }
    dt_buffer_add_string(b, t->added_count ? "\n  ],\n" : "],\n");
}

/* A token as vocabularies spell it: added ones as they are. */
static void add_spelled(const struct dt_tokenizer *t, uint32_t id, bool as_is, struct dt_buffer *b)
{
    struct dt_buffer spelled = DT_BUFFER_EMPTY;
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    if (as_is)
        dt_buffer_append(&spelled, bytes, size);
    else
        dt_byte_level_spell(bytes, size, &spelled);
    dt_json_add_string(b, spelled.data, spelled.size);
    dt_buffer_release(&spelled);
}

static void add_vocabulary(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    bool *added = dt_alloc(t->size, sizeof *added), first = true;
    for (uint32_t i = 0; i < t->added_count; i++)
        added[t->added[i].id] = true;
    dt_buffer_add_string(b, "    \"vocab\": {");
    for (uint32_t id = 0; id < t->size; id++) {
        if (t->tokens[id].length == 0)
            continue;
        dt_buffer_add_string(b, first ? "\n      " : ",\n      ");
        first = false;
        add_spelled(t, id, added[id], b);
        dt_buffer_printf(b, ": %u", id);
    }
    dt_buffer_add_string(b, "\n    },\n");
    free(added);
}

static void add_merge_list(const struct dt_tokenizer *t, struct dt_buffer *b)
{
    struct dt_buffer merge = DT_BUFFER_EMPTY;
    dt_buffer_add_string(b, "    \"merges\": [");
    for (uint32_t i = 0; i < t->merge_count; i++) {
        size_t left_size, right_size;
        const char *left = dt_tokenizer_bytes(t, t->merges[i].left, &left_size);
        const char *right = dt_tokenizer_bytes(t, t->merges[i].right, &right_size);
        dt_buffer_clear(&merge);
        dt_byte_level_spell(left, left_size, &merge);
        dt_buffer_add_char(&merge, ' ');
        dt_byte_level_spell(right, right_size, &merge);
        dt_buffer_add_string(b, i ? ",\n      " : "\n      ");
        dt_json_add_string(b, merge.data, merge.size);
    }
    dt_buffer_add_string(b, t->merge_count ? "\n    ]\n" : "]\n");
    dt_buffer_release(&merge);
}

static void add_pre_tokenizer(const struct dt_pattern *pattern, struct dt_buffer *b)
{
    bool built_in = strcmp(pattern->name, "gpt2") == 0;
    dt_buffer_add_string(b, "  \"pre_tokenizer\": ");
    if (!built_in) {
        dt_buffer_add_string(b, "{\"type\": \"Sequence\", \"pretokenizers\": [\n"
                                "    {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        dt_json_add_string(b, pattern->regex, strlen(pattern->regex));
        dt_buffer_add_string(b, "}, \"behavior\": \"Isolated\", \"invert\": false},\n    ");
    }
    dt_buffer_printf(b,
                     "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                     "\"trim_offsets\": true, \"use_regex\": %s}%s,\n",
                     built_in ? "true" : "false", built_in ? "" : "]}");
}

int dt_tokenizer_save(const struct dt_tokenizer *t, const char *path, struct dt_error *err)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n"
                             "  \"padding\": null,\n");
    add_added_list(t, &b);
    dt_buffer_add_string(&b, "  \"normalizer\": null,\n");
    add_pre_tokenizer(t->pattern, &b);
    dt_buffer_add_string(&b, "  \"post_processor\": null,\n"
                             "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
                             "\"trim_offsets\": true, \"use_regex\": true},\n"
                             "  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n"
                             "    \"unk_token\": null,\n    \"continuing_subword_prefix\": null,\n"
                             "    \"end_of_word_suffix\": null,\n    \"fuse_unk\": false,\n"
                             "    \"byte_fallback\": false,\n    \"ignore_merges\": false,\n");
    add_vocabulary(t, &b);
    add_merge_list(t, &b);
    dt_buffer_add_string(&b, "  }\n}\n");
    int rc = dt_file_write(path, b.data, b.size, err);
    dt_buffer_release(&b);
    return rc;
}
