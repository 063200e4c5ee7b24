/* SPDX-License-Identifier: MIT */
#include "settings/model-config.h"

#include <stddef.h>
#include <stdlib.h>

const char *const dt_rope_scaling_names[] = {"none", "linear", "dynamic", "llama3", "yarn", NULL};
const char *const dt_attention_bias_names[] = {"none", "qkv", "all", NULL};

static int check_range(const char *subject, const char *name, long value, long most,
                       struct dt_error *err)
{
    if (value >= 1 && value <= most)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s.%s must be from 1 to %ld, not %ld", subject, name, most,
                   value);
}

static int check_rate(const char *subject, const char *name, double rate, struct dt_error *err)
{
    if (rate >= 0 && rate < 1)
        return 0;
    return dt_fail(err, DT_EINVALID, "%s.%s must be at least 0 and below 1", subject, name);
}

void dt_model_config_derive(struct dt_model_config *c)
{
    const struct dt_family_descriptor *family = dt_family_of(c);
    if (c->num_kv_heads == 0)
        c->num_kv_heads = c->num_heads;
    if (c->intermediate_size == 0 && dt_model_is_gated(c))
        c->intermediate_size = (8 * c->hidden_size + 191) / 192 * 64;
    else if (c->intermediate_size == 0)
        c->intermediate_size = 4 * c->hidden_size;
    if (c->initializer_range == 0)
        c->initializer_range = 0.02;
    if (c->layer_norm_epsilon == 0)
        c->layer_norm_epsilon = family->epsilon;
}

static int check_heads(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    if (c->hidden_size % c->num_heads != 0)
        return dt_fail(err, DT_EINVALID, "%s.hidden_size %ld is not a multiple of num_heads %ld",
                       subject, c->hidden_size, c->num_heads);
    if (c->num_heads % c->num_kv_heads != 0)
        return dt_fail(err, DT_EINVALID, "%s.num_heads %ld is not a multiple of num_kv_heads %ld",
                       subject, c->num_heads, c->num_kv_heads);
    return 0;
}

/* Whether config.json has a model_type for the family with, or without, qk_norm. */
static bool has_dialect(const struct dt_family_descriptor *family, bool qk_norm)
{
    const struct dt_dialect_spec *d = family->json->dialects;
    while (d->model_type && d->qk_norm != qk_norm)
        d++;
    return d->model_type != NULL;
}

/* Settings that the family does not support. */
static int check_family(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    const struct dt_family_descriptor *family = dt_family_of(c);
    const char *name = dt_family_names[c->family];
    if (family->kv_heads == DT_KV_HEADS_EQUAL && c->num_kv_heads != c->num_heads)
        return dt_fail(err, DT_EINVALID, "%s.num_kv_heads must be num_heads with %s", subject,
                       name);
    if (family->tying == DT_TYING_ALWAYS && !c->tie_word_embeddings)
        return dt_fail(err, DT_EINVALID, "%s.tie_word_embeddings must be true with %s", subject,
                       name);
    if (!has_dialect(family, c->qk_norm))
        return dt_fail(err, DT_EINVALID, "%s.qk_norm must be %s with %s", subject,
                       c->qk_norm ? "false" : "true", name);
    if (family->epsilon_kind == DT_EPSILON_FIXED && c->layer_norm_epsilon != family->epsilon)
        return dt_fail(err, DT_EINVALID, "%s.layer_norm_epsilon must be %g with %s", subject,
                       family->epsilon, name);
    return 0;
}

static int check_positions(const struct dt_model_config *c, const char *subject,
                           struct dt_error *err)
{
    if (!dt_model_is_rotary(c)) {
        if (c->rope_theta != 0 && c->rope_theta != DT_ROPE_THETA)
            return dt_fail(err, DT_EINVALID,
                           "%s.rope_theta is for RoPE, and %s has learned position embeddings: "
                           "leave it out",
                           subject, dt_family_names[c->family]);
        return 0;
    }
    if (dt_model_head_dim(c) % 2 != 0)
        return dt_fail(
            err, DT_EINVALID,
            "%s.hidden_size %ld / num_heads %ld is odd, but RoPE needs an even head size", subject,
            c->hidden_size, c->num_heads);
    if (!(c->rope_theta >= 1 && c->rope_theta <= 1e12))
        return dt_fail(err, DT_EINVALID, "%s.rope_theta must be from 1 to 1e12", subject);
    return 0;
}

int dt_model_config_check(struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    dt_model_config_derive(c);
    DT_TRY(check_range(subject, "vocab_size", c->vocab_size, 1 << 24, err));
    DT_TRY(check_range(subject, "max_seq_len", c->max_seq_len, 1 << 24, err));
    DT_TRY(check_range(subject, "hidden_size", c->hidden_size, 1 << 17, err));
    DT_TRY(check_range(subject, "num_layers", c->num_layers, 1 << 12, err));
    DT_TRY(check_range(subject, "num_heads", c->num_heads, 1 << 12, err));
    DT_TRY(check_range(subject, "num_kv_heads", c->num_kv_heads, 1 << 12, err));
    DT_TRY(check_range(subject, "intermediate_size", c->intermediate_size, 1 << 20, err));
    DT_TRY(check_heads(c, subject, err));
    if (!(c->layer_norm_epsilon > 0 && c->layer_norm_epsilon < 1))
        return dt_fail(err, DT_EINVALID, "%s.layer_norm_epsilon must be between 0 and 1", subject);
    if (!(c->initializer_range > 0 && c->initializer_range < 10))
        return dt_fail(err, DT_EINVALID, "%s.initializer_range must be between 0 and 10", subject);
    DT_TRY(check_rate(subject, "dropout", c->dropout, err));
    DT_TRY(check_rate(subject, "attention_dropout", c->attention_dropout, err));
    DT_TRY(check_family(c, subject, err));
    return check_positions(c, subject, err);
}

bool dt_model_is_rotary(const struct dt_model_config *c)
{
    return dt_family_of(c)->positions == DT_POSITION_ROPE;
}

bool dt_model_is_gated(const struct dt_model_config *c)
{
    switch (dt_family_of(c)->mlp) {
    case DT_MLP_GELU_TANH:
    case DT_MLP_GELU_ERF:
        return false;
    case DT_MLP_SWIGLU:
    case DT_MLP_GEGLU_TANH:
    case DT_MLP_GEGLU_ERF:
        return true;
    }
    abort();
}

bool dt_model_is_masked(const struct dt_model_config *c)
{
    return dt_family_of(c)->objective == DT_OBJECTIVE_MASKED;
}

int64_t dt_model_head_dim(const struct dt_model_config *c)
{
    return c->head_dim > 0 ? c->head_dim : c->hidden_size / c->num_heads;
}

int64_t dt_model_query_width(const struct dt_model_config *c)
{
    return dt_model_head_dim(c) * c->num_heads;
}

int64_t dt_model_kv_width(const struct dt_model_config *c)
{
    return dt_model_head_dim(c) * c->num_kv_heads;
}

int64_t dt_model_window(const struct dt_model_config *c, int64_t layer)
{
    bool global = c->global_every > 0 && layer % c->global_every == c->global_first;
    return global ? 0 : c->sliding_window;
}

int64_t dt_dimension_size(enum dt_dimension d, const struct dt_model_config *c)
{
    switch (d) {
    case DT_DIMENSION_ONE:
        return 1;
    case DT_DIMENSION_VOCABULARY:
        return c->vocab_size;
    case DT_DIMENSION_POSITIONS:
        return c->max_seq_len;
    case DT_DIMENSION_TYPES:
        return 2;
    case DT_DIMENSION_WIDTH:
        return c->hidden_size;
    case DT_DIMENSION_WIDTH3:
        return 3 * c->hidden_size;
    case DT_DIMENSION_KEYS:
        return dt_model_kv_width(c);
    case DT_DIMENSION_HEAD:
        return dt_model_head_dim(c);
    case DT_DIMENSION_QUERIES:
        return dt_model_query_width(c);
    case DT_DIMENSION_INNER:
        return c->intermediate_size;
    }
    abort();
}

/* Elements of the matrices at a site, which every token is multiplied with. The head's weight is
 * left out, as it may be the token embedding. */
static double matrix_elements(const struct dt_model_config *c, enum dt_tensor_site site)
{
    double elements = 0;
    for (const struct dt_tensor_spec *s = dt_family_of(c)->tensors; s->site != DT_TENSOR_SITE_END;
         s++)
        if (s->site == site && s->columns != DT_DIMENSION_ONE && s->role != DT_ROLE_HEAD_WEIGHT)
            elements +=
                (double)dt_dimension_size(s->rows, c) * (double)dt_dimension_size(s->columns, c);
    return elements;
}

double dt_model_flops_per_token(const struct dt_model_config *c, int64_t length)
{
    double width = (double)c->hidden_size, layers = (double)c->num_layers;
    double block = matrix_elements(c, DT_TENSOR_SITE_BLOCK);
    double head = (double)c->vocab_size * width + matrix_elements(c, DT_TENSOR_SITE_AFTER);
    bool masked = dt_model_is_masked(c);
    double computed = masked ? 0.15 : 1, seen = masked ? 1 : 0.5;
    double queries = (double)dt_model_query_width(c);
    return 6 * (layers * block + computed * head) + 12 * seen * layers * queries * (double)length;
}
