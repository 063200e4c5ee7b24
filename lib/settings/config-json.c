/* SPDX-License-Identifier: MIT */
/* config.json: the configuration under the names that Hugging Face gives each family. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "settings/model-config.h"
#include "json/json.h"

struct member {
    const char *name;
    size_t offset; /* of a long in struct dt_model_config */
    bool optional; /* absent, or null as transformers writes it */
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

static const struct member bert_members[] = {
    {"vocab_size", AT(vocab_size), false},
    {"max_position_embeddings", AT(max_seq_len), false},
    {"hidden_size", AT(hidden_size), false},
    {"num_hidden_layers", AT(num_layers), false},
    {"num_attention_heads", AT(num_heads), false},
    {"intermediate_size", AT(intermediate_size), false},
    {NULL},
};

static const struct member distilbert_members[] = {
    {"vocab_size", AT(vocab_size), false},
    {"max_position_embeddings", AT(max_seq_len), false},
    {"dim", AT(hidden_size), false},
    {"n_layers", AT(num_layers), false},
    {"n_heads", AT(num_heads), false},
    {"hidden_dim", AT(intermediate_size), false},
    {NULL},
};

/* A switch or number that dt knows with one value alone. */
struct fixed {
    const char *name;
    int value; /* 0 and 1 are false and true of a switch */
    bool number;
    bool written;  /* because readers would take another for granted */
    int otherwise; /* what the file means where it does not say */
};

static const struct fixed gpt2_fixed[] = {
    {"scale_attn_by_inverse_layer_idx", false, .otherwise = false},
    {"scale_attn_weights", true, .otherwise = true},
    {"add_cross_attention", false, .otherwise = false},
    {"tie_word_embeddings", true, .otherwise = true},
    {NULL},
};

static const struct fixed llama_fixed[] = {
    {"attention_bias", false, .otherwise = false},
    {"mlp_bias", false, .otherwise = false},
    {"use_sliding_window", false, .otherwise = false},
    {NULL},
};

static const struct fixed bert_fixed[] = {
    {"is_decoder", false, .otherwise = false},
    {"add_cross_attention", false, .otherwise = false},
    {"type_vocab_size", 2, .number = true, .written = true, .otherwise = 2},
    {"tie_word_embeddings", true, .otherwise = true},
    {NULL},
};

static const struct fixed distilbert_fixed[] = {
    {"sinusoidal_pos_embds", false, .written = true, .otherwise = false},
    {"tie_word_embeddings", true, .otherwise = true},
    {NULL},
};

/* Rates of dropout. Where one is given under several names, the last stands for all. */
struct rate {
    const char *name;
    size_t offset; /* of a double in struct dt_model_config */
    double otherwise;
};

static const struct rate gpt2_rates[] = {
    {"embd_pdrop", AT(dropout), 0.1},
    {"resid_pdrop", AT(dropout), 0.1},
    {"attn_pdrop", AT(attention_dropout), 0.1},
    {NULL},
};

static const struct rate llama_rates[] = {
    {"attention_dropout", AT(attention_dropout), 0},
    {NULL},
};

static const struct rate bert_rates[] = {
    {"hidden_dropout_prob", AT(dropout), 0.1},
    {"attention_probs_dropout_prob", AT(attention_dropout), 0.1},
    {NULL},
};

static const struct rate distilbert_rates[] = {
    {"dropout", AT(dropout), 0.1},
    {"attention_dropout", AT(attention_dropout), 0.1},
    {NULL},
};

/* What differs between the families' files. */
static const struct dialect {
    const char *model_type;
    int family;
    bool qk_norm;
    const char *architecture;
    const char *activation_name, *activation;
    const char *epsilon_name; /* NULL: the family has one alone */
    double epsilon;           /* where the file gives none */
    bool tied;                /* likewise */
    const struct member *members;
    const struct fixed *fixed;
    const struct rate *rates;
} dialects[] = {
    {"gpt2", DT_FAMILY_GPT2, false, "GPT2LMHeadModel", "activation_function", "gelu_new",
     "layer_norm_epsilon", 1e-5, true, gpt2_members, gpt2_fixed, gpt2_rates},
    {"llama", DT_FAMILY_LLAMA, false, "LlamaForCausalLM", "hidden_act", "silu", "rms_norm_eps",
     1e-6, false, llama_members, llama_fixed, llama_rates},
    {"qwen3", DT_FAMILY_LLAMA, true, "Qwen3ForCausalLM", "hidden_act", "silu", "rms_norm_eps", 1e-6,
     false, llama_members, llama_fixed, llama_rates},
    {"bert", DT_FAMILY_BERT, false, "BertForMaskedLM", "hidden_act", "gelu", "layer_norm_eps",
     1e-12, true, bert_members, bert_fixed, bert_rates},
    {"distilbert", DT_FAMILY_DISTILBERT, false, "DistilBertForMaskedLM", "activation", "gelu", NULL,
     1e-12, true, distilbert_members, distilbert_fixed, distilbert_rates},
};
#define DIALECTS (sizeof dialects / sizeof *dialects)

static long *field(struct dt_model_config *c, const struct member *m)
{
    return (long *)((char *)c + m->offset);
}

static bool is_given(struct json_object *object, const char *name)
{
    return json_object_object_get_ex(object, name, NULL);
}

/* For members that transformers writes as null where they are not set. Null is refused elsewhere,
 * as a value that was lost. */
static bool is_set(struct json_object *object, const char *name)
{
    return json_object_object_get(object, name) != NULL;
}

static int read_member(struct dt_model_config *c, struct json_object *object,
                       const struct member *m, const char *path, struct dt_error *err)
{
    int64_t value;
    if (m->optional && !is_set(object, m->name))
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

static int find_dialect(const struct dialect **found, struct json_object *object, const char *path,
                        struct dt_error *err)
{
    struct dt_buffer known = DT_BUFFER_EMPTY;
    const char *type;
    DT_TRY(dt_json_get_string(object, "model_type", path, &type, err));
    for (size_t i = 0; i < DIALECTS; i++) {
        *found = &dialects[i];
        if (strcmp(type, dialects[i].model_type) == 0) {
            dt_buffer_release(&known);
            return 0;
        }
        dt_buffer_printf(&known, "%s%s", i > 0 ? ", " : "", dialects[i].model_type);
    }
    int rc = dt_fail(err, DT_EFORMAT, "%s: model_type '%s' is not a family that dt knows (%s)",
                     path, type, known.data);
    dt_buffer_release(&known);
    return rc;
}

static int check_fixed(const struct fixed *f, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    int64_t number = f->otherwise;
    if (f->number && is_given(object, f->name))
        DT_TRY(dt_json_get_int(object, f->name, path, &number, err));
    if (!f->number && is_given(object, f->name)) {
        struct json_object *truth;
        DT_TRY(dt_json_get(object, f->name, json_type_boolean, path, &truth, err));
        number = json_object_get_boolean(truth);
    }
    if (number == f->value)
        return 0;
    if (f->number)
        return dt_fail(err, DT_EFORMAT, "%s: %s must be %d, dt knows no other", path, f->name,
                       f->value);
    return dt_fail(err, DT_EFORMAT, "%s: %s must be %s, dt knows no other", path, f->name,
                   f->value ? "true" : "false");
}

/* What would silently compute something else than the model's makers meant. */
static int refuse_variants(const struct dialect *d, struct json_object *object, const char *path,
                           struct dt_error *err)
{
    const char *activation = d->activation;
    if (is_given(object, d->activation_name))
        DT_TRY(dt_json_get_string(object, d->activation_name, path, &activation, err));
    if (strcmp(activation, d->activation) != 0)
        return dt_fail(err, DT_EFORMAT, "%s: %s '%s' is not %s", path, d->activation_name,
                       activation, d->activation);
    for (const struct fixed *f = d->fixed; f->name; f++)
        DT_TRY(check_fixed(f, object, path, err));
    return 0;
}

static double *rate_of(struct dt_model_config *c, const struct rate *r)
{
    return (double *)((char *)c + r->offset);
}

static int read_rates(struct dt_model_config *c, const struct dialect *d,
                      struct json_object *object, const char *path, struct dt_error *err)
{
    for (const struct rate *r = d->rates; r->name; r++) {
        double *rate = rate_of(c, r);
        *rate = r->otherwise;
        DT_TRY(read_real(object, r->name, rate, path, err));
    }
    return 0;
}

/* Rotary positions: rope_theta stands alone in older files, in rope_parameters
 * in newer ones; angles scaled for longer contexts are not known here. */
static int read_rope(struct dt_model_config *c, struct json_object *object, const char *path,
                     struct dt_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    c->rope_theta = DT_ROPE_THETA;
    DT_TRY(read_real(object, "rope_theta", &c->rope_theta, path, err));
    for (int i = 0; i < 2; i++) {
        struct json_object *rope;
        const char *type = "default";
        if (!is_set(object, places[i]))
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
    int64_t size = c->qk_norm ? 128 : c->hidden_size / c->num_heads; /* where it is not given */
    if (is_set(object, "head_dim"))
        DT_TRY(dt_json_get_int(object, "head_dim", path, &size, err));
    if (size == c->hidden_size / c->num_heads)
        return 0;
    return dt_fail(err, DT_EFORMAT, "%s: head_dim %lld is not hidden_size / num_attention_heads",
                   path, (long long)size);
}

static int read_object(struct dt_model_config *c, struct json_object *object, const char *path,
                       struct dt_error *err)
{
    const struct dialect *d;
    DT_TRY(find_dialect(&d, object, path, err));
    DT_TRY(refuse_variants(d, object, path, err));
    c->family = d->family;
    c->qk_norm = d->qk_norm;
    for (const struct member *m = d->members; m->name; m++)
        DT_TRY(read_member(c, object, m, path, err));
    c->layer_norm_epsilon = d->epsilon;
    if (d->epsilon_name)
        DT_TRY(read_real(object, d->epsilon_name, &c->layer_norm_epsilon, path, err));
    if (!(c->layer_norm_epsilon > 0)) /* which elsewhere means: the usual one */
        return dt_fail(err, DT_EINVALID, "%s: %s must be above 0", path, d->epsilon_name);
    DT_TRY(read_real(object, "initializer_range", &c->initializer_range, path, err));
    DT_TRY(read_rates(c, d, object, path, err));
    DT_TRY(read_tie(c, object, d->tied, path, err));
    if (c->family == DT_FAMILY_LLAMA)
        DT_TRY(read_rope(c, object, path, err));
    if (dt_model_config_check(c, "model", err) < 0) /* by the names of dt-config(5) */
        return dt_fail_context(err, "%s", path);
    return c->family == DT_FAMILY_LLAMA ? check_head_size(c, object, path, err) : 0;
}

int dt_model_config_read(struct dt_model_config *c, const char *path, struct dt_error *err)
{
    struct json_object *object;
    *c = (struct dt_model_config){.family = DT_FAMILY_GPT2};
    DT_TRY(dt_json_read(path, &object, err));
    int rc = read_object(c, object, path, err);
    json_object_put(object);
    return rc;
}

static void add_int(struct json_object *object, const char *name, long value)
{
    dt_json_object_add(object, name, dt_json_new_int(value));
}

static void add_string(struct json_object *object, const char *name, const char *value)
{
    dt_json_object_add(object, name, dt_json_new_string(value));
}

/* As a decimal fraction also where it is whole, so that readers see a float. */
static void add_real(struct json_object *object, const char *name, double value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_buffer_add_real(&text, value);
    if (strpbrk(text.data, ".e") == NULL)
        dt_buffer_printf(&text, ".0");
    dt_json_object_add(object, name, dt_json_new_double_s(value, text.data));
    dt_buffer_release(&text);
}

static void add_rope(struct json_object *object, const struct dt_model_config *c)
{
    struct json_object *rope = dt_json_new_object();
    add_real(object, "rope_theta", c->rope_theta);
    add_string(rope, "rope_type", "default");
    add_real(rope, "rope_theta", c->rope_theta);
    dt_json_object_add(object, "rope_parameters", rope);
}

static void add_truth(struct json_object *object, const char *name, bool value)
{
    dt_json_object_add(object, name, dt_json_new_boolean(value));
}

static const struct dialect *dialect_of(const struct dt_model_config *c)
{
    for (size_t i = 0; i < DIALECTS; i++)
        if (dialects[i].family == c->family && dialects[i].qk_norm == c->qk_norm)
            return &dialects[i];
    abort(); /* dt_model_config_check lets no other through */
}

static void add_dimensions(struct json_object *object, const struct dialect *d,
                           struct dt_model_config *c)
{
    for (const struct member *m = d->members; m->name; m++)
        add_int(object, m->name, *field(c, m));
    if (c->family == DT_FAMILY_GPT2)
        add_int(object, "n_ctx", c->max_seq_len);
    if (c->qk_norm) /* Qwen3's readers take 128 for granted */
        add_int(object, "head_dim", c->hidden_size / c->num_heads);
    for (const struct fixed *f = d->fixed; f->name; f++)
        if (f->written && f->number)
            add_int(object, f->name, f->value);
        else if (f->written)
            add_truth(object, f->name, f->value);
}

static void add_reals(struct json_object *object, const struct dialect *d,
                      struct dt_model_config *c)
{
    if (d->epsilon_name)
        add_real(object, d->epsilon_name, c->layer_norm_epsilon);
    add_real(object, "initializer_range", c->initializer_range);
    for (const struct rate *r = d->rates; r->name; r++)
        add_real(object, r->name, *rate_of(c, r));
    if (c->family == DT_FAMILY_LLAMA)
        add_rope(object, c);
}

/* Ids of the tokens that begin and end documents, and with masked models fill rows. */
static void add_tokens(struct json_object *object, const struct dt_model_config *c, uint32_t eot)
{
    if (eot == UINT32_MAX)
        return;
    add_int(object, "bos_token_id", eot);
    add_int(object, "eos_token_id", eot);
    if (dt_model_is_masked(c))
        add_int(object, "pad_token_id", eot);
}

int dt_model_config_write(const struct dt_model_config *c, uint32_t eot, const char *path,
                          struct dt_error *err)
{
    const struct dialect *d = dialect_of(c);
    struct dt_model_config copy = *c;
    struct json_object *object = dt_json_new_object();
    struct json_object *architectures = dt_json_new_array();
    dt_json_array_add(architectures, dt_json_new_string(d->architecture));
    dt_json_object_add(object, "architectures", architectures);
    add_string(object, "model_type", d->model_type);
    add_string(object, d->activation_name, d->activation);
    add_dimensions(object, d, &copy);
    add_reals(object, d, &copy);
    add_tokens(object, c, eot);
    add_truth(object, "tie_word_embeddings", c->tie_word_embeddings);
    add_string(object, "torch_dtype", "float32");
    int rc = dt_json_write(path, object, err);
    json_object_put(object);
    return rc;
}
