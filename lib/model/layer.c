/* SPDX-License-Identifier: MIT */
#include "model/layer.h"

#include <assert.h>
#include <stdlib.h>

#include "model/adapter.h"
#include "model/context-parallel.h"
#include "model/tensor-parallel.h"

static const struct dt_matmul plain = {.activation = DT_ACTIVATION_NONE};

/* Of a sum over split channels or heads; 1: not split. */
static int channel_parts(const struct dt_model *m, enum dt_role role)
{
    switch (dt_role_split_of(role)) {
    case DT_ROLE_SPLIT_HEADS:
        return m->partition.head_parts;
    case DT_ROLE_SPLIT_CHANNELS:
        return m->partition.inner_parts;
    case DT_ROLE_SPLIT_NONE:
        break;
    }
    return 1;
}

/* Whether a product takes the transpose of a weight. */
static bool is_transposed(const struct dt_model *m, enum dt_role role, int layer,
                          const struct dt_tensor *weight)
{
    return weight->panels || dt_table_find(m->base, role, layer)->transposed;
}

void dt_layer_linear_forward(const struct dt_model *m, int layer, enum dt_role weight,
                             enum dt_role bias, struct dt_tensor *y, const struct dt_tensor *x,
                             const struct dt_matmul *how)
{
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor b = dt_model_weight(m, bias, layer);
    struct dt_matmul product = how ? *how : plain;
    product.transpose_b = is_transposed(m, weight, layer, &w);
    product.bias = b.data ? &b : NULL;
    product.accumulate = dt_adapter_forward(m, layer, weight, y, x);
    m->device->ops->matmul(m->device, y, x, &w, &product);
}

void dt_layer_row_parallel_forward(const struct dt_model *m, int layer, enum dt_role weight,
                                   enum dt_role bias, struct dt_tensor *y,
                                   const struct dt_tensor *x, const struct dt_tensor *partial)
{
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor b = dt_model_weight(m, bias, layer);
    struct dt_matmul product = {.transpose_b = is_transposed(m, weight, layer, &w),
                                .parts = channel_parts(m, weight)};
    if (m->part.tp_size == 1) {
        product.bias = b.data ? &b : NULL;
        product.accumulate = dt_adapter_forward(m, layer, weight, y, x);
        m->device->ops->matmul(m->device, y, x, &w, &product);
        return;
    }
    struct dt_range own = dt_tensor_parallel_rows(m, y->rows);
    struct dt_tensor rows = dt_tensor_rows(y, own.first, dt_range_count(own));
    struct dt_tensor sum = partial->data ? dt_tensor_rows(partial, 0, y->rows) : *y;
    m->device->ops->matmul(m->device, &sum, x, &w, &product);
    dt_tensor_parallel_sum_hidden(m, &rows, &sum, b.data ? &b : NULL, false);
}

/* Parts of a sum over rows: chunks of sequences. The head computes chunk by chunk. */
static int token_parts(const struct dt_model *m, int layer)
{
    return layer == m->table.layers ? 1 : dt_context_parallel_chunks(&m->part);
}

void dt_layer_weight_backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                              enum dt_role weight, enum dt_role bias, const struct dt_tensor *dy,
                              const struct dt_tensor *x)
{
    bool transposed = dt_table_find(m->base, weight, layer)->transposed;
    struct dt_tensor dw = dt_table_view(&m->table, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, gradients, bias, layer);
    struct dt_matmul product = {
        .transpose_a = true, .accumulate = true, .parts = token_parts(m, layer)};
    dt_adapter_weight_backward(m, gradients, layer, weight, dy, x);
    if (dw.data == NULL)
        return;
    if (db.data && transposed)
        product.sums_a = &db;
    else if (db.data)
        product.sums_b = &db;
    m->device->ops->matmul(m->device, &dw, transposed ? dy : x, transposed ? x : dy, &product);
}

void dt_layer_input_backward(const struct dt_model *m, int layer, const struct dt_layer_map *maps,
                             int count, struct dt_tensor *dx, const struct dt_matmul *how)
{
    struct dt_tensor weights[DT_LAYER_MAPS];
    struct dt_factors factors[DT_LAYER_MAPS];
    struct dt_matmul product = how ? *how : plain;
    const struct dt_param *param = dt_table_find(m->base, maps[0].weight, layer);
    bool transposed = param->transposed;
    assert(count <= DT_LAYER_MAPS);
    for (int i = 0; i < count; i++) {
        int64_t first = maps[i].outputs.first, some = dt_range_count(maps[i].outputs);
        weights[i] = dt_model_weight(m, maps[i].weight, layer);
        if (some > 0)
            weights[i] = transposed ? dt_tensor_rows(&weights[i], first, some)
                                    : dt_tensor_columns(&weights[i], first, some);
        factors[i] = (struct dt_factors){maps[i].dy, &weights[i]};
        product.accumulate |= dt_adapter_input_backward(m, layer, &maps[i], dx, product.accumulate);
    }
    product.transpose_b = !transposed;
    product.parts = param->split == DT_TENSOR_SPLIT_COLUMN ? channel_parts(m, maps[0].weight) : 1;
    product.more = factors + 1;
    product.more_count = count - 1;
    m->device->ops->matmul(m->device, dx, factors[0].a, factors[0].b, &product);
}

enum dt_activation dt_layer_activation(const struct dt_model *m)
{
    switch (dt_model_mlp(&m->config)) {
    case DT_MLP_GELU_TANH:
    case DT_MLP_GEGLU_TANH:
        return DT_ACTIVATION_GELU_TANH;
    case DT_MLP_GELU_ERF:
    case DT_MLP_GEGLU_ERF:
        return DT_ACTIVATION_GELU_ERF;
    case DT_MLP_SWIGLU:
        return DT_ACTIVATION_SILU;
    }
    abort();
}

enum dt_activation dt_layer_head_activation(const struct dt_model *m)
{
    if (m->config.num_labels == 0)
        return dt_layer_activation(m);
    switch (dt_family_of(&m->config)->classifier) {
    case DT_CLASSIFIER_FIRST_TANH:
        return DT_ACTIVATION_TANH;
    case DT_CLASSIFIER_FIRST_RELU:
        return DT_ACTIVATION_RELU;
    case DT_CLASSIFIER_FIRST_GELU:
        return DT_ACTIVATION_GELU_ERF;
    case DT_CLASSIFIER_LAST:
        return DT_ACTIVATION_NONE;
    }
    abort();
}

/* RMSNorm: without bias, and without a mean to keep for backward. */
static bool is_rms(const struct dt_model *m)
{
    return dt_family_of(&m->config)->norm != DT_NORM_LAYER;
}

/* What is added to the weights of RMSNorm. */
static float weight_offset(const struct dt_model *m)
{
    return dt_family_of(&m->config)->norm == DT_NORM_RMS_PLUS_ONE ? 1 : 0;
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
        ops->rms_norm_forward(m->device, y, stats, sum, x, add, &w, weight_offset(m), epsilon);
    else
        ops->norm_forward(m->device, y, stats, sum, x, add, &w, b.data ? &b : &m->no_bias, epsilon);
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
    struct dt_tensor none = m->no_gradient;
    int parts = dt_context_parallel_row_parts(&m->part, true);
    if (weight == DT_ROLE_HEAD_NORM_WEIGHT) /* the head computes chunk by chunk */
        parts = 1;
    if (is_rms(m))
        ops->rms_norm_backward(m->device, dsum, dw.data ? &dw : &none, dy, sum, &w,
                               weight_offset(m), stats, parts);
    else
        ops->norm_backward(m->device, dsum, dw.data ? &dw : &none, db.data ? &db : &none, dy, sum,
                           &w, stats, parts);
}

/* Operands of dt_layer_head_norm_backward. */
struct head_norms {
    struct dt_tensor dsum, dy, sum, stats;
};

/* Of equal columns of x, those of part i; its rows from first on. */
static struct dt_tensor part_of(const struct dt_tensor *x, struct dt_range rows, int i, int parts)
{
    struct dt_tensor some = dt_tensor_rows(x, rows.first, dt_range_count(rows));
    return dt_tensor_columns(&some, i * (x->columns / parts), x->columns / parts);
}

/* Parts of the heads that are added one by one: the op adds heads in a binary tree, which has nodes
 * for parts of a power of two of heads. */
static int separate_parts(const struct dt_model *m, int64_t heads)
{
    int parts = m->partition.head_parts;
    int64_t each = heads / parts;
    return heads % parts != 0 || (each & (each - 1)) == 0 ? 1 : parts;
}

/* dw (zeroed) = the gradient of weight, of some rows and all heads. */
static void some_rows_backward(const struct dt_model *m, const struct head_norms *x,
                               struct dt_range rows, const struct dt_tensor *weight,
                               struct dt_tensor *dw)
{
    const struct dt_ops *ops = m->device->ops;
    int parts = separate_parts(m, x->stats.columns);
    struct dt_tensor sums =
        dt_matrix(m->norm_sums + DT_ROW_PARTS * dw->columns, parts, dw->columns);
    if (parts == 1)
        sums = *dw;
    else
        ops->zero(m->device, &sums);
    for (int i = 0; i < parts; i++) {
        struct dt_tensor dsum = part_of(&x->dsum, rows, i, parts),
                         dy = part_of(&x->dy, rows, i, parts);
        struct dt_tensor sum = part_of(&x->sum, rows, i, parts),
                         rstd = part_of(&x->stats, rows, i, parts);
        struct dt_tensor one = dt_tensor_rows(&sums, i, 1);
        ops->rms_norm_backward(m->device, &dsum, &one, &dy, &sum, weight, weight_offset(m), &rstd,
                               1);
    }
    dt_tensor_parallel_add_rows(m, &sums, parts);
    if (parts > 1) {
        struct dt_tensor all = dt_tensor_rows(&sums, 0, 1);
        ops->copy(m->device, dw, &all);
    }
}

void dt_layer_head_norm_backward(const struct dt_model *m, const struct dt_flat *gradients,
                                 int layer, enum dt_role weight, struct dt_tensor *dsum,
                                 const struct dt_tensor *dy, const struct dt_tensor *sum,
                                 const struct dt_tensor *stats)
{
    const struct head_norms x = {*dsum, *dy, *sum, *stats};
    const struct dt_param *param = dt_table_find(m->base, weight, layer);
    struct dt_tensor w = dt_model_weight(m, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, gradients, weight, layer);
    bool separate = param->partial && gradients->partial;
    struct dt_tensor sums =
        dt_matrix(separate ? dw.data : m->norm_sums, param->partial_parts, w.columns);
    m->device->ops->zero(m->device, &sums);
    for (int i = 0; i < param->partial_parts; i++) {
        struct dt_tensor one = dt_tensor_rows(&sums, i, 1);
        some_rows_backward(m, &x, dt_range_part(dsum->rows, i, param->partial_parts), &w, &one);
    }
    if (separate || dw.data == NULL)
        return;
    dt_tensor_parallel_add_rows(m, &sums, param->partial_parts);
    struct dt_tensor all = dt_tensor_rows(&sums, 0, 1);
    m->device->ops->combine(m->device, &dw, 1, &all, 1);
}

void dt_layer_scale(const struct dt_model *m, struct dt_tensor *x, double factor)
{
    if (factor != 0 && factor != 1)
        m->device->ops->combine(m->device, x, 0, x, (float)factor);
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
    const struct dt_param *head = dt_table_find(m->base, DT_ROLE_HEAD_WEIGHT, m->table.layers);
    return head ? head->bucket : DT_TOKEN_BUCKET;
}

int dt_head_gradient_bucket(const struct dt_model *m)
{
    bool alone = m->table.gradient_elements > m->table.elements;
    return alone ? dt_head_bucket(&m->table) : dt_head_weight_bucket(m);
}
