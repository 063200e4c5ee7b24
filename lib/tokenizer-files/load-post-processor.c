/* SPDX-License-Identifier: MIT */
/* Reads the post-processor of tokenizer.json: the special tokens around a document. */
#include "tokenizer-files/tokenizer-file.h"
#include "json/json.h"

static int add_template_id(const struct dt_tokenizer *t, struct dt_ids *ids,
                           struct json_object *value, const char *path, struct dt_error *err)
{
    int64_t id = json_object_get_int64(value);
    if (!json_object_is_type(value, json_type_int))
        return dt_fail(err, DT_EFORMAT, "%s: post_processor: an id is not a whole number", path);
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
    return add_template_id(t, ids, json_object_array_get_idx(pair, 1), path, err);
}

static int add_template_step(struct dt_tokenizer *t, struct json_object *post,
                             struct json_object *step, bool *after_text, const char *path,
                             struct dt_error *err)
{
    struct json_object *special = json_object_object_get(step, "SpecialToken"), *all, *token, *ids;
    const char *name;
    if (special == NULL) {
        if (*after_text)
            return dt_fail(err, DT_EFORMAT,
                           "%s: post_processor: a template has the text more than once", path);
        *after_text = true;
        return json_object_object_get(step, "Sequence")
                   ? 0
                   : dt_fail(err, DT_EFORMAT,
                             "%s: post_processor: a step is neither a SpecialToken nor a Sequence",
                             path);
    }
    DT_TRY(dt_json_get_string(special, "id", path, &name, err));
    DT_TRY(dt_json_get(post, "special_tokens", json_type_object, path, &all, err));
    DT_TRY(dt_json_get(all, name, json_type_object, path, &token, err));
    DT_TRY(dt_json_get(token, "ids", json_type_array, path, &ids, err));
    for (size_t i = 0; i < json_object_array_length(ids); i++)
        DT_TRY(add_template_id(t, *after_text ? &t->after : &t->before,
                               json_object_array_get_idx(ids, i), path, err));
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
    return after_text
               ? 0
               : dt_fail(err, DT_EFORMAT, "%s: post_processor: a template lacks the text", path);
}

int dt_tokenizer_read_post_processor(struct dt_tokenizer *t, struct json_object *post,
                                     const char *path, struct dt_error *err)
{
    struct json_object *steps;
    if (post == NULL || dt_tokenizer_component_is(post, "ByteLevel"))
        return 0;
    if (dt_tokenizer_component_is(post, "TemplateProcessing"))
        return read_template(t, post, path, err);
    if (dt_tokenizer_component_is(post, "BertProcessing") ||
        dt_tokenizer_component_is(post, "RobertaProcessing")) {
        DT_TRY(add_named_id(t, post, "cls", &t->before, path, err));
        return add_named_id(t, post, "sep", &t->after, path, err);
    }
    if (!dt_tokenizer_component_is(post, "Sequence"))
        return dt_fail(err, DT_EFORMAT, "%s: post_processor %s is not supported", path,
                       dt_tokenizer_component_type(post));
    DT_TRY(dt_json_get(post, "processors", json_type_array, path, &steps, err));
    bool adds = false;
    for (size_t i = 0; i < json_object_array_length(steps); i++) {
        struct json_object *step = json_object_array_get_idx(steps, i);
        if (adds && !dt_tokenizer_component_is(step, "ByteLevel"))
            return dt_fail(err, DT_EFORMAT, "%s: post_processor: more than one step adds tokens",
                           path);
        adds = adds || !dt_tokenizer_component_is(step, "ByteLevel");
        if (dt_tokenizer_component_is(step, "Sequence"))
            return dt_fail(err, DT_EFORMAT, "%s: post_processor: a Sequence in a Sequence", path);
        DT_TRY(dt_tokenizer_read_post_processor(t, step, path, err));
    }
    return 0;
}
