/* SPDX-License-Identifier: MIT */
#include "model/model-config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"

const char *const dt_families[] = {"gpt2", NULL};

static int check_range(const char *subject, const char *name, long value, long most,
                       struct dt_error *err)
{
    if (value >= 1 && value <= most)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s.%s must be from 1 to %ld, not %ld", subject, name, most,
                   value);
}

int dt_model_config_check(struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    if (c->intermediate_size == 0)
        c->intermediate_size = 4 * c->hidden_size;
    DT_TRY(check_range(subject, "vocab_size", c->vocab_size, 1 << 24, err));
    DT_TRY(check_range(subject, "max_seq_len", c->max_seq_len, 1 << 24, err));
    DT_TRY(check_range(subject, "hidden_size", c->hidden_size, 1 << 17, err));
    DT_TRY(check_range(subject, "num_layers", c->num_layers, 1 << 12, err));
    DT_TRY(check_range(subject, "num_heads", c->num_heads, 1 << 12, err));
    DT_TRY(check_range(subject, "intermediate_size", c->intermediate_size, 1 << 20, err));
    if (c->hidden_size % c->num_heads != 0)
        return dt_fail(err, DT_EINVALID, "%s.hidden_size %ld is not a multiple of num_heads %ld",
                       subject, c->hidden_size, c->num_heads);
    if (!(c->layer_norm_epsilon > 0 && c->layer_norm_epsilon < 1))
        return dt_fail(err, DT_EINVALID, "%s.layer_norm_epsilon must be between 0 and 1", subject);
    if (c->initializer_range == 0)
        c->initializer_range = 0.02;
    if (!(c->initializer_range > 0 && c->initializer_range < 10))
        return dt_fail(err, DT_EINVALID, "%s.initializer_range must be between 0 and 10", subject);
    return 0;
}

double dt_model_flops_per_token(const struct dt_model_config *c, int64_t length)
{
    double width = (double)c->hidden_size, layers = (double)c->num_layers;
    double block = 4 * width * width + 2 * width * (double)c->intermediate_size;
    double in_products = layers * block + (double)c->vocab_size * width;
    return 6 * in_products + 6 * layers * width * (double)length;
}

struct member {
    const char *name;
    long *value;
    bool optional;
};

static int read_member(struct json_object *object, const struct member *m, const char *path,
                       struct dt_error *err)
{
    int64_t value;
    struct json_object *given = json_object_object_get(object, m->name);
    if (m->optional && (given == NULL || json_object_is_type(given, json_type_null)))
        return 0;
    DT_TRY(dt_json_get_int(object, m->name, path, &value, err));
    *m->value = (long)value;
    return 0;
}

/* A switch that dt knows in its default position alone; absent, it stands there. */
static int need_switch(struct json_object *object, const char *name, bool needed, const char *path,
                       struct dt_error *err)
{
    struct json_object *given = json_object_object_get(object, name);
    if (given == NULL || json_object_get_boolean(given) == needed)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: %s must be %s, dt knows no other", path, name,
                   needed ? "true" : "false");
}

/* What would silently compute something else than the model's makers meant. */
static int refuse_variants(struct json_object *object, const char *path, struct dt_error *err)
{
    const char *type, *activation = "gelu_new";
    DT_TRY(dt_json_get_string(object, "model_type", path, &type, err));
    if (strcmp(type, "gpt2") != 0)
        return dt_fail(err, DT_EFORMAT, "%s: model_type '%s' is not a family that dt knows (gpt2)",
                       path, type);
    if (json_object_object_get(object, "activation_function"))
        DT_TRY(dt_json_get_string(object, "activation_function", path, &activation, err));
    if (strcmp(activation, "gelu_new") != 0)
        return dt_fail(err, DT_EFORMAT, "%s: activation_function '%s' is not gelu_new", path,
                       activation);
    DT_TRY(need_switch(object, "scale_attn_by_inverse_layer_idx", false, path, err));
    DT_TRY(need_switch(object, "scale_attn_weights", true, path, err));
    return need_switch(object, "tie_word_embeddings", true, path, err);
}

static int read_object(struct dt_model_config *c, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    const struct member members[] = {
        {"vocab_size", &c->vocab_size, false}, {"n_positions", &c->max_seq_len, false},
        {"n_embd", &c->hidden_size, false},    {"n_layer", &c->num_layers, false},
        {"n_head", &c->num_heads, false},      {"n_inner", &c->intermediate_size, true},
    };
    DT_TRY(refuse_variants(object, path, err));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        DT_TRY(read_member(object, &members[i], path, err));
    c->layer_norm_epsilon = 1e-5;
    if (json_object_object_get(object, "layer_norm_epsilon"))
        DT_TRY(dt_json_get_real(object, "layer_norm_epsilon", path, &c->layer_norm_epsilon, err));
    if (json_object_object_get(object, "initializer_range"))
        DT_TRY(dt_json_get_real(object, "initializer_range", path, &c->initializer_range, err));
    return dt_model_config_check(c, path, err);
}

int dt_model_config_read(struct dt_model_config *c, const char *path, struct dt_error *err)
{
    struct json_object *object;
    *c = (struct dt_model_config){.family = DT_GPT2};
    DT_TRY(dt_json_read(path, &object, err));
    int rc = read_object(c, object, path, err);
    json_object_put(object);
    return rc;
}

static void add_int(struct json_object *object, const char *name, long value)
{
    json_object_object_add(object, name, json_object_new_int64(value));
}

static void add_string(struct json_object *object, const char *name, const char *value)
{
    json_object_object_add(object, name, json_object_new_string(value));
}

static void add_real(struct json_object *object, const char *name, double value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_real(&text, value);
    json_object_object_add(object, name, json_object_new_double_s(value, text.data));
    dt_buffer_release(&text);
}

int dt_model_config_write(const struct dt_model_config *c, uint32_t eot, const char *path,
                          struct dt_error *err)
{
    struct json_object *object = json_object_new_object();
    struct json_object *architectures = json_object_new_array();
    json_object_array_add(architectures, json_object_new_string("GPT2LMHeadModel"));
    json_object_object_add(object, "architectures", architectures);
    add_string(object, "model_type", dt_families[c->family]);
    add_string(object, "activation_function", "gelu_new");
    add_int(object, "vocab_size", c->vocab_size);
    add_int(object, "n_positions", c->max_seq_len);
    add_int(object, "n_ctx", c->max_seq_len);
    add_int(object, "n_embd", c->hidden_size);
    add_int(object, "n_layer", c->num_layers);
    add_int(object, "n_head", c->num_heads);
    add_int(object, "n_inner", c->intermediate_size);
    add_real(object, "layer_norm_epsilon", c->layer_norm_epsilon);
    add_real(object, "initializer_range", c->initializer_range);
    for (const char *const *p =
             (const char *const[]){"attn_pdrop", "embd_pdrop", "resid_pdrop", NULL};
         *p; p++)
        json_object_object_add(object, *p, json_object_new_double_s(0.0, "0.0"));
    if (eot != UINT32_MAX) {
        add_int(object, "bos_token_id", eot);
        add_int(object, "eos_token_id", eot);
    }
    json_object_object_add(object, "tie_word_embeddings", json_object_new_boolean(true));
    add_string(object, "torch_dtype", "float32");
    int rc = dt_json_write(path, object, err);
    json_object_put(object);
    return rc;
}
