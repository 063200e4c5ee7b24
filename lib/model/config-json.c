/* SPDX-License-Identifier: MIT */
/* config.json: the configuration under the names that Hugging Face gives each family. */
#include <stddef.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "model/model-config.h"

struct member {
    const char *name;
    size_t offset; /* of a long in struct dt_model_config */
    bool optional;
};

#define AT(field) offsetof(struct dt_model_config, field)

static const struct member gpt2_members[] = {
    {"vocab_size", AT(vocab_size), false},
    {"n_positions", AT(max_seq_len), false},
    {"n_embd", AT(hidden_size), false},
    {"n_layer", AT(num_layers), false},
    {"n_head", AT(num_heads), false},
    {"n_inner", AT(intermediate_size), true},
    {NULL},
};

static const struct member llama_members[] = {
    {"vocab_size", AT(vocab_size), false},
    {"max_position_embeddings", AT(max_seq_len), false},
    {"hidden_size", AT(hidden_size), false},
    {"num_hidden_layers", AT(num_layers), false},
    {"num_attention_heads", AT(num_heads), false},
    {"num_key_value_heads", AT(num_kv_heads), true},
    {"intermediate_size", AT(intermediate_size), false},
    {NULL},
};

/* A switch that dt knows in one position alone; absent, it stands there. */
struct fixed_switch {
    const char *name;
    bool needed;
};

static const struct fixed_switch gpt2_switches[] = {
    {"scale_attn_by_inverse_layer_idx", false},
    {"scale_attn_weights", true},
    {"tie_word_embeddings", true},
    {NULL},
};

static const struct fixed_switch llama_switches[] = {
    {"attention_bias", false},
    {"mlp_bias", false},
    {NULL},
};

/* What differs between the families' files. */
static const struct dialect {
    const char *architecture;
    const char *activation_name, *activation;
    const char *epsilon_name;
    double epsilon; /* where the file gives none */
    bool tied;      /* likewise */
    const struct member *members;
    const struct fixed_switch *switches;
} dialects[] = {
    [DT_GPT2] = {"GPT2LMHeadModel", "activation_function", "gelu_new", "layer_norm_epsilon", 1e-5,
                 true, gpt2_members, gpt2_switches},
    [DT_LLAMA] = {"LlamaForCausalLM", "hidden_act", "silu", "rms_norm_eps", 1e-6, false,
                  llama_members, llama_switches},
};

static long *field(struct dt_model_config *c, const struct member *m)
{
    return (long *)((char *)c + m->offset);
}

static bool is_given(struct json_object *object, const char *name)
{
    struct json_object *value = json_object_object_get(object, name);
    return value != NULL && !json_object_is_type(value, json_type_null);
}

static int read_member(struct dt_model_config *c, struct json_object *object,
                       const struct member *m, const char *path, struct dt_error *err)
{
    int64_t value;
    if (m->optional && !is_given(object, m->name))
        return 0;
    DT_TRY(dt_json_get_int(object, m->name, path, &value, err));
    *field(c, m) = (long)value;
    return 0;
}

static int read_real(struct json_object *object, const char *name, double *value, const char *path,
                     struct dt_error *err)
{
    return is_given(object, name) ? dt_json_get_real(object, name, path, value, err) : 0;
}

static int read_tie(struct dt_model_config *c, struct json_object *object, bool otherwise,
                    const char *path, struct dt_error *err)
{
    struct json_object *tie;
    c->tie_word_embeddings = otherwise;
    if (!is_given(object, "tie_word_embeddings"))
        return 0;
    DT_TRY(dt_json_get(object, "tie_word_embeddings", json_type_boolean, path, &tie, err));
    c->tie_word_embeddings = json_object_get_boolean(tie);
    return 0;
}

static int read_family(struct dt_model_config *c, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    const char *type;
    DT_TRY(dt_json_get_string(object, "model_type", path, &type, err));
    for (c->family = 0; dt_families[c->family]; c->family++)
        if (strcmp(type, dt_families[c->family]) == 0)
            return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: model_type '%s' is not a family that dt knows (gpt2, llama)", path, type);
}

/* What would silently compute something else than the model's makers meant. */
static int refuse_variants(const struct dialect *d, struct json_object *object, const char *path,
                           struct dt_error *err)
{
    const char *activation = d->activation;
    if (json_object_object_get(object, d->activation_name))
        DT_TRY(dt_json_get_string(object, d->activation_name, path, &activation, err));
    if (strcmp(activation, d->activation) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: %s '%s' is not %s", path, d->activation_name,
                       activation, d->activation);
    for (const struct fixed_switch *f = d->switches; f->name; f++) {
        struct json_object *given = json_object_object_get(object, f->name);
        if (given && json_object_get_boolean(given) != f->needed)
            return dt_fail(err, DT_EFORMAT, "%s: %s must be %s, dt knows no other", path, f->name,
                           f->needed ? "true" : "false");
    }
    return 0;
}

/* Rotary positions: rope_theta stands alone in older files, in rope_parameters
 * in newer ones; angles scaled for longer contexts are not known here. */
static int read_rope(struct dt_model_config *c, struct json_object *object, const char *path,
                     struct dt_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    c->rope_theta = 10000;
    DT_TRY(read_real(object, "rope_theta", &c->rope_theta, path, err));
    for (int i = 0; i < 2; i++) {
        struct json_object *rope;
        const char *type = "default";
        if (!is_given(object, places[i]))
            continue;
        DT_TRY(dt_json_get(object, places[i], json_type_object, path, &rope, err));
        if (is_given(rope, "type"))
            DT_TRY(dt_json_get_string(rope, "type", path, &type, err));
        if (is_given(rope, "rope_type"))
            DT_TRY(dt_json_get_string(rope, "rope_type", path, &type, err));
        if (strcmp(type, "default") != 0)
            return dt_fail(err, DT_EFORMAT, "%s: %s of type '%s' is not known", path, places[i],
                           type);
        DT_TRY(read_real(rope, "rope_theta", &c->rope_theta, path, err));
    }
    return 0;
}

static int check_head_size(const struct dt_model_config *c, struct json_object *object,
                           const char *path, struct dt_error *err)
{
    int64_t size;
    if (!is_given(object, "head_dim"))
        return 0;
    DT_TRY(dt_json_get_int(object, "head_dim", path, &size, err));
    if (size == c->hidden_size / c->num_heads)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: head_dim %lld is not hidden_size / num_attention_heads",
                   path, (long long)size);
}

static int read_object(struct dt_model_config *c, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    DT_TRY(read_family(c, object, path, err));
    const struct dialect *d = &dialects[c->family];
    DT_TRY(refuse_variants(d, object, path, err));
    for (const struct member *m = d->members; m->name; m++)
        DT_TRY(read_member(c, object, m, path, err));
    c->layer_norm_epsilon = d->epsilon;
    DT_TRY(read_real(object, d->epsilon_name, &c->layer_norm_epsilon, path, err));
    DT_TRY(read_real(object, "initializer_range", &c->initializer_range, path, err));
    DT_TRY(read_tie(c, object, d->tied, path, err));
    if (c->family == DT_LLAMA)
        DT_TRY(read_rope(c, object, path, err));
    if (dt_model_config_check(c, "model", err) < 0) /* by the names of dt-config(5) */
        return dt_fail_context(err, "%s", path);
    return c->family == DT_LLAMA ? check_head_size(c, object, path, err) : 0;
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

/* As a decimal fraction also where it is whole, so that readers see a float. */
static void add_real(struct json_object *object, const char *name, double value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_real(&text, value);
    if (strpbrk(text.data, ".e") == NULL)
        dt_buffer_printf(&text, ".0");
    json_object_object_add(object, name, json_object_new_double_s(value, text.data));
    dt_buffer_release(&text);
}

static void add_rope(struct json_object *object, const struct dt_model_config *c)
{
    struct json_object *rope = json_object_new_object();
    add_real(object, "rope_theta", c->rope_theta);
    add_string(rope, "rope_type", "default");
    add_real(rope, "rope_theta", c->rope_theta);
    json_object_object_add(object, "rope_parameters", rope);
}

/* What readers of GPT-2's file expect besides. */
static void add_gpt2(struct json_object *object, const struct dt_model_config *c)
{
    static const char *const names[] = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};
    add_int(object, "n_ctx", c->max_seq_len);
    for (int i = 0; i < 3; i++)
        add_real(object, names[i], 0);
}

int dt_model_config_write(const struct dt_model_config *c, uint32_t eot, const char *path,
                          struct dt_error *err)
{
    const struct dialect *d = &dialects[c->family];
    struct dt_model_config copy = *c;
    struct json_object *object = json_object_new_object();
    struct json_object *architectures = json_object_new_array();
    json_object_array_add(architectures, json_object_new_string(d->architecture));
    json_object_object_add(object, "architectures", architectures);
    add_string(object, "model_type", dt_families[c->family]);
    add_string(object, d->activation_name, d->activation);
    for (const struct member *m = d->members; m->name; m++)
        add_int(object, m->name, *field(&copy, m));
    add_real(object, d->epsilon_name, c->layer_norm_epsilon);
    add_real(object, "initializer_range", c->initializer_range);
    if (c->family == DT_LLAMA)
        add_rope(object, c);
    else
        add_gpt2(object, c);
    if (eot != UINT32_MAX) {
        add_int(object, "bos_token_id", eot);
        add_int(object, "eos_token_id", eot);
    }
    json_object_object_add(object, "tie_word_embeddings",
                           json_object_new_boolean(c->tie_word_embeddings));
    add_string(object, "torch_dtype", "float32");
    int rc = dt_json_write(path, object, err);
    json_object_put(object);
    return rc;
}
