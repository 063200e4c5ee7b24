/* SPDX-License-Identifier: MIT */
#include "settings/model-config.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "settings/rope-keys-internal.h"

#define AT(field) offsetof(struct dt_model_config, field)

const char *const dt_attention_bias_names[] = {"none", "qkv", "all", NULL};
const char *const dt_gelu_names[] = {"default", "tanh", "erf", NULL};

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

/* The least global_every for the same local layers, or no window where no layer is local. */
static void derive_layers(struct dt_model_config *c)
{
    long every = c->global_every, first = c->global_first, count = c->num_layers;
    if (every <= 0 || first < 0 || first >= every)
        return;
    if (every == 1 || (count == 1 && first == 0)) {
        c->sliding_window = c->global_every = c->global_first = 0;
    } else if (first >= count) {
        c->global_every = c->global_first = 0;
    } else if (first + every >= count) { /* one global layer */
        c->global_every = first + 1 > count - first ? first + 1 : count - first;
    }
}

/* Values that say the same as 0. */
static void derive_defaults(struct dt_model_config *c)
{
    double *const scales[] = {&c->residual_scale, &c->logit_scale, &c->embedding_scale};
    int count = dt_family_of(c)->embedding_scale == DT_EMBEDDING_SCALE_ROOT ? 2 : 3;
    long size = (long)dt_model_head_dim(c);
    for (int i = 0; i < count; i++)
        *scales[i] = *scales[i] == 1 ? 0 : *scales[i];
    if (count == 2 && c->embedding_scale == 0)
        c->embedding_scale = sqrt((double)c->hidden_size);
    if ((double)c->head_dim * (double)c->num_heads == (double)c->hidden_size)
        c->head_dim = 0;
    if (c->attention_scale == 1 / sqrt((double)size))
        c->attention_scale = 0;
    if (c->rotary_dim == size)
        c->rotary_dim = 0;
    if (c->rope_scaling == DT_ROPE_SCALING_NONE && c->rope_local_theta == c->rope_theta)
        c->rope_local_theta = 0;
    if (c->rope_skip_every > c->num_layers)
        c->rope_skip_every = 0;
    if (dt_family_of(c)->mlp != DT_MLP_SWIGLU && dt_model_mlp(c) == dt_family_of(c)->mlp)
        c->gelu = DT_GELU_DEFAULT;
}

void dt_model_config_derive(struct dt_model_config *c)
{
    if (c->family == DT_FAMILY_LLAMA && c->qk_norm)
        c->family = DT_FAMILY_QWEN3;
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
    if (c->rope_scaling == DT_ROPE_SCALING_YARN) {
        c->rope_beta_fast = c->rope_beta_fast == 0 ? 32 : c->rope_beta_fast;
        c->rope_beta_slow = c->rope_beta_slow == 0 ? 1 : c->rope_beta_slow;
    }
    if (c->hidden_size <= 0 || c->num_heads <= 0 || c->head_dim < 0)
        return; /* dt_model_config_check refuses them */
    derive_defaults(c);
    derive_layers(c);
}

static int check_heads(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    if (c->head_dim == 0 && c->hidden_size % c->num_heads != 0)
        return dt_fail(err, DT_EINVALID, "%s.hidden_size %ld is not a multiple of num_heads %ld",
                       subject, c->hidden_size, c->num_heads);
    if (c->num_heads % c->num_kv_heads != 0)
        return dt_fail(err, DT_EINVALID, "%s.num_heads %ld is not a multiple of num_kv_heads %ld",
                       subject, c->num_heads, c->num_kv_heads);
    return 0;
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
    bool normed = family->qk_norm == DT_QK_NORM_ALWAYS;
    if (c->qk_norm != normed)
        return dt_fail(err, DT_EINVALID, "%s.qk_norm must be %s with %s", subject,
                       normed ? "true" : "false", name);
    if (family->other_dropout && c->dropout != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.dropout must be 0 with %s, whose dropout is elsewhere than dt's",
                       subject, name);
    if (family->epsilon_kind == DT_EPSILON_FIXED && c->layer_norm_epsilon != family->epsilon)
        return dt_fail(err, DT_EINVALID, "%s.layer_norm_epsilon must be %g with %s", subject,
                       family->epsilon, name);
    return 0;
}

/* Fields that only some families have: those whose config.json has a member for them. */
static int check_optional(const struct dt_model_config *c, const char *subject,
                          struct dt_error *err)
{
    const struct dt_family_descriptor *family = dt_family_of(c);
    double root = sqrt((double)c->hidden_size);
    bool scaled = family->embedding_scale == DT_EMBEDDING_SCALE_ROOT;
    const struct {
        const char *name;
        size_t offset;
        bool used;
    } fields[] = {
        {"head_dim", AT(head_dim), c->head_dim != 0},
        {"mlp_bias", AT(mlp_bias), c->mlp_bias},
        {"gelu", AT(gelu), c->gelu != DT_GELU_DEFAULT},
        {"rotary_dim", AT(rotary_dim), c->rotary_dim != 0},
        {"rope_local_theta", AT(rope_local_theta), c->rope_local_theta != 0},
        {"sliding_window", AT(sliding_window), c->sliding_window != 0},
        {"attention_scale", AT(attention_scale), c->attention_scale != 0},
        {"attention_softcap", AT(attention_softcap), c->attention_softcap != 0},
        {"logit_softcap", AT(logit_softcap), c->logit_softcap != 0},
        {"embedding_scale", AT(embedding_scale), c->embedding_scale != (scaled ? root : 0)},
        {"residual_scale", AT(residual_scale), c->residual_scale != 0},
        {"logit_scale", AT(logit_scale), c->logit_scale != 0},
        {"attention_dropout", AT(attention_dropout), c->attention_dropout != 0},
        {"parallel_residual", AT(parallel_residual), c->parallel_residual},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].used && !dt_family_member_of(family->json, fields[i].offset))
            return dt_fail(err, DT_EINVALID, "%s.%s is not supported with %s: leave it out",
                           subject, fields[i].name, dt_family_names[c->family]);
    return 0;
}

static int check_labels(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    if (c->num_labels == 0)
        return 0;
    if (dt_family_of(c)->json->classifier == NULL)
        return dt_fail(err, DT_EINVALID, "%s.num_labels: dt knows no classifier with %s", subject,
                       dt_family_names[c->family]);
    if (c->num_labels >= 2 && c->num_labels <= 1 << 20)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s.num_labels must be from 2 to %d, not %ld: dt reads classifiers, not "
                   "regressions",
                   subject, 1 << 20, c->num_labels);
}

static int check_choices(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    const struct dt_family_json *json = dt_family_of(c)->json;
    const char *name = dt_family_names[c->family];
    struct dt_buffer known = DT_BUFFER_EMPTY;
    int rc = 0;
    if (!(json->attention_biases & 1u << c->attention_bias)) {
        for (int i = 0; dt_attention_bias_names[i]; i++)
            if (json->attention_biases & 1u << i)
                dt_buffer_printf(&known, "%s%s", known.size > 0 ? " or " : "",
                                 dt_attention_bias_names[i]);
        rc = dt_fail(err, DT_EINVALID, "%s.attention_bias must be %s with %s", subject, known.data,
                     name);
    }
    dt_buffer_release(&known);
    if (rc == 0 && c->rope_scaling != DT_ROPE_SCALING_NONE &&
        !(json->scalings & 1u << c->rope_scaling))
        rc = dt_fail(err, DT_EINVALID, "%s.rope_scaling %s is not supported with %s", subject,
                     dt_rope_scaling_names[c->rope_scaling], name);
    return rc;
}

/* Scales and soft caps. */
static int check_scales(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    const struct {
        const char *name;
        double value;
    } scales[] = {
        {"attention_scale", c->attention_scale},     {"logit_softcap", c->logit_softcap},
        {"attention_softcap", c->attention_softcap}, {"residual_scale", c->residual_scale},
        {"embedding_scale", c->embedding_scale},     {"logit_scale", c->logit_scale},
    };
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (!(scales[i].value >= 0 && scales[i].value <= 1e6))
            return dt_fail(err, DT_EINVALID, "%s.%s must be from 0 to 1e6", subject,
                           scales[i].name);
    return 0;
}

/* What differs between layers. */
static int check_layers(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    enum dt_local_layers kind = dt_family_of(c)->json->local_layers;
    const char *name = dt_family_names[c->family];
    bool all = kind == DT_LOCAL_LAYERS_NONE || kind == DT_LOCAL_LAYERS_ALL;
    if (c->global_every < 0 || c->global_first < 0 || c->sliding_window < 0 ||
        c->rope_skip_every < 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.sliding_window and what selects layers must be at "
                       "least 0",
                       subject);
    if (c->global_first != 0 && c->global_first >= c->global_every)
        return dt_fail(err, DT_EINVALID, "%s.global_first must be below global_every", subject);
    if (c->global_every > 0 && (all || c->sliding_window == 0))
        return dt_fail(err, DT_EINVALID,
                       all ? "%s.global_every is not supported with %s: leave it "
                             "out"
                           : "%s.global_every needs a sliding_window with %s",
                       subject, name);
    if (kind == DT_LOCAL_LAYERS_MEMBER && c->sliding_window > 0 &&
        (c->global_every == 0 || c->global_first != 0))
        return dt_fail(err, DT_EINVALID,
                       "%s.global_first must be 0, and global_every above 0, with %s", subject,
                       name);
    if (kind != DT_LOCAL_LAYERS_SKIPPING && c->rope_skip_every != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.rope_skip_every is not supported with %s: leave it out", subject, name);
    return 0;
}

static int check_rotation(const struct dt_model_config *c, const char *subject,
                          struct dt_error *err)
{
    long size = (long)dt_model_head_dim(c);
    if (c->rotary_dim < 0 || c->rotary_dim > size || c->rotary_dim % 2 != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.rotary_dim must be even and at most the head size, %ld, not %ld",
                       subject, size, c->rotary_dim);
    if (c->rotary_dim == 0 && size % 2 != 0 && c->head_dim > 0)
        return dt_fail(err, DT_EINVALID, "%s.head_dim %ld is odd, but RoPE needs an even head size",
                       subject, size);
    if (c->rotary_dim == 0 && size % 2 != 0)
        return dt_fail(
            err, DT_EINVALID,
            "%s.hidden_size %ld / num_heads %ld is odd, but RoPE needs an even head size", subject,
            c->hidden_size, c->num_heads);
    if (!(c->rope_theta >= 1 && c->rope_theta <= 1e12))
        return dt_fail(err, DT_EINVALID, "%s.rope_theta must be from 1 to 1e12", subject);
    if (c->rope_scaling == DT_ROPE_SCALING_YARN && c->rope_theta == 1)
        return dt_fail(err, DT_EINVALID, "%s.rope_theta must be above 1 with yarn", subject);
    if (dt_family_of(c)->json->local_layers == DT_LOCAL_LAYERS_PATTERN && c->sliding_window > 0 &&
        c->rope_scaling != DT_ROPE_SCALING_NONE && c->rope_local_theta == 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.rope_scaling needs a rope_local_theta with %s, whose local layers are "
                       "not scaled",
                       subject, dt_family_names[c->family]);
    return 0;
}

static int check_positions(const struct dt_model_config *c, const char *subject,
                           struct dt_error *err)
{
    DT_TRY(dt_rope_keys_check(c, subject, err));
    if (dt_model_is_rotary(c))
        return check_rotation(c, subject, err);
    if (c->rope_theta != 0 && c->rope_theta != DT_ROPE_THETA)
        return dt_fail(err, DT_EINVALID,
                       "%s.rope_theta is for RoPE, and %s has learned position embeddings: "
                       "leave it out",
                       subject, dt_family_names[c->family]);
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
    if (c->head_dim != 0)
        DT_TRY(check_range(subject, "head_dim", c->head_dim, 1 << 14, err));
    DT_TRY(check_heads(c, subject, err));
    if (!(c->layer_norm_epsilon > 0 && c->layer_norm_epsilon < 1))
        return dt_fail(err, DT_EINVALID, "%s.layer_norm_epsilon must be between 0 and 1", subject);
    if (!(c->initializer_range > 0 && c->initializer_range < 10))
        return dt_fail(err, DT_EINVALID, "%s.initializer_range must be between 0 and 10", subject);
    DT_TRY(check_rate(subject, "dropout", c->dropout, err));
    DT_TRY(check_rate(subject, "attention_dropout", c->attention_dropout, err));
    DT_TRY(check_family(c, subject, err));
    DT_TRY(check_optional(c, subject, err));
    DT_TRY(check_labels(c, subject, err));
    DT_TRY(check_choices(c, subject, err));
    DT_TRY(check_scales(c, subject, err));
    DT_TRY(check_layers(c, subject, err));
    return check_positions(c, subject, err);
}

int dt_model_config_set_context(struct dt_model_config *c, long context, const char *subject,
                                struct dt_error *err)
{
    if (!dt_model_is_rotary(c))
        return dt_fail(err, DT_EINVALID,
                       "%s: has learned embeddings of %ld positions, so that its context cannot be "
                       "set to %ld",
                       subject, c->max_seq_len, context);
    if (c->rope_scaling == DT_ROPE_SCALING_DYNAMIC && context > c->max_seq_len)
        return dt_fail(err, DT_EINVALID,
                       "%s: dynamic scaling beyond its %ld positions depends on the length of each "
                       "sequence, which dt does not compute: its context cannot be set to %ld",
                       subject, c->max_seq_len, context);
    c->max_seq_len = context;
    return dt_model_config_check(c, subject, err);
}

bool dt_model_has_role(const struct dt_model_config *c, enum dt_role role)
{
    bool configured = dt_family_of(c)->biases == DT_BIAS_CONFIGURED;
    switch (role) {
    case DT_ROLE_Q_NORM_WEIGHT:
    case DT_ROLE_K_NORM_WEIGHT:
        return c->qk_norm;
    case DT_ROLE_HEAD_WEIGHT:
        return c->num_labels > 0 || !c->tie_word_embeddings;
    case DT_ROLE_Q_BIAS:
    case DT_ROLE_K_BIAS:
    case DT_ROLE_V_BIAS:
        return !configured || c->attention_bias != DT_ATTENTION_BIAS_NONE;
    case DT_ROLE_PROJECTION_BIAS:
        return !configured || c->attention_bias == DT_ATTENTION_BIAS_ALL;
    case DT_ROLE_GATE_BIAS:
    case DT_ROLE_UP_BIAS:
    case DT_ROLE_DOWN_BIAS:
        return !configured || c->mlp_bias;
    default:
        return true;
    }
}

long dt_model_logit_count(const struct dt_model_config *c)
{
    return c->num_labels > 0 ? c->num_labels : c->vocab_size;
}

int dt_model_need_tokens(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    if (c->num_labels == 0)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: %s classifies texts and predicts no tokens: use dt-eval labels", subject,
                   dt_family_of(c)->json->classifier);
}

bool dt_model_is_rotary(const struct dt_model_config *c)
{
    return dt_family_of(c)->positions == DT_POSITION_ROPE;
}

enum dt_mlp_kind dt_model_mlp(const struct dt_model_config *c)
{
    enum dt_mlp_kind usual = dt_family_of(c)->mlp;
    bool gated = dt_model_is_gated(c);
    if (usual == DT_MLP_SWIGLU || c->gelu == DT_GELU_DEFAULT)
        return usual;
    if (c->gelu == DT_GELU_TANH)
        return gated ? DT_MLP_GEGLU_TANH : DT_MLP_GELU_TANH;
    return gated ? DT_MLP_GEGLU_ERF : DT_MLP_GELU_ERF;
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

bool dt_model_has_joint_qk_norm(const struct dt_model_config *c)
{
    const struct dt_tensor_spec *s = dt_family_of(c)->tensors;
    while (s->site != DT_TENSOR_SITE_END && s->role != DT_ROLE_Q_NORM_WEIGHT)
        s++;
    return c->qk_norm && s->rows == DT_DIMENSION_QUERIES;
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
    case DT_DIMENSION_LABELS:
        return c->num_labels;
    case DT_DIMENSION_POSITIONS:
        return c->max_seq_len + dt_family_of(c)->position_offset;
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

/* The integral over positions t of min(t, W), or of min(t, W / 2) + min(T - t, W / 2). */
double dt_model_keys_seen(const struct dt_model_config *c, int64_t layer, int64_t length)
{
    bool masked = dt_model_is_masked(c);
    double window = (double)dt_model_window(c, layer), all = (double)length;
    double side = masked ? window / 2 : window;
    side = window == 0 || side > all ? all : side;
    return (masked ? 2 : 1) * (side - side * side / (2 * all));
}

double dt_model_mean_keys_seen(const struct dt_model_config *c, int64_t length)
{
    double sum = 0;
    for (long layer = 0; layer < c->num_layers; layer++)
        sum += dt_model_keys_seen(c, layer, length);
    return sum / (double)c->num_layers;
}

double dt_model_flops_per_token(const struct dt_model_config *c, int64_t length, double mask_rate)
{
    double width = (double)c->hidden_size, layers = (double)c->num_layers;
    double block = matrix_elements(c, DT_TENSOR_SITE_BLOCK);
    double head = (double)c->vocab_size * width + matrix_elements(c, DT_TENSOR_SITE_AFTER);
    head = c->num_labels > 0 ? 0 : head; /* of one token a text */
    double computed = dt_model_is_masked(c) ? mask_rate : 1,
           queries = (double)dt_model_query_width(c);
    double products = c->lora.rank > 0 ? 4 : 6;
    return products * (layers * block + computed * head) +
           12 * layers * queries * dt_model_mean_keys_seen(c, length);
}
