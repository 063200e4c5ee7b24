/* SPDX-License-Identifier: MIT */
/* A model in fp64, token by token as the formulas are written, to compare losses and gradients
 * with. */
#ifndef DT_TESTS_REFERENCE_MODEL_H
#define DT_TESTS_REFERENCE_MODEL_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/model.h"

/* Parameters in fp64, in the order of the table. */
struct reference {
    const struct dt_table *table;
    const struct dt_model_config *config;
    const double *parameters;
};

static inline const double *reference_tensor(const struct reference *r, enum dt_role role,
                                             int layer)
{
    const struct dt_param *p = dt_table_find(r->table, role, layer);
    return p ? r->parameters + p->offset : NULL;
}

/* y = x W + b */
static inline void reference_map(const struct reference *r, enum dt_role weight, enum dt_role bias,
                                 int layer, double *y, const double *x)
{
    const struct dt_param *p = dt_table_find(r->table, weight, layer);
    const double *w = r->parameters + p->offset, *b = reference_tensor(r, bias, layer);
    int64_t inputs = p->transposed ? p->shape[1] : p->shape[0], outputs = p->count / inputs;
    for (int64_t j = 0; j < outputs; j++) {
        y[j] = b ? b[j] : 0;
        for (int64_t i = 0; i < inputs; i++)
            y[j] += x[i] * (p->transposed ? w[j * inputs + i] : w[i * outputs + j]);
    }
}

/* In place, of groups of as many channels as the weight has. */
static inline void reference_norm(const struct reference *r, enum dt_role weight, enum dt_role bias,
                                  int layer, double *x, int64_t count)
{
    const struct dt_param *p = dt_table_find(r->table, weight, layer);
    const double *w = r->parameters + p->offset, *b = reference_tensor(r, bias, layer);
    enum dt_norm_kind kind = dt_family_of(r->config)->norm;
    for (double *at = x; at < x + count; at += p->count) {
        double mean = 0, square = 0;
        for (int64_t j = 0; j < p->count; j++)
            mean += at[j] / (double)p->count;
        if (kind != DT_NORM_LAYER)
            mean = 0;
        for (int64_t j = 0; j < p->count; j++)
            square += pow(at[j] - mean, 2) / (double)p->count;
        for (int64_t j = 0; j < p->count; j++)
            at[j] = (at[j] - mean) / sqrt(square + r->config->layer_norm_epsilon) *
                        (w[j] + (kind == DT_NORM_RMS_PLUS_ONE)) +
                    (b ? b[j] : 0);
    }
}

static inline void reference_rotate(const struct reference *r, int layer, double *x, int64_t count,
                                    int64_t position)
{
    const struct dt_model_config *c = r->config;
    int64_t size = dt_model_head_dim(c), n = c->rotary_dim ? c->rotary_dim : size;
    bool local = c->rope_local_theta > 0 && dt_model_window(c, layer) > 0;
    double theta = local ? c->rope_local_theta : c->rope_theta;
    if (!dt_model_is_rotary(c) || (c->rope_skip_every && (layer + 1) % c->rope_skip_every == 0))
        return;
    for (double *head = x; head < x + count; head += size)
        for (int64_t j = 0; j < n / 2; j++) {
            double angle = (double)position * pow(theta, -2 * (double)j / (double)n);
            double a = head[j], b = head[n / 2 + j];
            head[j] = a * cos(angle) - b * sin(angle);
            head[n / 2 + j] = b * cos(angle) + a * sin(angle);
        }
}

/* Attention's queries, keys and values of a token. */
static inline void reference_project(const struct reference *r, int layer, const double *x,
                                     double *q, double *k, double *v, int64_t position)
{
    int64_t width = dt_model_query_width(r->config), keys = dt_model_kv_width(r->config);
    if (r->table->has[DT_ROLE_QKV_WEIGHT]) {
        double *all = dt_alloc((size_t)(3 * width), sizeof *all);
        reference_map(r, DT_ROLE_QKV_WEIGHT, DT_ROLE_QKV_BIAS, layer, all, x);
        memcpy(q, all, (size_t)width * sizeof *q);
        memcpy(k, all + width, (size_t)width * sizeof *q);
        memcpy(v, all + 2 * width, (size_t)width * sizeof *q);
        free(all);
    } else {
        reference_map(r, DT_ROLE_Q_WEIGHT, DT_ROLE_Q_BIAS, layer, q, x);
        reference_map(r, DT_ROLE_K_WEIGHT, DT_ROLE_K_BIAS, layer, k, x);
        reference_map(r, DT_ROLE_V_WEIGHT, DT_ROLE_V_BIAS, layer, v, x);
    }
    if (r->config->qk_norm) {
        reference_norm(r, DT_ROLE_Q_NORM_WEIGHT, DT_ROLE_NONE, layer, q, width);
        reference_norm(r, DT_ROLE_K_NORM_WEIGHT, DT_ROLE_NONE, layer, k, keys);
    }
    reference_rotate(r, layer, q, width, position);
    reference_rotate(r, layer, k, keys, position);
}

/* Whether the query at position t attends to key i. */
static inline bool reference_attends(const struct reference *r, int layer, int64_t t, int64_t i)
{
    int64_t window = dt_model_window(r->config, layer);
    if (dt_model_is_masked(r->config))
        return window == 0 || llabs(t - i) <= window / 2;
    return i <= t && (window == 0 || i > t - window);
}

/* y of the query at position t; k and v of all tokens. */
static inline void reference_attend(const struct reference *r, int layer, const double *q,
                                    const double *k, const double *v, double *y, int64_t t,
                                    int64_t length)
{
    const struct dt_model_config *c = r->config;
    int64_t size = dt_model_head_dim(c), keys = dt_model_kv_width(c);
    double scale = c->attention_scale != 0 ? c->attention_scale : 1 / sqrt((double)size);
    for (int64_t h = 0; h < c->num_heads; h++) {
        int64_t of = h / (c->num_heads / c->num_kv_heads) * size;
        double sum = 0;
        memset(y + h * size, 0, (size_t)size * sizeof *y);
        for (int64_t i = 0; i < length; i++) {
            double score = 0;
            if (!reference_attends(r, layer, t, i))
                continue;
            for (int64_t d = 0; d < size; d++)
                score += q[h * size + d] * k[i * keys + of + d] * scale;
            if (c->attention_softcap > 0)
                score = c->attention_softcap * tanh(score / c->attention_softcap);
            sum += exp(score);
            for (int64_t d = 0; d < size; d++)
                y[h * size + d] += exp(score) * v[i * keys + of + d];
        }
        for (int64_t d = 0; d < size; d++)
            y[h * size + d] /= sum;
    }
}

static inline double reference_activation(const struct reference *r, double x)
{
    switch (dt_model_mlp(r->config)) {
    case DT_MLP_GELU_TANH:
    case DT_MLP_GEGLU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case DT_MLP_GELU_ERF:
    case DT_MLP_GEGLU_ERF:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case DT_MLP_SWIGLU:
        return x / (1 + exp(-x));
    }
    abort();
}

static inline void reference_mlp(const struct reference *r, int layer, const double *x, double *y)
{
    int64_t inner = r->config->intermediate_size;
    double *up = dt_alloc((size_t)inner, sizeof *up), *gate = dt_alloc((size_t)inner, sizeof *gate);
    reference_map(r, DT_ROLE_UP_WEIGHT, DT_ROLE_UP_BIAS, layer, up, x);
    if (dt_model_is_gated(r->config))
        reference_map(r, DT_ROLE_GATE_WEIGHT, DT_ROLE_GATE_BIAS, layer, gate, x);
    for (int64_t j = 0; j < inner; j++)
        up[j] = dt_model_is_gated(r->config) ? reference_activation(r, gate[j]) * up[j]
                                             : reference_activation(r, up[j]);
    reference_map(r, DT_ROLE_DOWN_WEIGHT, DT_ROLE_DOWN_BIAS, layer, y, up);
    free(up), free(gate);
}

/* stream += scale * y, all tokens. */
static inline void reference_add(const struct reference *r, double *stream, const double *y,
                                 int64_t count)
{
    double scale = r->config->residual_scale != 0 ? r->config->residual_scale : 1;
    for (int64_t j = 0; j < count; j++)
        stream[j] += scale * y[j];
}

/* y = attention of x (length x C). */
static inline void reference_attention(const struct reference *r, int layer, const double *x,
                                       double *y, int64_t length)
{
    int64_t width = r->config->hidden_size, queries = dt_model_query_width(r->config);
    int64_t keys = dt_model_kv_width(r->config);
    double *q = dt_alloc((size_t)(length * queries), sizeof *q);
    double *k = dt_alloc((size_t)(length * keys), sizeof *k);
    double *v = dt_alloc((size_t)(length * keys), sizeof *v);
    double *heads = dt_alloc((size_t)queries, sizeof *heads);
    for (int64_t t = 0; t < length; t++)
        reference_project(r, layer, x + t * width, q + t * queries, k + t * keys, v + t * keys, t);
    for (int64_t t = 0; t < length; t++) {
        reference_attend(r, layer, q + t * queries, k, v, heads, t, length);
        reference_map(r, DT_ROLE_PROJECTION_WEIGHT, DT_ROLE_PROJECTION_BIAS, layer, y + t * width,
                      heads);
    }
    free(q), free(k), free(v), free(heads);
}

/* One block; the norms are where families.h says. */
static inline void reference_block(const struct reference *r, int layer, double *stream,
                                   int64_t length)
{
    int64_t width = r->config->hidden_size, count = length * width;
    enum dt_norm_placement placement = dt_family_of(r->config)->norm_placement;
    bool joins = layer == 0 && dt_family_of(r->config)->embedding_norm;
    size_t bytes = (size_t)count * sizeof(double);
    double *x = dt_alloc(1, bytes), *y = dt_alloc(1, bytes), *entry = dt_alloc(1, bytes);
    memcpy(entry, stream, bytes);
    memcpy(x, stream, bytes);
    if (placement != DT_NORM_PLACEMENT_OUTPUT)
        reference_norm(r, DT_ROLE_NORM1_WEIGHT, DT_ROLE_NORM1_BIAS, layer, x, count);
    if (placement == DT_NORM_PLACEMENT_POST || joins)
        memcpy(stream, x, bytes);
    reference_attention(r, layer, x, y, length);
    if (placement == DT_NORM_PLACEMENT_OUTPUT)
        reference_norm(r, DT_ROLE_NORM1_WEIGHT, DT_ROLE_NONE, layer, y, count);
    if (placement == DT_NORM_PLACEMENT_BOTH)
        reference_norm(r, DT_ROLE_NORM1_OUTPUT_WEIGHT, DT_ROLE_NONE, layer, y, count);
    reference_add(r, stream, y, count);
    memcpy(x, r->config->parallel_residual ? entry : stream, bytes);
    if (placement != DT_NORM_PLACEMENT_OUTPUT)
        reference_norm(r, DT_ROLE_NORM2_WEIGHT, DT_ROLE_NORM2_BIAS, layer, x, count);
    if (placement == DT_NORM_PLACEMENT_POST)
        memcpy(stream, x, bytes);
    for (int64_t t = 0; t < length; t++)
        reference_mlp(r, layer, x + t * width, y + t * width);
    if (placement == DT_NORM_PLACEMENT_OUTPUT)
        reference_norm(r, DT_ROLE_NORM2_WEIGHT, DT_ROLE_NONE, layer, y, count);
    if (placement == DT_NORM_PLACEMENT_BOTH)
        reference_norm(r, DT_ROLE_NORM2_OUTPUT_WEIGHT, DT_ROLE_NONE, layer, y, count);
    reference_add(r, stream, y, count);
    free(x), free(y), free(entry);
}

static inline void reference_embed(const struct reference *r, const int32_t *ids, double *x,
                                   int64_t length)
{
    int64_t width = r->config->hidden_size;
    const double *tokens = reference_tensor(r, DT_ROLE_TOKEN_EMBEDDING, -1);
    const double *positions = reference_tensor(r, DT_ROLE_POSITION_EMBEDDING, -1);
    const double *types = reference_tensor(r, DT_ROLE_TYPE_EMBEDDING, -1);
    double scale = r->config->embedding_scale != 0 ? r->config->embedding_scale : 1;
    if (positions)
        positions += dt_family_of(r->config)->position_offset * width;
    for (int64_t t = 0; t < length; t++)
        for (int64_t j = 0; j < width; j++)
            x[t * width + j] =
                scale * (tokens[ids[t] * width + j] + (positions ? positions[t * width + j] : 0)) +
                (types ? types[j] : 0);
}

/* The loss of a token: x is the final norm's output. */
static inline double reference_token_loss(const struct reference *r, double *x, int32_t target)
{
    int last = r->table->layers;
    int64_t width = r->config->hidden_size;
    const double *w = reference_tensor(r, DT_ROLE_HEAD_WEIGHT, last);
    const double *b = reference_tensor(r, DT_ROLE_HEAD_BIAS, last);
    double sum = 0, at_target = 0, *dense = dt_alloc((size_t)width, sizeof *dense);
    if (r->table->has[DT_ROLE_HEAD_DENSE_WEIGHT]) {
        reference_map(r, DT_ROLE_HEAD_DENSE_WEIGHT, DT_ROLE_HEAD_DENSE_BIAS, last, dense, x);
        for (int64_t j = 0; j < width; j++)
            x[j] = reference_activation(r, dense[j]);
        reference_norm(r, DT_ROLE_HEAD_NORM_WEIGHT, DT_ROLE_HEAD_NORM_BIAS, last, x, width);
    }
    w = w ? w : reference_tensor(r, DT_ROLE_TOKEN_EMBEDDING, -1);
    for (int64_t i = 0; i < r->config->vocab_size; i++) {
        double logit = b ? b[i] : 0;
        for (int64_t j = 0; j < width; j++)
            logit += x[j] * w[i * width + j];
        logit *= r->config->logit_scale != 0 ? r->config->logit_scale : 1;
        if (r->config->logit_softcap > 0)
            logit = r->config->logit_softcap * tanh(logit / r->config->logit_softcap);
        sum += exp(logit);
        at_target = i == target ? logit : at_target;
    }
    free(dense);
    return log(sum) - at_target;
}

/* The sum of the losses of one sequence, and each of them in losses, unless it is NULL. */
static inline double reference_loss(const struct reference *r, const int32_t *ids,
                                    const int32_t *targets, int64_t length, double *losses)
{
    int64_t width = r->config->hidden_size;
    double total = 0, *x = dt_alloc((size_t)(length * width), sizeof *x);
    reference_embed(r, ids, x, length);
    for (int layer = 0; layer < r->table->layers; layer++)
        reference_block(r, layer, x, length);
    reference_norm(r, DT_ROLE_FINAL_NORM_WEIGHT, DT_ROLE_FINAL_NORM_BIAS, r->table->layers, x,
                   length * width);
    for (int64_t t = 0; t < length; t++) {
        double loss = targets[t] < 0 ? 0 : reference_token_loss(r, x + t * width, targets[t]);
        total += loss;
        if (losses)
            losses[t] = loss;
    }
    free(x);
    return total;
}

#endif
