/* SPDX-License-Identifier: MIT */
#include "model/pass.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/block.h"
#include "model/layer.h"

/* Logits of at most this many bytes exist at a time: the head works in chunks of rows. */
#define LOGITS_BYTES ((int64_t)256 << 20)

struct dt_workspace {
    struct dt_arena arena;
    const struct dt_model *model; /* borrowed */
    struct dt_workspace_shape shape;
    int64_t layers, chunk;
    int32_t *inputs, *targets;          /* on the device, batch x length */
    float *losses, *hits;               /* likewise */
    struct dt_tensor x, out;            /* R x C: embeddings; what a block adds */
    struct dt_tensor last, norm, stats; /* the final residual stream and its norm */
    struct dt_tensor logits;            /* chunk x V */
    struct dt_block *blocks;            /* one a layer, or one for all when scoring */
    struct dt_tensor dstream, dnorm;    /* R x C gradients, training only */
    struct dt_block_scratch scratch;
};

static void lay_out(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    int64_t rows = w->shape.batch * w->shape.length, width = m->config.hidden_size;
    struct dt_arena *a = &w->arena;
    w->inputs = dt_arena_take(a, (size_t)rows * sizeof *w->inputs);
    w->targets = dt_arena_take(a, (size_t)rows * sizeof *w->targets);
    w->losses = dt_arena_take(a, (size_t)rows * sizeof *w->losses);
    w->hits = dt_arena_take(a, (size_t)rows * sizeof *w->hits);
    w->x = dt_arena_matrix_of(a, m->compute, rows, width);
    w->out = dt_arena_matrix_of(a, m->compute, rows, width);
    w->last = dt_arena_matrix_of(a, m->compute, rows, width);
    w->norm = dt_arena_matrix_of(a, m->compute, rows, width);
    w->stats = dt_arena_matrix(a, rows, dt_norm_statistics(m));
    w->logits = dt_arena_matrix_of(a, m->compute, w->chunk, m->config.vocab_size);
    struct dt_block shared;
    dt_block_layout(&shared, a, m, rows, w->shape.recompute, NULL);
    for (int64_t i = 0; i < w->layers; i++)
        dt_block_layout(&w->blocks[i], a, m, rows, w->shape.recompute, &shared);
    if (w->shape.training) {
        w->dstream = dt_arena_matrix_of(a, m->compute, rows, width);
        w->dnorm = dt_arena_matrix_of(a, m->compute, rows, width);
        dt_block_scratch_layout(&w->scratch, a, m, rows);
    }
}

struct dt_workspace *dt_workspace_plan(const struct dt_model *m,
                                       const struct dt_workspace_shape *shape)
{
    struct dt_workspace *w = dt_alloc(1, sizeof *w);
    int64_t rows = shape->batch * shape->length;
    int64_t most = LOGITS_BYTES / (int64_t)dt_dtype_size(m->compute) / m->config.vocab_size;
    assert(shape->length <= m->config.max_seq_len);
    w->model = m;
    w->shape = *shape;
    w->layers = shape->training ? m->config.num_layers : 1;
    w->chunk = most < 1 ? 1 : most < rows ? most : rows;
    w->blocks = dt_alloc((size_t)w->layers, sizeof *w->blocks);
    lay_out(w);
    return w;
}

int dt_workspace_allocate(struct dt_workspace *w, struct dt_error *err)
{
    DT_TRY(dt_arena_allocate(&w->arena, w->model->device, err));
    lay_out(w);
    return 0;
}

int dt_workspace_new(struct dt_workspace **result, const struct dt_model *m,
                     const struct dt_workspace_shape *shape, struct dt_error *err)
{
    struct dt_workspace *w = dt_workspace_plan(m, shape);
    *result = NULL;
    int rc = dt_workspace_allocate(w, err);
    if (rc < 0) {
        dt_workspace_free(w);
        return rc;
    }
    *result = w;
    return 0;
}

size_t dt_workspace_bytes(const struct dt_workspace *w)
{
    return w->arena.memory ? w->arena.size : w->arena.used;
}

void dt_workspace_free(struct dt_workspace *w)
{
    if (w == NULL)
        return;
    dt_arena_release(&w->arena, w->model->device);
    free(w->blocks);
    free(w);
}

static int64_t stage(struct dt_workspace *w, const struct dt_batch *batch)
{
    struct dt_device *dev = w->model->device;
    int64_t rows = batch->count * batch->length;
    size_t bytes = (size_t)rows * sizeof *w->inputs;
    assert(rows <= w->shape.batch * w->shape.length);
    dev->ops->upload(dev, w->inputs, batch->inputs, bytes);
    dev->ops->upload(dev, w->targets, batch->targets, bytes);
    return rows;
}

/* Embedding, blocks and final norm; leaves the norm's output in w->norm. */
static void forward(const struct dt_model *m, struct dt_workspace *w,
                    const struct dt_block_pass *pass, int64_t rows)
{
    int layers = m->table.layers;
    struct dt_tensor tokens = dt_model_weight(m, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor positions = dt_model_weight(m, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor x = dt_rows(&w->x, 0, rows), out = dt_rows(&w->out, 0, rows);
    struct dt_tensor last = dt_rows(&w->last, 0, rows), norm = dt_rows(&w->norm, 0, rows);
    struct dt_tensor stats = dt_rows(&w->stats, 0, rows);
    m->device->ops->embedding_forward(m->device, &x, w->inputs, &tokens,
                                      positions.data ? &positions : NULL, pass->attention.queries,
                                      0);
    dt_drop(m, -1, DT_DROP_EMBEDDING, &x, pass);
    const struct dt_tensor *add = NULL;
    for (int layer = 0; layer < layers; layer++) {
        struct dt_block *block = &w->blocks[layer % w->layers];
        dt_block_forward(m, layer, block, &x, add, &out, NULL, pass);
        x = dt_rows(&block->middle, 0, rows);
        add = &out;
    }
    dt_norm_forward(m, layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &norm, &stats, &last, &x,
                    add);
}

/* Head and loss, chunk by chunk; with gradients also the head's backward pass,
 * so that the logits of all rows never exist together. */
static void head(const struct dt_model *m, struct dt_workspace *w, int64_t rows, float *hits,
                 float *gradients, const struct dt_cross_entropy *loss)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor weight = dt_head_weight(m);
    for (int64_t from = 0; from < rows; from += w->chunk) {
        int64_t count = rows - from < w->chunk ? rows - from : w->chunk;
        struct dt_tensor norm = dt_rows(&w->norm, from, count);
        struct dt_tensor logits = dt_rows(&w->logits, 0, count);
        ops->matmul(m->device, &logits, &norm, &weight, &(struct dt_matmul){.transpose_b = true});
        ops->cross_entropy(m->device, w->losses + from, hits ? hits + from : NULL, &logits,
                           w->targets + from, loss);
        if (gradients == NULL)
            continue;
        struct dt_tensor dweight = dt_head_gradient(m, gradients);
        struct dt_tensor dnorm = dt_rows(&w->dnorm, from, count);
        ops->matmul(m->device, &dnorm, &logits, &weight, &(struct dt_matmul){.accumulate = false});
        ops->matmul(m->device, &dweight, &logits, &norm,
                    &(struct dt_matmul){.transpose_a = true, .accumulate = true});
    }
}

static void backward(const struct dt_model *m, struct dt_workspace *w,
                     const struct dt_block_pass *pass, int64_t rows, float *gradients)
{
    const struct dt_ops *ops = m->device->ops;
    const struct dt_table *t = &m->table;
    int layers = t->layers;
    struct dt_tensor dtokens = dt_table_view(t, DT_F32, gradients, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor dpositions = dt_table_view(t, DT_F32, gradients, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor stream = dt_rows(&w->dstream, 0, rows), dnorm = dt_rows(&w->dnorm, 0, rows);
    struct dt_tensor last = dt_rows(&w->last, 0, rows), stats = dt_rows(&w->stats, 0, rows);
    ops->zero(m->device, &stream);
    dt_norm_backward(m, gradients, layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &stream,
                     &dnorm, &last, &stats);
    for (int layer = layers - 1; layer >= 0; layer--)
        dt_block_backward(m, layer, &w->blocks[layer], &stream, &w->scratch, gradients,
                          w->shape.recompute, pass);
    dt_drop(m, -1, DT_DROP_EMBEDDING, &stream, pass);
    ops->embedding_backward(m->device, &dtokens, dpositions.data ? &dpositions : NULL, &stream,
                            w->inputs, pass->attention.queries);
}

double dt_model_backward(const struct dt_model *m, struct dt_workspace *w,
                         const struct dt_batch *batch, float *gradients, const struct dt_pass *how)
{
    int64_t rows = stage(w, batch);
    const struct dt_block_pass pass = {
        .attention = dt_model_attention(m, batch->count, batch->length),
        .dropout = true,
        .seed = how->seed,
        .sample = batch->first_sample,
    };
    const struct dt_cross_entropy loss = {how->scale, how->label_smoothing, how->z_loss};
    assert(w->shape.training);
    forward(m, w, &pass, rows);
    head(m, w, rows, NULL, gradients, &loss);
    backward(m, w, &pass, rows, gradients);
    return m->device->ops->sum(m->device, w->losses, rows);
}

/* Moves the rows of w->norm that have targets to the front, and their targets, so
 * that the head computes no others; returns how many they are. */
static int64_t gather_targets(struct dt_workspace *w, const struct dt_batch *batch)
{
    struct dt_device *dev = w->model->device;
    int64_t rows = batch->count * batch->length, count = 0;
    int32_t *targets = dt_alloc((size_t)rows, sizeof *targets);
    for (int64_t from = 0, to; from < rows; from = to) {
        for (to = from; to < rows && batch->targets[to] >= 0; to++)
            targets[count + to - from] = batch->targets[to];
        struct dt_tensor here = dt_rows(&w->norm, from, to - from);
        struct dt_tensor there = dt_rows(&w->last, count, to - from);
        if (to > from)
            dev->ops->copy(dev, &there, &here);
        count += to - from;
        while (to < rows && batch->targets[to] < 0)
            to++;
    }
    struct dt_tensor gathered = w->last;
    w->last = w->norm;
    w->norm = gathered;
    dev->ops->upload(dev, w->targets, targets, (size_t)count * sizeof *targets);
    free(targets);
    return count;
}

/* Gives what was computed for the rows with targets back to their places. */
static void scatter(float *values, const struct dt_batch *batch, int64_t count)
{
    for (int64_t row = batch->count * batch->length - 1; row >= 0; row--)
        values[row] = batch->targets[row] < 0 ? 0 : values[--count];
}

void dt_model_score(const struct dt_model *m, struct dt_workspace *w, const struct dt_batch *batch,
                    float *losses, float *hits)
{
    struct dt_device *dev = m->device;
    int64_t rows = stage(w, batch);
    const struct dt_block_pass pass = {.attention =
                                           dt_model_attention(m, batch->count, batch->length)};
    forward(m, w, &pass, rows);
    int64_t count = gather_targets(w, batch);
    size_t bytes = (size_t)count * sizeof *losses;
    head(m, w, count, hits ? w->hits : NULL, NULL, &(struct dt_cross_entropy){0});
    dev->ops->download(dev, losses, w->losses, bytes);
    scatter(losses, batch, count);
    if (hits == NULL)
        return;
    dev->ops->download(dev, hits, w->hits, bytes);
    scatter(hits, batch, count);
}
