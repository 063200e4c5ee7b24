/* SPDX-License-Identifier: MIT */
/* Architectures of GGUF: keys, names and layout of tensors. */
#include "formats/gguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "formats/gguf-internal.h"

/* --- keys -------------------------------------------------------------------------------------*/

static const struct dt_gguf_key gpt2_keys[] = {
    {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", DT_GGUF_KEY_REAL},
    {"vocab_size", "vocab_size", DT_GGUF_KEY_SAME},
    {NULL},
};

#define PLAIN_KEYS                                                                                 \
    {"context_length", "max_position_embeddings"}, {"embedding_length", "hidden_size"},            \
        {"block_count", "num_hidden_layers"}, {"feed_forward_length", "intermediate_size"},        \
        {"attention.head_count", "num_attention_heads"},                                           \
    {                                                                                              \
        "vocab_size", "vocab_size", DT_GGUF_KEY_SAME                                               \
    }

/* Of the families with RoPE and RMSNorm. */
#define ROTARY_KEYS                                                                                \
    PLAIN_KEYS, {"attention.head_count_kv", "num_key_value_heads"},                                \
        {"attention.key_length", "head_dim"},                                                      \
        {"attention.value_length", "head_dim", DT_GGUF_KEY_SAME},                                  \
        {"attention.layer_norm_rms_epsilon", "rms_norm_eps", DT_GGUF_KEY_REAL},                    \
        {"rope.freq_base", "rope_theta", DT_GGUF_KEY_REAL},                                        \
        {"rope.dimension_count", "head_dim", DT_GGUF_KEY_SAME},                                    \
        {"rope.scaling.type", DT_GGUF_SCALING "type", DT_GGUF_KEY_SCALING},                        \
    {                                                                                              \
        "rope.scaling.factor", DT_GGUF_SCALING "factor", DT_GGUF_KEY_REAL                          \
    }

/* YaRN. llama.cpp derives the factor of cosines and sines from the scaling factor. */
#define YARN_KEYS                                                                                  \
    {"rope.scaling.original_context_length", DT_GGUF_SCALING "original_max_position_embeddings"},  \
        {"rope.scaling.yarn_beta_fast", DT_GGUF_SCALING "beta_fast", DT_GGUF_KEY_REAL},            \
    {                                                                                              \
        "rope.scaling.yarn_beta_slow", DT_GGUF_SCALING "beta_slow", DT_GGUF_KEY_REAL               \
    }

static const struct dt_gguf_key llama_keys[] = {ROTARY_KEYS, YARN_KEYS, {NULL}};

static const struct dt_gguf_key granite_keys[] = {
    ROTARY_KEYS,
    YARN_KEYS,
    {"attention.scale", "attention_multiplier", DT_GGUF_KEY_REAL, .needed = true},
    {"embedding_scale", "embedding_multiplier", DT_GGUF_KEY_REAL},
    {"residual_scale", "residual_multiplier", DT_GGUF_KEY_REAL},
    {"logit_scale", "logits_scaling", DT_GGUF_KEY_REAL, .needed = true},
    {NULL},
};

static const struct dt_gguf_key gemma_keys[] = {ROTARY_KEYS, {NULL}};

static const struct dt_gguf_key gemma2_keys[] = {
    ROTARY_KEYS,
    {"attention.sliding_window", "sliding_window"},
    {"attn_logit_softcapping", "attn_logit_softcapping", DT_GGUF_KEY_REAL},
    {"final_logit_softcapping", "final_logit_softcapping", DT_GGUF_KEY_REAL},
    {NULL},
};

static const struct dt_gguf_key gemma3_keys[] = {
    ROTARY_KEYS,
    {"attention.sliding_window", "sliding_window"},
    {"attention.sliding_window_pattern", "sliding_window_pattern"},
    {"rope.freq_base_swa", "rope_local_base_freq", DT_GGUF_KEY_REAL},
    {"final_logit_softcapping", "final_logit_softcapping", DT_GGUF_KEY_REAL},
    {NULL},
};

static const struct dt_gguf_key phi3_keys[] = {
    PLAIN_KEYS,
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "head_dim", DT_GGUF_KEY_SAME},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", DT_GGUF_KEY_REAL},
    {"rope.freq_base", "rope_theta", DT_GGUF_KEY_REAL},
    {"rope.dimension_count", "partial_rotary_factor", DT_GGUF_KEY_ROTARY},
    {NULL},
};

/* llama.cpp computes GELU by tanh. */
static const struct dt_gguf_key gpt_neox_keys[] = {
    PLAIN_KEYS,
    {"attention.layer_norm_epsilon", "layer_norm_eps", DT_GGUF_KEY_REAL},
    {"rope.freq_base", "rotary_emb_base", DT_GGUF_KEY_REAL},
    {"rope.dimension_count", "rotary_pct", DT_GGUF_KEY_ROTARY},
    {"use_parallel_residual", "use_parallel_residual", DT_GGUF_KEY_TRUTH, .needed = true},
    {NULL},
};

static const struct dt_gguf_key stablelm_keys[] = {
    PLAIN_KEYS,
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_eps", DT_GGUF_KEY_REAL},
    {"rope.freq_base", "rope_theta", DT_GGUF_KEY_REAL},
    {"rope.dimension_count", "partial_rotary_factor", DT_GGUF_KEY_ROTARY},
    {NULL},
};

static const struct dt_gguf_architecture architectures[] = {
    {"gpt2", "gpt2", gpt2_keys, .tied = true},
    {"llama", "llama", llama_keys, .permuted = true, .has_factors = true},
    {"llama", "mistral", llama_keys, .permuted = true},
    {"qwen2", "qwen2", llama_keys},
    {"qwen3", "qwen3", llama_keys},
    {"olmo2", "olmo2", llama_keys, .has_head = true},
    {"smollm3", "smollm3", llama_keys, .permuted = true, .rope_skip_every = 4},
    {"granite", "granite", granite_keys, .permuted = true},
    {"gemma", "gemma", gemma_keys, .tied = true},
    {"gemma2", "gemma2", gemma2_keys, .tied = true, .window_period = 2, .wide_layers = 46},
    {"gemma3", "gemma3_text", gemma3_keys, .window_period = 6, .wide_layers = 62},
    {"phi3", "phi3", phi3_keys, .has_head = true},
    {"gptneox", "gpt_neox", gpt_neox_keys, .has_head = true},
    {"stablelm", "stablelm", stablelm_keys, .has_head = true, .qkv_bias = "use_qkv_bias"},
};
#define ARCHITECTURES (sizeof architectures / sizeof *architectures)

const struct dt_gguf_architecture *dt_gguf_architecture_of_name(struct dt_gguf_text name)
{
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (dt_gguf_text_is(name, architectures[i].name))
            return &architectures[i];
    return NULL;
}

const struct dt_gguf_architecture *dt_gguf_architecture_of(const struct dt_model_config *c)
{
    const struct dt_gguf_architecture *found = NULL;
    struct json_object *config = dt_model_config_to_json(c, UINT32_MAX);
    const char *type = dt_json_text(json_object_object_get(config, "model_type"));
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (strcmp(type, architectures[i].model_type) == 0)
            found = &architectures[i];
    json_object_put(config);
    return found;
}

bool dt_gguf_holds(const struct dt_model_config *c)
{
    return dt_gguf_architecture_of(c) != NULL;
}

static char *list_of(bool model_types)
{
    struct dt_buffer list = DT_BUFFER_EMPTY;
    const char *last = "";
    for (size_t i = 0; i < ARCHITECTURES; i++) {
        const char *name = model_types ? architectures[i].model_type : architectures[i].name;
        if (strcmp(name, last) != 0) /* rows with one name are neighbours */
            dt_buffer_printf(&list, "%s%s", i ? ", " : "", name);
        last = name;
    }
    return list.data;
}

char *dt_gguf_architecture_list(void)
{
    return list_of(false);
}

char *dt_gguf_model_type_list(void)
{
    return list_of(true);
}

static const struct dt_gguf_key *find_key(const struct dt_gguf_architecture *a, const char *name,
                                          bool by_member)
{
    for (const struct dt_gguf_key *k = a->keys; k->key; k++)
        if (strcmp(by_member ? k->member : k->key, name) == 0)
            return k;
    return NULL;
}

/* A number or switch whose absence means the same. */
static bool is_neutral(const struct dt_gguf_value *v, const char *name)
{
    if (v->kind == DT_GGUF_KIND_STRING)
        return dt_gguf_text_is(v->text, "none") || strcmp(name, "tensor_data_layout") == 0;
    return v->kind != DT_GGUF_KIND_ARRAY &&
           (v->kind == DT_GGUF_KIND_F32 || v->kind == DT_GGUF_KIND_F64 ? v->real == 0
                                                                       : v->whole == 0);
}

int dt_gguf_check_keys(const struct dt_gguf_architecture *a, const struct dt_gguf_file *f,
                       struct dt_error *err)
{
    size_t prefix = strlen(a->name);
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < f->value_count; i++) {
        const struct dt_gguf_value *v = &f->values[i];
        if (v->key.size <= prefix + 1 || memcmp(v->key.data, a->name, prefix) != 0 ||
            v->key.data[prefix] != '.')
            continue;
        char *name = dt_strndup(v->key.data + prefix + 1, v->key.size - prefix - 1);
        if (find_key(a, name, false) == NULL && !is_neutral(v, name))
            rc = dt_fail(err, DT_EFORMAT, "%s: %s.%s is not known", f->path, a->name, name);
        free(name);
    }
    return rc;
}

/* --- what has no key ---------------------------------------------------------------------------*/

static bool skips_fit(const struct dt_gguf_architecture *a, const struct dt_model_config *c)
{
    for (long i = 0; i < c->num_layers; i++) {
        bool skipped = c->rope_skip_every > 0 && (i + 1) % c->rope_skip_every == 0;
        if (skipped != (a->rope_skip_every > 0 && (i + 1) % a->rope_skip_every == 0))
            return false;
    }
    return true;
}

/* With period, the number that the key says, or 0. */
static bool windows_fit(const struct dt_gguf_architecture *a, const struct dt_model_config *c,
                        int64_t period)
{
    bool windows = c->sliding_window > 0 || find_key(a, "sliding_window_pattern", true) == NULL;
    period = period > 0 ? period : a->window_period;
    for (long i = 0; i < c->num_layers; i++) {
        bool local = windows && period > 0 && (i + 1) % period != 0;
        if (local != (dt_model_window(c, i) > 0))
            return false;
    }
    return true;
}

int64_t dt_gguf_query_scalar(const struct dt_gguf_architecture *a, const struct dt_model_config *c)
{
    return c->num_layers == a->wide_layers ? c->hidden_size / c->num_heads : dt_model_head_dim(c);
}

static bool query_scale_fits(const struct dt_gguf_architecture *a, const struct dt_model_config *c)
{
    double usual = 1 / sqrt((double)dt_model_head_dim(c));
    double scale = c->attention_scale > 0 ? c->attention_scale : usual;
    return a->wide_layers > 0 &&
           (float)scale == (float)(1 / sqrt((double)dt_gguf_query_scalar(a, c)));
}

/* --- members without a row ---------------------------------------------------------------------*/

static bool is_silent(const char *name)
{
    /* rope_parameters repeats rope_theta, rope_scaling and others. */
    static const char *const silent[] = {"architectures",
                                         "model_type",
                                         "hidden_act",
                                         "hidden_activation",
                                         "torch_dtype",
                                         "activation_function",
                                         "n_ctx",
                                         "initializer_range",
                                         "embd_pdrop",
                                         "resid_pdrop",
                                         "attn_pdrop",
                                         "attention_dropout",
                                         "rope_parameters",
                                         "hidden_dropout_prob",
                                         "hidden_dropout",
                                         "tie_word_embeddings",
                                         "rope_scaling",
                                         "no_rope_layers",
                                         "layer_types",
                                         "query_pre_attn_scalar",
                                         "no_rope_layer_interval"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(silent[i], name) == 0)
            return true;
    return false;
}

static int no_key(const struct dt_gguf_architecture *a, const char *place, const char *name,
                  struct dt_error *err)
{
    return dt_fail(err, DT_EINVALID, "GGUF's architecture %s has no key for config.json's %s%s",
                   a->name, place, name);
}

static int other_value(const struct dt_gguf_architecture *a, const char *name, struct dt_error *err)
{
    return dt_fail(err, DT_EINVALID,
                   "GGUF's architecture %s has no key for this value of config.json's %s", a->name,
                   name);
}

static int check_scaling(const struct dt_gguf_architecture *a, const struct dt_model_config *c,
                         struct json_object *config, struct dt_error *err)
{
    if (c->rope_scaling == DT_ROPE_SCALING_NONE)
        return 0;
    bool usual = c->rope_low_frequency_factor == DT_GGUF_LOW &&
                 c->rope_high_frequency_factor == DT_GGUF_HIGH;
    if (c->rope_scaling == DT_ROPE_SCALING_LLAMA3 && a->has_factors)
        return usual ? 0
                     : other_value(a, DT_GGUF_SCALING "low_freq_factor or high_freq_factor", err);
    if (c->rope_scaling != DT_ROPE_SCALING_LINEAR && c->rope_scaling != DT_ROPE_SCALING_YARN)
        return other_value(a, DT_GGUF_SCALING "type", err);
    json_object_object_foreach(json_object_object_get(config, "rope_scaling"), name, value)
    {
        char member[64];
        (void)value;
        snprintf(member, sizeof member, DT_GGUF_SCALING "%s", name);
        if (find_key(a, member, true) == NULL && strcmp(name, "rope_type") != 0)
            return no_key(a, DT_GGUF_SCALING, name, err);
    }
    return 0;
}

int dt_gguf_check_members(const struct dt_gguf_architecture *a, const struct dt_model_config *c,
                          struct json_object *config, struct dt_error *err)
{
    struct json_object *pattern = json_object_object_get(config, "sliding_window_pattern");
    json_object_object_foreach(config, name, value)
    {
        bool off = json_object_is_type(value, json_type_boolean) && !json_object_get_boolean(value);
        bool window = strcmp(name, "use_sliding_window") == 0; /* layer_types says it */
        bool bias = a->qkv_bias && strcmp(name, a->qkv_bias) == 0;
        if (value && !off && !window && !bias && !is_silent(name) &&
            find_key(a, name, true) == NULL)
            return no_key(a, "", name, err);
        /* Without these keys llama.cpp takes a default. */
        if (value == NULL && strstr(name, "_softcapping") &&
            find_key(a, "attn_logit_softcapping", true))
            return other_value(a, name, err);
    }
    if (c->gelu != DT_GELU_DEFAULT)
        return other_value(a, "hidden_act", err);
    DT_TRY(check_scaling(a, c, config, err));
    if (!skips_fit(a, c))
        return other_value(a, "no_rope_layers", err);
    if (!windows_fit(a, c, pattern ? json_object_get_int64(pattern) : 0))
        return other_value(a, "layer_types", err);
    if (c->attention_scale > 0 && find_key(a, "attention_multiplier", true) == NULL &&
        !query_scale_fits(a, c))
        return other_value(a, "query_pre_attn_scalar", err);
    if (a->tied && !c->tie_word_embeddings)
        return other_value(a, "tie_word_embeddings", err);
    return 0;
}

/* --- tensors ----------------------------------------------------------------------------------*/

#define FUSED(architecture)                                                                        \
    {DT_ROLE_Q_WEIGHT, "blk.%d.attn_qkv.weight", architecture},                                    \
        {DT_ROLE_K_WEIGHT, "blk.%d.attn_qkv.weight", architecture},                                \
    {                                                                                              \
        DT_ROLE_V_WEIGHT, "blk.%d.attn_qkv.weight", architecture                                   \
    }

static const struct {
    enum dt_role role;
    const char *name;         /* %d: the layer */
    const char *architecture; /* that names it so, before the rows of all others; NULL: all */
} names[] = {
    {DT_ROLE_NORM1_WEIGHT, "blk.%d.post_attention_norm.weight", "olmo2"},
    {DT_ROLE_NORM2_WEIGHT, "blk.%d.post_ffw_norm.weight", "olmo2"},
    FUSED("phi3"),
    {DT_ROLE_GATE_WEIGHT, "blk.%d.ffn_up.weight", "phi3"},
    FUSED("gptneox"),
    {DT_ROLE_Q_BIAS, "blk.%d.attn_qkv.bias", "gptneox"},
    {DT_ROLE_K_BIAS, "blk.%d.attn_qkv.bias", "gptneox"},
    {DT_ROLE_V_BIAS, "blk.%d.attn_qkv.bias", "gptneox"},
    {DT_ROLE_TOKEN_EMBEDDING, "token_embd.weight"},
    {DT_ROLE_POSITION_EMBEDDING, "position_embd.weight"},
    {DT_ROLE_NORM1_WEIGHT, "blk.%d.attn_norm.weight"},
    {DT_ROLE_NORM1_BIAS, "blk.%d.attn_norm.bias"},
    {DT_ROLE_QKV_WEIGHT, "blk.%d.attn_qkv.weight"},
    {DT_ROLE_QKV_BIAS, "blk.%d.attn_qkv.bias"},
    {DT_ROLE_Q_WEIGHT, "blk.%d.attn_q.weight"},
    {DT_ROLE_Q_BIAS, "blk.%d.attn_q.bias"},
    {DT_ROLE_K_WEIGHT, "blk.%d.attn_k.weight"},
    {DT_ROLE_K_BIAS, "blk.%d.attn_k.bias"},
    {DT_ROLE_V_WEIGHT, "blk.%d.attn_v.weight"},
    {DT_ROLE_V_BIAS, "blk.%d.attn_v.bias"},
    {DT_ROLE_Q_NORM_WEIGHT, "blk.%d.attn_q_norm.weight"},
    {DT_ROLE_K_NORM_WEIGHT, "blk.%d.attn_k_norm.weight"},
    {DT_ROLE_PROJECTION_WEIGHT, "blk.%d.attn_output.weight"},
    {DT_ROLE_PROJECTION_BIAS, "blk.%d.attn_output.bias"},
    {DT_ROLE_NORM1_OUTPUT_WEIGHT, "blk.%d.post_attention_norm.weight"},
    {DT_ROLE_NORM2_WEIGHT, "blk.%d.ffn_norm.weight"},
    {DT_ROLE_NORM2_BIAS, "blk.%d.ffn_norm.bias"},
    {DT_ROLE_GATE_WEIGHT, "blk.%d.ffn_gate.weight"},
    {DT_ROLE_UP_WEIGHT, "blk.%d.ffn_up.weight"},
    {DT_ROLE_UP_BIAS, "blk.%d.ffn_up.bias"},
    {DT_ROLE_DOWN_WEIGHT, "blk.%d.ffn_down.weight"},
    {DT_ROLE_DOWN_BIAS, "blk.%d.ffn_down.bias"},
    {DT_ROLE_NORM2_OUTPUT_WEIGHT, "blk.%d.post_ffw_norm.weight"},
    {DT_ROLE_FINAL_NORM_WEIGHT, "output_norm.weight"},
    {DT_ROLE_FINAL_NORM_BIAS, "output_norm.bias"},
    {DT_ROLE_HEAD_WEIGHT, "output.weight"},
    {DT_ROLE_NONE, DT_GGUF_FACTORS},
};

bool dt_gguf_name(const struct dt_gguf_architecture *a, const struct dt_param *p, char name[64])
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *number = strstr(names[i].name, "%d");
        if (names[i].role != p->role ||
            (names[i].architecture && strcmp(names[i].architecture, a->name) != 0))
            continue;
        if (number)
            snprintf(name, 64, "%.*s%d%s", (int)(number - names[i].name), names[i].name, p->layer,
                     number + 2);
        else
            snprintf(name, 64, "%s", names[i].name);
        return true;
    }
    return false;
}

bool dt_gguf_is_fused(const struct dt_gguf_architecture *a, const struct dt_param *p,
                      const struct dt_param *q)
{
    char first[64], second[64];
    return p->layer == q->layer && dt_gguf_name(a, p, first) && dt_gguf_name(a, q, second) &&
           strcmp(first, second) == 0;
}

void dt_gguf_rope_factors(const struct dt_model_config *c, float *factors)
{
    int64_t pairs = dt_rope_columns(c, DT_ROPE_TABLE_GLOBAL) / 2;
    double *scaled = dt_alloc((size_t)pairs, sizeof *scaled);
    double *plain = dt_alloc((size_t)pairs, sizeof *plain);
    struct dt_model_config unscaled = *c;
    unscaled.rope_scaling = DT_ROPE_SCALING_NONE;
    dt_rope_frequencies(c, DT_ROPE_TABLE_GLOBAL, scaled);
    dt_rope_frequencies(&unscaled, DT_ROPE_TABLE_GLOBAL, plain);
    for (int64_t i = 0; i < pairs; i++)
        factors[i] = (float)(plain[i] / scaled[i]);
    free(scaled);
    free(plain);
}

bool dt_gguf_is_transposed(const struct dt_param *p)
{
    return p->rank == 2 && !p->transposed && p->role != DT_ROLE_TOKEN_EMBEDDING &&
           p->role != DT_ROLE_POSITION_EMBEDDING && p->role != DT_ROLE_HEAD_WEIGHT;
}

bool dt_gguf_is_shifted(const struct dt_model_config *c, const struct dt_param *p)
{
    /* Vectors are norms: biases of Gemma have no key. */
    return dt_family_of(c)->norm == DT_NORM_RMS_PLUS_ONE && p->rank == 1;
}

int64_t dt_gguf_permuted_heads(const struct dt_gguf_architecture *a,
                               const struct dt_model_config *c, const struct dt_param *p)
{
    if (!a->permuted)
        return 0;
    switch (p->role) {
    case DT_ROLE_Q_WEIGHT:
    case DT_ROLE_Q_BIAS:
        return c->num_heads;
    case DT_ROLE_K_WEIGHT:
    case DT_ROLE_K_BIAS:
        return c->num_kv_heads;
    default:
        return 0;
    }
}

void dt_gguf_permute(float *to, const float *from, int64_t rows, int64_t columns, int64_t heads,
                     bool back)
{
    int64_t size = rows / heads, half = size / 2;
    for (int64_t row = 0; row < rows; row++) {
        int64_t head = row / size, index = row % size; /* in Hugging Face's order */
        int64_t moved = head * size + index % half * 2 + index / half;
        memcpy(to + (back ? row : moved) * columns, from + (back ? moved : row) * columns,
               (size_t)columns * sizeof *to);
    }
}

void dt_gguf_transpose(float *to, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}
