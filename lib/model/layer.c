/* SPDX-License-Identifier: MIT */
#include "model/layer.h"

static const struct dt_matmul plain = {.activation = DT_ACT_NONE};

void dt_linear_forward(const struct dt_model *m, int layer, enum dt_role weight, enum dt_role bias,
                       struct dt_tensor *y, const struct dt_tensor *x, const struct dt_matmul *how)
{
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor b = dt_model_weight(m, bias, layer);
    struct dt_matmul product = how ? *how : plain;
    product.transpose_b = dt_table_find(&m->table, weight, layer)->transposed;
    product.bias = b.data ? &b : NULL;
    m->device->ops->matmul(m->device, y, x, &w, &product);
}

void dt_linear_backward(const struct dt_model *m, float *gradients, int layer, enum dt_role weight,
                        enum dt_role bias, struct dt_tensor *dx, const struct dt_tensor *dy,
                        const struct dt_tensor *x, const struct dt_matmul *how)
{
    const struct dt_ops *ops = m->device->ops;
    bool transposed = dt_table_find(&m->table, weight, layer)->transposed;
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, DT_F32, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, DT_F32, gradients, bias, layer);
    struct dt_matmul product = how ? *how : plain;
    product.transpose_b = !transposed;
    ops->matmul(m->device, &dw, transposed ? dy : x, transposed ? x : dy,
                &(struct dt_matmul){.transpose_a = true, .accumulate = true});
    if (db.data)
        ops->bias_backward(m->device, &db, dy);
    ops->matmul(m->device, dx, dy, &w, &product);
}

/* Norms without a bias are RMSNorm, which keeps no mean either. */
static bool is_rms(const struct dt_model *m)
{
    return dt_table_find(&m->table, DT_FINAL_NORM_BIAS, m->table.layers) == NULL;
}

int64_t dt_norm_statistics(const struct dt_model *m)
{
    return is_rms(m) ? 1 : 2;
}

void dt_norm_forward(const struct dt_model *m, int layer, enum dt_role weight, enum dt_role bias,
                     struct dt_tensor *y, struct dt_tensor *stats, struct dt_tensor *sum,
                     const struct dt_tensor *x, const struct dt_tensor *add)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor b = dt_model_weight(m, bias, layer);
    float epsilon = (float)m->config.layer_norm_epsilon;
    if (is_rms(m))
        ops->rms_norm_forward(m->device, y, stats, sum, x, add, &w, epsilon);
    else
        ops->norm_forward(m->device, y, stats, sum, x, add, &w, &b, epsilon);
}

void dt_norm_backward(const struct dt_model *m, float *gradients, int layer, enum dt_role weight,
                      enum dt_role bias, struct dt_tensor *dsum, const struct dt_tensor *dy,
                      const struct dt_tensor *sum, const struct dt_tensor *stats)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, DT_F32, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, DT_F32, gradients, bias, layer);
    if (is_rms(m))
        ops->rms_norm_backward(m->device, dsum, &dw, dy, sum, &w, stats);
    else
        ops->norm_backward(m->device, dsum, &dw, &db, dy, sum, &w, stats);
}

struct dt_tensor dt_head_weight(const struct dt_model *m)
{
    struct dt_tensor head = dt_model_weight(m, DT_HEAD_WEIGHT, m->table.layers);
    return head.data ? head : dt_model_weight(m, DT_TOKEN_EMBEDDING, -1);
}

struct dt_tensor dt_head_gradient(const struct dt_model *m, float *gradients)
{
    const struct dt_table *t = &m->table;
    struct dt_tensor head = dt_table_view(t, DT_F32, gradients, DT_HEAD_WEIGHT, t->layers);
    return head.data ? head : dt_table_view(t, DT_F32, gradients, DT_TOKEN_EMBEDDING, -1);
}
