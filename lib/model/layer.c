/* SPDX-License-Identifier: MIT */
#include "model/layer.h"

#include <stdlib.h>

#include "model/tensor-parallel.h"

static const struct dt_matmul plain = {.activation = DT_ACTIVATION_NONE};

void dt_layer_linear_forward(const struct dt_model *m, int layer, enum dt_role weight,
                             enum dt_role bias, struct dt_tensor *y, const struct dt_tensor *x,
                             const struct dt_matmul *how)
{
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor b = dt_model_weight(m, bias, layer);
    struct dt_matmul product = how ? *how : plain;
    const struct dt_param *param = dt_table_find(&m->table, weight, layer);
    bool summed = param->split == DT_TENSOR_SPLIT_ROW && m->part.tp_size > 1;
    product.transpose_b = param->transposed;
    product.bias = b.data && !(summed && m->part.tp_rank > 0) ? &b : NULL; /* once */
    m->device->ops->matmul(m->device, y, x, &w, &product);
    if (summed)
        dt_tensor_parallel_reduce_hidden(m, y);
}

void dt_layer_linear_backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                              enum dt_role weight, enum dt_role bias, struct dt_tensor *dx,
                              const struct dt_tensor *dy, const struct dt_tensor *x,
                              const struct dt_matmul *how)
{
    const struct dt_ops *ops = m->device->ops;
    bool transposed = dt_table_find(&m->table, weight, layer)->transposed;
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, gradients, bias, layer);
    struct dt_matmul product = how ? *how : plain;
    product.transpose_b = !transposed;
    struct dt_matmul of_weight = {.transpose_a = true, .accumulate = true};
    if (db.data && transposed)
        of_weight.sums_a = &db;
    else if (db.data)
        of_weight.sums_b = &db;
    ops->matmul(m->device, &dw, transposed ? dy : x, transposed ? x : dy, &of_weight);
    ops->matmul(m->device, dx, dy, &w, &product);
}

enum dt_activation dt_layer_activation(const struct dt_model *m)
{
    switch (dt_family_of(&m->config)->mlp) {
    case DT_MLP_GELU_TANH:
        return DT_ACTIVATION_GELU_TANH;
    case DT_MLP_GELU_ERF:
        return DT_ACTIVATION_GELU_ERF;
    case DT_MLP_SWIGLU:
        return DT_ACTIVATION_NONE;
    }
    abort();
}

/* RMSNorm: without bias, and without a mean to keep for backward. */
static bool is_rms(const struct dt_model *m)
{
    return dt_family_of(&m->config)->norm == DT_NORM_RMS;
}

int64_t dt_layer_norm_statistics(const struct dt_model *m)
{
    return is_rms(m) ? 1 : 2;
}

void dt_layer_norm_forward(const struct dt_model *m, int layer, enum dt_role weight,
                           enum dt_role bias, struct dt_tensor *y, struct dt_tensor *stats,
                           struct dt_tensor *sum, const struct dt_tensor *x,
                           const struct dt_tensor *add)
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

void dt_layer_norm_backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                            enum dt_role weight, enum dt_role bias, struct dt_tensor *dsum,
                            const struct dt_tensor *dy, const struct dt_tensor *sum,
                            const struct dt_tensor *stats)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, gradients, bias, layer);
    if (is_rms(m))
        ops->rms_norm_backward(m->device, dsum, &dw, dy, sum, &w, stats, 1);
    else
        ops->norm_backward(m->device, dsum, &dw, &db, dy, sum, &w, stats, 1);
}

struct dt_tensor dt_head_weight(const struct dt_model *m)
{
    struct dt_tensor head = dt_model_weight(m, DT_ROLE_HEAD_WEIGHT, m->table.layers);
    return head.data ? head : dt_model_weight(m, DT_ROLE_TOKEN_EMBEDDING, -1);
}

struct dt_tensor dt_head_gradient(const struct dt_model *m, const struct dt_flat *gradients)
{
    const struct dt_table *t = &m->table;
    int bucket = dt_head_gradient_bucket(m);
    struct dt_tensor weight = dt_head_weight(m);
    if (bucket != dt_head_weight_bucket(m))
        return dt_matrix_of(gradients->dtype, gradients->buckets[bucket], weight.rows,
                            weight.columns);
    return dt_table_find(t, DT_ROLE_HEAD_WEIGHT, t->layers)
               ? dt_table_view(t, gradients, DT_ROLE_HEAD_WEIGHT, t->layers)
               : dt_table_view(t, gradients, DT_ROLE_TOKEN_EMBEDDING, -1);
}

int dt_head_weight_bucket(const struct dt_model *m)
{
    const struct dt_param *head = dt_table_find(&m->table, DT_ROLE_HEAD_WEIGHT, m->table.layers);
    return head ? head->bucket : DT_TOKEN_BUCKET;
}

int dt_head_gradient_bucket(const struct dt_model *m)
{
    bool alone = m->table.gradient_elements > m->table.elements;
    return alone ? dt_head_bucket(&m->table) : dt_head_weight_bucket(m);
}
