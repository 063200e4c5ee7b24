/* SPDX-License-Identifier: MIT */
#include "model/head.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/context-parallel.h"
#include "model/layer.h"
#include "model/tensor-parallel.h"

/* Maximum bytes of logits at a time, unless one block of rows has more. */
#define LOGITS_BYTES ((int64_t)256 << 20)
#define BLOCK        128 /* rows: a multiple of the tiles of products */

static bool has_dense(const struct dt_model *m)
{
    return m->base->has[DT_ROLE_HEAD_DENSE_WEIGHT];
}

static bool has_norm(const struct dt_model *m)
{
    return m->base->has[DT_ROLE_HEAD_NORM_WEIGHT];
}

/* Logits of a row on this rank. */
static int64_t logit_columns(const struct dt_model *m)
{
    return m->config.num_labels > 0 ? m->config.num_labels : dt_range_count(m->partition.tokens);
}

/* Rows of a chunk: whole blocks, all chunks of the same size but the last, and as few as
 * LOGITS_BYTES allow. */
static int64_t chunk_of(const struct dt_model *m, int64_t rows)
{
    int64_t most = LOGITS_BYTES / (int64_t)dt_dtype_size(m->compute) /
                   dt_model_logit_count(&m->config) / BLOCK;
    int64_t blocks = (rows + BLOCK - 1) / BLOCK, chunks;
    most = most < 1 ? 1 : most;
    chunks = (blocks + most - 1) / most;
    return (blocks + chunks - 1) / chunks * BLOCK;
}

void dt_head_init(struct dt_head *h, const struct dt_model *m, int64_t rows, int64_t chunk)
{
    int parts = m->part.invariant ? dt_context_parallel_chunks(&m->part) : 1;
    assert(parts <= 1 << (DT_HEAD_LEVELS - 1));
    chunk = chunk > 0 ? chunk : chunk_of(m, rows / parts);
    chunk = chunk < rows / parts ? chunk : rows / parts;
    *h = (struct dt_head){.rows = rows, .chunk = chunk, .parts = parts};
}

void dt_head_release(struct dt_head *h)
{
    free(h->host);
    free(h->weights);
    *h = (struct dt_head){0};
}

static struct dt_logit_parts logit_parts_of(const struct dt_model *m)
{
    return dt_logit_parts_of(m->config.vocab_size, dt_range_count(m->partition.tokens),
                             m->part.tp_rank, m->part.tp_size);
}

/* Whether partial sums of the input's gradient are separate: they are fp32. */
static bool has_partial(const struct dt_model *m)
{
    return m->part.tp_size > 1 && m->compute != DT_DTYPE_F32;
}

/* Elements of the head's buckets, which are the last. */
static int64_t count_gradients(const struct dt_model *m)
{
    const struct dt_table *t = &m->table;
    return t->buckets[t->bucket_count] - t->buckets[dt_table_layer_bucket(t->layers)];
}

/* Nodes of a tree over parts, a power of two, at a time. */
static int count_nodes(int parts)
{
    int nodes = 1;
    for (; parts > 1; parts /= 2)
        nodes++;
    return nodes;
}

static void lay_out_work(struct dt_head_work *w, struct dt_arena *a, const struct dt_model *m,
                         int64_t rows, int parts, bool training)
{
    int64_t width = m->config.hidden_size;
    w->picked = dt_arena_matrix_of(a, m->compute, rows, width);
    w->logits = dt_arena_rows_of(a, m->compute, rows, logit_columns(m));
    if (m->part.tp_size > 1)
        w->sums =
            dt_arena_matrix(a, m->part.tp_size * logit_parts_of(m).count * rows, DT_LOGIT_SUMS);
    if (training)
        w->dpicked = dt_arena_matrix_of(a, m->compute, rows, width);
    if (training && has_partial(m))
        w->partial = dt_arena_matrix(a, rows, width);
    for (int i = 0; training && parts > 1 && i < count_nodes(parts); i++)
        w->nodes[i] = dt_arena_take(a, (size_t)count_gradients(m) * sizeof(float));
    if (!has_dense(m))
        return;
    w->dense = dt_arena_matrix_of(a, m->compute, rows, width);
    w->active = dt_arena_matrix_of(a, m->compute, rows, width);
    if (training)
        w->dactive = dt_arena_matrix_of(a, m->compute, rows, width);
    if (!has_norm(m))
        return;
    w->normed = dt_arena_matrix_of(a, m->compute, rows, width);
    w->stats = dt_arena_matrix(a, rows, dt_layer_norm_statistics(m));
    if (training)
        w->dnormed = dt_arena_matrix_of(a, m->compute, rows, width);
}

void dt_head_layout(struct dt_head *h, struct dt_arena *a, const struct dt_model *m, bool training,
                    const struct dt_head *scratch_owner)
{
    if (a->memory)
        h->host = dt_alloc((size_t)(2 * h->rows), sizeof *h->host);
    h->positions = dt_arena_take(a, (size_t)h->rows * sizeof *h->positions);
    h->targets = dt_arena_take(a, (size_t)h->rows * sizeof *h->targets);
    h->losses = dt_arena_take(a, (size_t)h->rows * sizeof *h->losses);
    h->hits = dt_arena_take(a, (size_t)h->rows * sizeof *h->hits);
    if (scratch_owner) {
        h->work = scratch_owner->work;
        h->chunk = h->chunk < scratch_owner->chunk ? h->chunk : scratch_owner->chunk;
    } else {
        lay_out_work(&h->work, a, m, h->chunk, h->parts, training);
    }
}

void dt_head_stage(struct dt_head *h, const struct dt_model *m, const struct dt_batch *batch)
{
    const struct dt_ops *ops = m->device->ops;
    int64_t rows = batch->count * batch->length;
    int32_t *positions = h->host, *targets = h->host + h->rows;
    assert(rows <= h->rows);
    h->count = 0;
    h->weighted = false;
    for (int64_t row = 0; row < rows; row++) {
        if (batch->targets[row] >= 0) {
            positions[h->count] = (int32_t)row;
            targets[h->count++] = batch->targets[row] - (int32_t)m->partition.tokens.first;
        }
        h->part_ends[row / (rows / h->parts)] = h->count;
    }
    h->scattered = h->count < rows;
    ops->upload(m->device, h->positions, positions, (size_t)h->count * sizeof *positions);
    ops->upload(m->device, h->targets, targets, (size_t)h->count * sizeof *targets);
}

/* The values of the tokens with a target, one after another. */
static void pack(const struct dt_batch *batch, const float *values, float *packed)
{
    for (int64_t row = 0; row < batch->count * batch->length; row++)
        if (batch->targets[row] >= 0)
            *packed++ = values[row];
}

void dt_head_weigh(struct dt_head *h, const struct dt_batch *batch, const float *weights)
{
    if (h->weights == NULL)
        h->weights = dt_alloc((size_t)h->rows, sizeof *h->weights);
    pack(batch, weights, h->weights);
    h->weighted = true;
}

void dt_head_set_losses(struct dt_head *h, const struct dt_model *m, const struct dt_batch *batch,
                        const float *losses)
{
    float *packed = dt_alloc((size_t)h->count + 1, sizeof *packed);
    pack(batch, losses, packed);
    m->device->ops->upload(m->device, h->losses, packed, (size_t)h->count * sizeof *packed);
    free(packed);
}

static struct dt_head_work first_rows(const struct dt_head_work *all, int64_t n)
{
    struct dt_head_work w = *all;
    struct dt_tensor *const tensors[] = {&w.picked, &w.dense,   &w.active,  &w.normed,  &w.stats,
                                         &w.logits, &w.dpicked, &w.dnormed, &w.dactive, &w.partial};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        *tensors[i] = dt_tensor_rows(tensors[i], 0, n);
    return w;
}

struct dt_logit_map dt_head_logit_map(const struct dt_model *m)
{
    if (m->config.num_labels > 0)
        return (struct dt_logit_map){0, 0};
    return (struct dt_logit_map){(float)m->config.logit_scale, (float)m->config.logit_softcap};
}

/* y = x times the head's weight, plus its bias: logits before their map. */
static void multiply(const struct dt_model *m, struct dt_tensor *y, const struct dt_tensor *x)
{
    struct dt_tensor weight = dt_head_weight(m);
    struct dt_tensor bias = dt_model_weight(m, DT_ROLE_HEAD_BIAS, m->table.layers);
    m->device->ops->matmul(
        m->device, y, x, &weight,
        &(struct dt_matmul){.transpose_b = true, .bias = bias.data ? &bias : NULL});
}

void dt_head_forward(const struct dt_model *m, struct dt_tensor *logits,
                     const struct dt_tensor *norm)
{
    const struct dt_logit_map map = dt_head_logit_map(m);
    multiply(m, logits, norm);
    m->device->ops->map_logits(m->device, logits, &map);
}

/* The input of the head's weight: x, or what the head transform makes of it. */
static const struct dt_tensor *transformed(const struct dt_head_work *w, const struct dt_model *m,
                                           const struct dt_tensor *x)
{
    return !has_dense(m) ? x : has_norm(m) ? &w->normed : &w->active;
}

/* From the rows x of the final norm to w->logits. */
static void forward(struct dt_head_work *w, const struct dt_model *m, const struct dt_tensor *x)
{
    int layer = m->table.layers;
    enum dt_activation activation = dt_layer_head_activation(m);
    if (has_dense(m))
        dt_layer_linear_forward(m, layer, DT_ROLE_HEAD_DENSE_WEIGHT, DT_ROLE_HEAD_DENSE_BIAS,
                                &w->active, x,
                                &(struct dt_matmul){.activation = activation, .aux = &w->dense});
    if (has_norm(m))
        dt_layer_norm_forward(m, layer, DT_ROLE_HEAD_NORM_WEIGHT, DT_ROLE_HEAD_NORM_BIAS,
                              &w->normed, &w->stats, &w->active, &w->active, NULL);
    multiply(m, &w->logits, transformed(w, m, x));
}

/* Losses and hits of a chunk; overwrites its logits with their gradient. */
static void cross_entropy(struct dt_head_work *w, const struct dt_model *m, float *losses,
                          float *hits, const int32_t *targets, const struct dt_cross_entropy *how)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_cross_entropy mapped = *how;
    int64_t n = w->logits.rows;
    mapped.map = dt_head_logit_map(m);
    if (how->map.scale != 0) { /* a temperature, of models without a map */
        assert((mapped.map.scale == 0 || mapped.map.scale == 1) && mapped.map.softcap == 0);
        mapped.map.scale = how->map.scale;
    }
    if (m->part.tp_size == 1) {
        ops->cross_entropy(m->device, losses, hits, &w->logits, targets, &mapped);
        return;
    }
    const struct dt_logit_parts parts = logit_parts_of(m);
    struct dt_tensor sums = dt_tensor_rows(&w->sums, 0, m->part.tp_size * parts.count * n);
    struct dt_tensor own = dt_tensor_rows(&sums, parts.first * n, parts.count * n);
    ops->logit_sums(m->device, &own, &w->logits, targets, &parts, &mapped.map);
    dt_tensor_parallel_all_gather(m, &sums);
    ops->cross_entropy_of_sums(m->device, losses, hits, &w->logits, &sums, targets, &parts,
                               &mapped);
}

/* The same with weights of the rows: those of one weight are processed together. */
static void weighted_cross_entropy(struct dt_head_work *all, const struct dt_model *m,
                                   float *losses, const int32_t *targets, const float *weights,
                                   const struct dt_cross_entropy *how)
{
    int64_t n = all->logits.rows, end;
    assert(m->part.tp_size == 1);
    for (int64_t from = 0; from < n; from = end) {
        struct dt_head_work w = *all;
        struct dt_cross_entropy weighted = *how;
        for (end = from + 1; end < n && weights[end] == weights[from];)
            end++;
        w.logits = dt_tensor_rows(&all->logits, from, end - from);
        weighted.scale *= weights[from];
        cross_entropy(&w, m, losses + from, NULL, targets + from, &weighted);
        if (weighted.scale == 0) /* the op computed the losses only */
            m->device->ops->zero(m->device, &w.logits);
    }
}

/* Whether the partial gradients of all rows are reduced once, after the last chunk. */
static bool reduces_late(const struct dt_model *m)
{
    return m->part.sequence && !has_dense(m) && !has_partial(m);
}

/* dinput, all rows, from the gradient of the logits: a sum over the vocabulary, whose parts are on
 * the TP ranks. */
static void input_gradient(struct dt_head_work *w, const struct dt_model *m,
                           struct dt_tensor *dinput)
{
    struct dt_tensor weight = dt_head_weight(m), *to = has_partial(m) ? &w->partial : dinput;
    struct dt_matmul product = {.parts = m->partition.token_parts,
                                .part_ends = m->partition.token_ends};
    if (m->config.num_labels > 0)
        product = (struct dt_matmul){.parts = 1};
    m->device->ops->matmul(m->device, to, &w->logits, &weight, &product);
    if (m->part.tp_size > 1 && !reduces_late(m))
        dt_tensor_parallel_sum(m, dinput, to);
}

/* Backward from the gradient of the logits, in w->logits, to dx. */
static void backward(struct dt_head_work *w, const struct dt_model *m, const struct dt_tensor *x,
                     const struct dt_flat *gradients, struct dt_tensor *dx)
{
    const struct dt_ops *ops = m->device->ops;
    int layer = m->table.layers;
    struct dt_tensor dweight = dt_head_gradient(m, gradients);
    struct dt_tensor dbias = dt_table_view(&m->table, gradients, DT_ROLE_HEAD_BIAS, layer);
    struct dt_tensor *dinput = !has_dense(m) ? dx : has_norm(m) ? &w->dnormed : &w->dactive;
    input_gradient(w, m, dinput);
    if (dweight.data)
        ops->matmul(m->device, &dweight, &w->logits, transformed(w, m, x),
                    &(struct dt_matmul){.transpose_a = true,
                                        .accumulate = true,
                                        .sums_a = dbias.data ? &dbias : NULL});
    if (!has_dense(m))
        return;
    if (has_norm(m)) {
        ops->zero(m->device, &w->dactive);
        dt_layer_norm_backward(m, gradients, layer, DT_ROLE_HEAD_NORM_WEIGHT,
                               DT_ROLE_HEAD_NORM_BIAS, &w->dactive, &w->dnormed, &w->active,
                               &w->stats);
    }
    ops->activation_backward(m->device, &w->dactive, &w->dense, dt_layer_head_activation(m));
    const struct dt_layer_map dense = {.weight = DT_ROLE_HEAD_DENSE_WEIGHT, .dy = &w->dactive};
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_HEAD_DENSE_WEIGHT,
                             DT_ROLE_HEAD_DENSE_BIAS, &w->dactive, x);
    dt_layer_input_backward(m, layer, &dense, 1, dx, NULL);
}

/* Rows from to from + n of those with a target; in w->picked, if they are scattered. */
static struct dt_tensor pick(const struct dt_head *h, const struct dt_model *m,
                             struct dt_head_work *w, int64_t from, int64_t n,
                             const struct dt_tensor *norm)
{
    struct dt_tensor x = h->scattered ? w->picked : dt_tensor_rows(norm, from, n);
    if (h->scattered)
        m->device->ops->gather(m->device, &x, norm, h->positions + from);
    return x;
}

/* A chunk: rows from to from + n of those with a target. */
static void run_chunk(const struct dt_head *h, const struct dt_model *m, int64_t from, int64_t n,
                      const struct dt_tensor *norm, bool hits, const struct dt_flat *gradients,
                      struct dt_tensor *dnorm, const struct dt_cross_entropy *how)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_head_work w = first_rows(&h->work, n);
    struct dt_tensor x = pick(h, m, &w, from, n, norm);
    forward(&w, m, &x);
    if (gradients)
        dt_model_trace(m, NULL, DT_TRACE_POINT_LOGITS, m->table.layers, &w.logits);
    if (gradients && h->weighted)
        weighted_cross_entropy(&w, m, h->losses + from, h->targets + from, h->weights + from, how);
    else
        cross_entropy(&w, m, h->losses + from, hits ? h->hits + from : NULL, h->targets + from,
                      how);
    if (gradients == NULL)
        return;
    struct dt_tensor dx = h->scattered ? w.dpicked : dt_tensor_rows(dnorm, from, n);
    backward(&w, m, &x, gradients, &dx);
    if (h->scattered)
        ops->scatter(m->device, dnorm, &dx, h->positions + from);
}

/* Inputs and outputs of dt_head_run. */
struct run {
    const struct dt_head *head;
    const struct dt_model *model;
    const struct dt_tensor *norm;
    bool hits;
    const struct dt_flat *gradients;
    struct dt_tensor *dnorm;
    const struct dt_cross_entropy *how;
};

/* Rows from first to below end of those with a target. */
static void run_rows(const struct run *r, int64_t first, int64_t end,
                     const struct dt_flat *gradients)
{
    int64_t chunk = r->head->chunk;
    for (int64_t from = first; from < end; from += chunk)
        run_chunk(r->head, r->model, from, end - from < chunk ? end - from : chunk, r->norm,
                  r->hits, gradients, r->dnorm, r->how);
}

/* The head's gradients with the buckets in one array. Release with dt_flat_release. */
static struct dt_flat flat_at(const struct dt_model *m, float *values)
{
    const struct dt_table *t = &m->table;
    int first = dt_table_layer_bucket(t->layers);
    struct dt_flat flat = {0};
    dt_flat_set(&flat, t, DT_DTYPE_F32, NULL);
    for (int i = first; i < t->bucket_count; i++)
        flat.buckets[i] = values + (t->buckets[i] - t->buckets[first]);
    return flat;
}

static void add(const struct dt_model *m, struct dt_tensor to, struct dt_tensor from)
{
    m->device->ops->combine(m->device, &to, 1, &from, 1);
}

/* to += from, of all gradients of the head. */
static void add_gradients(const struct dt_model *m, const struct dt_flat *to,
                          const struct dt_flat *from)
{
    const struct dt_table *t = &m->table;
    int after = dt_table_layer_bucket(t->layers);
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        if (p->bucket == after)
            add(m, dt_table_view(t, to, p->role, p->layer),
                dt_table_view(t, from, p->role, p->layer));
    }
    if (dt_head_gradient_bucket(m) != after)
        add(m, dt_head_gradient(m, to), dt_head_gradient(m, from));
}

static void zero_gradients(const struct dt_model *m, float *values)
{
    struct dt_tensor all = dt_matrix(values, count_gradients(m) / 16, 16);
    m->device->ops->zero(m->device, &all);
}

/* Gradients as a binary tree over the parts: node l of the stack has the sum of 2^l parts, where
 * the number of parts so far has that bit. */
static void run_parts(const struct run *r)
{
    const struct dt_head *h = r->head;
    const struct dt_model *m = r->model;
    struct dt_flat nodes[DT_HEAD_LEVELS];
    int count = 0;
    for (int i = 0; i < count_nodes(h->parts); i++)
        nodes[i] = flat_at(m, h->work.nodes[i]);
    for (int i = 0; i < h->parts; i++) {
        zero_gradients(m, h->work.nodes[count]);
        run_rows(r, i > 0 ? h->part_ends[i - 1] : 0, h->part_ends[i], &nodes[count++]);
        for (int bit = 1; i & bit; bit *= 2, count--)
            add_gradients(m, &nodes[count - 2], &nodes[count - 1]);
    }
    add_gradients(m, r->gradients, &nodes[0]);
    for (int i = 0; i < count_nodes(h->parts); i++)
        dt_flat_release(&nodes[i]);
}

void dt_head_run(struct dt_head *h, const struct dt_model *m, const struct dt_tensor *norm,
                 bool hits, const struct dt_flat *gradients, struct dt_tensor *dnorm,
                 const struct dt_cross_entropy *how)
{
    const struct run r = {h, m, norm, hits, gradients, dnorm, how};
    if (gradients && h->scattered)
        m->device->ops->zero(m->device, dnorm);
    if (gradients && h->parts > 1)
        run_parts(&r);
    else
        run_rows(&r, 0, h->count, gradients);
    if (gradients && reduces_late(m))
        dt_tensor_parallel_reduce_hidden(m, dnorm);
}

void dt_head_logits(const struct dt_head *h, const struct dt_model *m, const struct dt_tensor *norm,
                    float *host)
{
    const struct dt_logit_map map = dt_head_logit_map(m);
    int64_t columns = logit_columns(m);
    assert(m->compute == DT_DTYPE_F32 && m->part.tp_size == 1);
    for (int64_t from = 0; from < h->count; from += h->chunk) {
        int64_t n = h->count - from < h->chunk ? h->count - from : h->chunk;
        struct dt_head_work w = first_rows(&h->work, n);
        struct dt_tensor x = pick(h, m, &w, from, n, norm);
        forward(&w, m, &x);
        m->device->ops->map_logits(m->device, &w.logits, &map);
        for (int64_t row = 0; row < n; row++) {
            struct dt_tensor logits = dt_tensor_rows(&w.logits, row, 1);
            m->device->ops->download(m->device, host + (from + row) * columns, logits.data,
                                     (size_t)columns * sizeof *host);
        }
    }
}

void dt_head_download(const struct dt_head *h, const struct dt_model *m,
                      const struct dt_batch *batch, const float *values, float *host)
{
    int64_t count = h->count;
    m->device->ops->download(m->device, host, values, (size_t)count * sizeof *host);
    for (int64_t row = batch->count * batch->length - 1; row >= 0; row--)
        host[row] = batch->targets[row] < 0 ? 0 : host[--count];
}
