/* SPDX-License-Identifier: MIT */
#include "settings/model-config.h"

#include <stddef.h>

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
    if (c->num_kv_heads == 0)
        c->num_kv_heads = c->num_heads;
    if (c->intermediate_size == 0 && c->family == DT_FAMILY_LLAMA)
        c->intermediate_size = (8 * c->hidden_size + 191) / 192 * 64;
    else if (c->intermediate_size == 0)
        c->intermediate_size = 4 * c->hidden_size;
    if (c->initializer_range == 0)
        c->initializer_range = 0.02;
    if (c->layer_norm_epsilon == 0)
        c->layer_norm_epsilon = dt_model_is_masked(c) ? 1e-12 : 1e-5;
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

/* GPT-2, BERT and DistilBERT. */
static int check_plain(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    const char *family = dt_family_names[c->family];
    if (c->num_kv_heads != c->num_heads)
        return dt_fail(err, DT_EINVALID, "%s.num_kv_heads must be num_heads with %s", subject,
                       family);
    if (!c->tie_word_embeddings)
        return dt_fail(err, DT_EINVALID, "%s.tie_word_embeddings must be true with %s", subject,
                       family);
    if (c->rope_theta != 0 && c->rope_theta != DT_ROPE_THETA)
        return dt_fail(
            err, DT_EINVALID,
            "%s.rope_theta is for rotary positions, and %s has learnt ones: leave it out", subject,
            family);
    if (c->qk_norm)
        return dt_fail(err, DT_EINVALID, "%s.qk_norm must be false with %s", subject, family);
    if (c->family == DT_FAMILY_DISTILBERT && c->layer_norm_epsilon != 1e-12)
        return dt_fail(err, DT_EINVALID, "%s.layer_norm_epsilon must be 1e-12 with %s", subject,
                       family);
    return 0;
}

static int check_llama(const struct dt_model_config *c, const char *subject, struct dt_error *err)
{
    if (c->hidden_size / c->num_heads % 2 != 0)
        return dt_fail(err, DT_EINVALID,
                       "%s.hidden_size %ld over num_heads %ld is odd, and cannot turn by pairs",
                       subject, c->hidden_size, c->num_heads);
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
    return c->family == DT_FAMILY_LLAMA ? check_llama(c, subject, err)
                                        : check_plain(c, subject, err);
}

bool dt_model_is_rotary(const struct dt_model_config *c)
{
    return c->family == DT_FAMILY_LLAMA;
}

bool dt_model_is_masked(const struct dt_model_config *c)
{
    return c->family == DT_FAMILY_BERT || c->family == DT_FAMILY_DISTILBERT;
}

int64_t dt_model_kv_width(const struct dt_model_config *c)
{
    return c->hidden_size / c->num_heads * c->num_kv_heads;
}

double dt_model_flops_per_token(const struct dt_model_config *c, int64_t length)
{
    double width = (double)c->hidden_size, layers = (double)c->num_layers;
    double matrices = c->family == DT_FAMILY_LLAMA ? 3 : 2; /* of the MLP */
    double block = 2 * width * width + 2 * width * (double)dt_model_kv_width(c) +
                   matrices * width * (double)c->intermediate_size;
    double head = (double)c->vocab_size * width, causal = 0.5;
    if (dt_model_is_masked(c)) {
        head = 0.15 * (head + width * width);
        causal = 1;
    }
    return 6 * (layers * block + head) + 12 * causal * layers * width * (double)length;
}
