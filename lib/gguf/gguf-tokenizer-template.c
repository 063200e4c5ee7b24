/* SPDX-License-Identifier: MIT */
/* The post_processor of tokenizer.json that puts tokens around a text. */
#include "gguf/gguf-tokenizer.h"

const char *const dt_gguf_end_keys[DT_GGUF_ENDS + 1] = {
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};

static void add_step(struct json_object *single, const char *kind, const char *name)
{
    struct json_object *step = dt_json_new_object(), *inner = dt_json_new_object();
    dt_json_object_add(inner, "id", dt_json_new_string(name));
    dt_json_object_add(inner, "type_id", dt_json_new_int(0));
    dt_json_object_add(step, kind, inner);
    dt_json_array_add(single, step);
}

static void add_special(struct json_object *single, struct json_object *specials, int64_t id,
                        const char *name)
{
    struct json_object *special = dt_json_new_object(), *ids = dt_json_new_array();
    struct json_object *tokens = dt_json_new_array();
    dt_json_array_add(ids, dt_json_new_int(id));
    dt_json_array_add(tokens, dt_json_new_string(name));
    dt_json_object_add(special, "id", dt_json_new_string(name));
    dt_json_object_add(special, "ids", ids);
    dt_json_object_add(special, "tokens", tokens);
    dt_json_object_add(specials, name, special);
    add_step(single, "SpecialToken", name);
}

/* A step before the template, which sets offsets only, is kept. */
static void set_post_processor(struct json_object *root, struct json_object *template)
{
    struct json_object *before = json_object_object_get(root, "post_processor");
    if (before) {
        struct json_object *sequence = dt_json_new_object(), *steps = dt_json_new_array();
        dt_json_array_add(steps, json_object_get(before));
        dt_json_array_add(steps, template);
        dt_json_object_add(sequence, "type", dt_json_new_string("Sequence"));
        dt_json_object_add(sequence, "processors", steps);
        template = sequence;
    }
    json_object_object_del(root, "post_processor");
    dt_json_object_add(root, "post_processor", template);
}

void dt_gguf_tokenizer_set_template(struct json_object *root, const struct dt_gguf_template *t)
{
    struct json_object *post = dt_json_new_object(), *single = dt_json_new_array();
    struct json_object *pair = dt_json_new_array(), *specials = dt_json_new_object();
    if (t->before)
        add_special(single, specials, t->before_id, t->before);
    add_step(single, "Sequence", "A");
    if (t->after)
        add_special(single, specials, t->after_id, t->after);
    for (size_t i = 0; i < json_object_array_length(single); i++)
        dt_json_array_add(pair, json_object_get(json_object_array_get_idx(single, i)));
    add_step(pair, "Sequence", "B");
    if (t->after)
        dt_json_array_add(pair, json_object_get(json_object_array_get_idx(
                                    single, json_object_array_length(single) - 1)));
    dt_json_object_add(post, "type", dt_json_new_string("TemplateProcessing"));
    dt_json_object_add(post, "single", single);
    dt_json_object_add(post, "pair", pair);
    dt_json_object_add(post, "special_tokens", specials);
    set_post_processor(root, post);
}
