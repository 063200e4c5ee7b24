/* SPDX-License-Identifier: MIT */
#include "model/pass.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/block.h"
#include "model/families.h"
#include "model/head.h"
#include "model/layer.h"

struct dt_workspace {
    struct dt_arena arena;
    const struct dt_model *model; /* borrowed */
    struct dt_workspace_shape shape;
    int64_t layers;
    int32_t *inputs;                    /* on the device, batch x length */
    struct dt_tensor x, out;            /* R x C: embeddings; what a block adds */
    struct dt_tensor last, norm, stats; /* the final residual stream and its norm */
    struct dt_head head;
    struct dt_block *blocks;         /* one a layer, or one for all when scoring */
    struct dt_tensor dstream, dnorm; /* R x C gradients, training only */
    struct dt_block_scratch scratch;
};

static void lay_out(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    int64_t rows = w->shape.batch * w->shape.length, width = m->config.hidden_size;
    struct dt_arena *a = &w->arena;
    w->inputs = dt_arena_take(a, (size_t)rows * sizeof *w->inputs);
    w->x = dt_arena_matrix_of(a, m->compute, rows, width);
    w->out = dt_arena_matrix_of(a, m->compute, rows, width);
    w->last = dt_arena_matrix_of(a, m->compute, rows, width);
    w->norm = dt_arena_matrix_of(a, m->compute, rows, width);
    w->stats = dt_arena_matrix(a, rows, dt_norm_statistics(m));
    dt_head_layout(&w->head, a, m, w->shape.training);
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
    assert(shape->length <= m->config.max_seq_len);
    w->model = m;
    w->shape = *shape;
    w->layers = shape->training ? m->config.num_layers : 1;
    dt_head_init(&w->head, m, shape->batch * shape->length);
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
    dt_head_release(&w->head);
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
    dt_head_stage(&w->head, w->model, batch);
    return rows;
}

/* The first row of x as so many rows: all tokens are of the first type. */
static struct dt_tensor repeat_first(const struct dt_tensor *x, int64_t rows)
{
    struct dt_tensor repeated = *x;
    repeated.rows = rows;
    repeated.stride = 0;
    return repeated;
}

/* Embedding, blocks and final norm; leaves the norm's output in w->norm. */
static void forward(const struct dt_model *m, struct dt_workspace *w,
                    const struct dt_block_pass *pass, int64_t rows)
{
    int layers = m->table.layers;
    struct dt_tensor tokens = dt_model_weight(m, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor positions = dt_model_weight(m, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor types = dt_model_weight(m, DT_TYPE_EMBEDDING, -1);
    struct dt_tensor type = repeat_first(&types, rows);
    struct dt_tensor x = dt_rows(&w->x, 0, rows), out = dt_rows(&w->out, 0, rows);
    struct dt_tensor last = dt_rows(&w->last, 0, rows), norm = dt_rows(&w->norm, 0, rows);
    struct dt_tensor stats = dt_rows(&w->stats, 0, rows);
    m->device->ops->embedding_forward(m->device, &x, w->inputs, &tokens,
                                      positions.data ? &positions : NULL, pass->attention.queries,
                                      0);
    if (!dt_architecture_of(&m->config)->post_norm)
        dt_drop(m, -1, DT_DROP_EMBEDDING, &x, pass);
    const struct dt_tensor *add = types.data ? &type : NULL;
    for (int layer = 0; layer < layers; layer++) {
        struct dt_block *block = &w->blocks[layer % w->layers];
        dt_block_forward(m, layer, block, &x, add, &out, NULL, pass);
        x = dt_rows(dt_block_stream(m, block), 0, rows);
        add = &out;
    }
    dt_norm_forward(m, layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &norm, &stats, &last, &x,
                    add);
}

static void backward(const struct dt_model *m, struct dt_workspace *w,
                     const struct dt_block_pass *pass, int64_t rows, float *gradients)
{
    const struct dt_ops *ops = m->device->ops;
    const struct dt_table *t = &m->table;
    int layers = t->layers;
    struct dt_tensor dtokens = dt_table_view(t, DT_F32, gradients, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor dpositions = dt_table_view(t, DT_F32, gradients, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor dtypes = dt_table_view(t, DT_F32, gradients, DT_TYPE_EMBEDDING, -1);
    struct dt_tensor stream = dt_rows(&w->dstream, 0, rows), dnorm = dt_rows(&w->dnorm, 0, rows);
    struct dt_tensor last = dt_rows(&w->last, 0, rows), stats = dt_rows(&w->stats, 0, rows);
    ops->zero(m->device, &stream);
    dt_norm_backward(m, gradients, layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &stream,
                     &dnorm, &last, &stats);
    for (int layer = layers - 1; layer >= 0; layer--)
        dt_block_backward(m, layer, &w->blocks[layer], &stream, &w->scratch, gradients,
                          w->shape.recompute, pass);
    if (!dt_architecture_of(&m->config)->post_norm)
        dt_drop(m, -1, DT_DROP_EMBEDDING, &stream, pass);
    if (dtypes.data) {
        struct dt_tensor dtype = dt_rows(&dtypes, 0, 1);
        ops->bias_backward(m->device, &dtype, &stream);
    }
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
    struct dt_tensor norm = dt_rows(&w->norm, 0, rows), dnorm = dt_rows(&w->dnorm, 0, rows);
    assert(w->shape.training);
    forward(m, w, &pass, rows);
    dt_head_run(&w->head, m, &norm, false, gradients, &dnorm, &loss);
    backward(m, w, &pass, rows, gradients);
    return m->device->ops->sum(m->device, w->head.losses, w->head.count);
}

void dt_model_score(const struct dt_model *m, struct dt_workspace *w, const struct dt_batch *batch,
                    float *losses, float *hits)
{
    int64_t rows = stage(w, batch);
    const struct dt_block_pass pass = {.attention =
                                           dt_model_attention(m, batch->count, batch->length)};
    struct dt_tensor norm = dt_rows(&w->norm, 0, rows);
    forward(m, w, &pass, rows);
    dt_head_run(&w->head, m, &norm, hits != NULL, NULL, NULL, &(struct dt_cross_entropy){0});
    dt_head_download(&w->head, m, batch, w->head.losses, losses);
    if (hits)
        dt_head_download(&w->head, m, batch, w->head.hits, hits);
}
