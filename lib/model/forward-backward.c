/* SPDX-License-Identifier: MIT */
#include "model/forward-backward.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "device/time-spans.h"
#include "model/block.h"
#include "model/context-parallel.h"
#include "model/head.h"
#include "model/layer.h"
#include "model/tensor-parallel.h"

/* Scratch buffers, which workspaces may share. */
struct common {
    struct dt_tensor x, out;         /* R x C: embeddings or received; what a block adds */
    struct dt_tensor dstream, dnorm; /* S x C and R x C gradients, training only */
    struct dt_block_scratch scratch;
    struct dt_block block;               /* recomputed buffers */
    struct dt_context_attention context; /* with several chunks of sequences */
    struct dt_tensor partial;            /* R x C fp32: sums over TP ranks, with 16 bits */
};

struct dt_workspace {
    struct dt_arena arena;
    const struct dt_model *model; /* borrowed */
    struct dt_workspace_shape shape;
    /* The current batch. */
    int64_t rows;
    struct dt_block_pass pass;
    struct dt_cross_entropy loss;
    const struct dt_token_weights *weights; /* or NULL */
    const struct dt_batch *batch;           /* with weights */
    float *token_losses, *token_weights;    /* with weights: B x T in host memory */
    /* On the device, one element a row. */
    int32_t *inputs, *span_begins, *span_ends;
    struct dt_exact_sum *loss_sum; /* of dt_model_backward */
    int32_t *ids;                  /* in host memory, batch x length, with a split vocabulary */
    struct dt_batch own;           /* the rows of this CP rank */
    int32_t *spans;                /* of its rows */
    struct dt_block *blocks;       /* one per layer of the run, or one for all when scoring */
    struct dt_tensor last;         /* S x C (block.h): the residual stream after the last block */
    struct dt_tensor norm, stats;  /* its norm, R x C and S x dt_layer_norm_statistics */
    struct dt_head head;
    struct common common; /* may be another workspace's */
};

static bool is_first(const struct dt_workspace *w)
{
    return w->shape.run.first == 0;
}

static bool is_last(const struct dt_workspace *w)
{
    return w->shape.run.end == w->model->table.layers;
}

/* Blocks with separate buffers. */
static int64_t block_count(const struct dt_workspace *w)
{
    return w->shape.training ? dt_range_count(w->shape.run) : 1;
}

/* Whether this rank's rows are not those of the batch, in their order. */
static bool selects_rows(const struct dt_workspace *w)
{
    return dt_context_parallel_all_chunks(&w->model->part) > 1;
}

/* The maximum of R. */
static int64_t most_rows(const struct dt_workspace *w)
{
    return dt_context_parallel_rows(&w->model->part, w->shape.batch, w->shape.length);
}

static void lay_out_common(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    int64_t rows = most_rows(w), width = m->config.hidden_size;
    struct dt_arena *a = &w->arena;
    w->common.x = dt_arena_matrix_of(a, m->compute, rows, width);
    w->common.out = dt_arena_matrix_of(a, m->compute, rows, width);
    dt_block_layout(&w->common.block, a, m, rows, w->shape.recompute, NULL);
    if (w->shape.training) {
        w->common.dstream =
            dt_arena_matrix_of(a, m->compute, dt_block_hidden_rows_most(m, rows), width);
        w->common.dnorm = dt_arena_matrix_of(a, m->compute, rows, width);
        dt_block_scratch_layout(&w->common.scratch, a, m, rows);
    }
    if (m->part.tp_size > 1 && m->compute != DT_DTYPE_F32)
        w->common.partial = dt_arena_matrix(a, rows, width);
    if (selects_rows(w))
        dt_context_attention_layout(&w->common.context, a, m, rows, w->shape.training);
}

static void lay_out(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    const struct dt_workspace *scratch_owner = w->shape.scratch_owner;
    int64_t rows = most_rows(w), width = m->config.hidden_size;
    int64_t own = dt_block_hidden_rows_most(m, rows);
    struct dt_arena *a = &w->arena;
    if (scratch_owner)
        w->common = scratch_owner->common;
    else
        lay_out_common(w);
    w->inputs = dt_arena_take(a, (size_t)rows * sizeof *w->inputs);
    w->loss_sum = dt_arena_take(a, sizeof *w->loss_sum);
    w->span_begins = dt_arena_take(a, (size_t)rows * sizeof *w->span_begins);
    w->span_ends = dt_arena_take(a, (size_t)rows * sizeof *w->span_ends);
    w->last = dt_arena_matrix_of(a, m->compute, own, width);
    if (dt_model_part_holds(&m->part, m->table.layers, m->table.layers)) {
        w->norm = dt_arena_matrix_of(a, m->compute, rows, width);
        w->stats = dt_arena_matrix(a, own, dt_layer_norm_statistics(m));
        dt_head_layout(&w->head, a, m, w->shape.training,
                       scratch_owner ? &scratch_owner->head : NULL);
    }
    for (int i = 0; i < block_count(w); i++)
        dt_block_layout(&w->blocks[i], a, m, rows, w->shape.recompute, &w->common.block);
}

struct dt_workspace *dt_workspace_plan(const struct dt_model *m,
                                       const struct dt_workspace_shape *shape)
{
    struct dt_workspace *w = dt_alloc(1, sizeof *w);
    assert(shape->length <= m->config.max_seq_len);
    w->model = m;
    w->shape = *shape;
    if (shape->run.end == 0)
        w->shape.run.end = m->table.layers;
    dt_head_init(&w->head, m, most_rows(w), shape->head_rows);
    w->blocks = dt_alloc((size_t)block_count(w), sizeof *w->blocks);
    lay_out(w);
    return w;
}

int dt_workspace_allocate(struct dt_workspace *w, struct dt_error *err)
{
    DT_TRY(dt_arena_allocate(&w->arena, w->model->device, err));
    if (w->model->part.tp_size > 1 && is_first(w))
        w->ids = dt_alloc((size_t)most_rows(w), sizeof *w->ids);
    if (selects_rows(w)) {
        dt_batch_init(&w->own, w->shape.batch, most_rows(w) / w->shape.batch);
        w->spans = dt_alloc((size_t)(2 * most_rows(w)), sizeof *w->spans);
    }
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
    dt_batch_release(&w->own);
    free(w->token_losses);
    free(w->token_weights);
    free(w->spans);
    free(w->blocks);
    free(w->ids);
    free(w);
}

/* Uploads ids, relative to the first token of the rank's vocabulary shard. */
static void stage_ids(struct dt_workspace *w, const struct dt_batch *batch)
{
    struct dt_device *dev = w->model->device;
    const int32_t *ids = batch->inputs;
    for (int64_t i = 0; i < w->rows; i++)
        assert(ids[i] >= 0 && ids[i] < w->model->config.vocab_size);
    for (int64_t i = 0; w->ids && i < w->rows; i++)
        w->ids[i] = ids[i] - (int32_t)w->model->partition.tokens.first;
    dev->ops->upload(dev, w->inputs, w->ids ? w->ids : ids, (size_t)w->rows * sizeof *ids);
}

/* Uploads the spans of attention, if the batch has any. */
static void stage_spans(struct dt_workspace *w, const struct dt_batch *batch)
{
    struct dt_device *dev = w->model->device;
    size_t bytes = (size_t)w->rows * sizeof *w->span_begins;
    if (batch->begins == NULL)
        return;
    dev->ops->upload(dev, w->span_begins, batch->begins, bytes);
    dev->ops->upload(dev, w->span_ends, batch->ends, bytes);
    w->pass.attention.begins = w->span_begins;
    w->pass.attention.ends = w->span_ends;
}

void dt_pass_begin(struct dt_workspace *w, const struct dt_batch *batch, const struct dt_pass *how)
{
    const struct dt_model *m = w->model;
    w->rows = dt_context_parallel_rows(&m->part, batch->count, batch->length);
    assert(w->rows <= most_rows(w));
    w->pass = (struct dt_block_pass){
        .rows = w->rows,
        .attention = dt_model_attention(m, batch->count, batch->length),
        .context = &w->common.context,
        .partial = w->common.partial,
        .dropout = how != NULL,
        .seed = how ? how->seed : 0,
        .sample = batch->first_sample,
    };
    if (selects_rows(w)) {
        dt_context_parallel_select(&w->own, w->spans, &m->part, batch);
        batch = &w->own;
    }
    stage_spans(w, batch);
    w->loss = how ? (struct dt_cross_entropy){how->scale, how->label_smoothing, how->z_loss}
                  : (struct dt_cross_entropy){0};
    w->loss.map.scale = how && how->temperature != 0 ? 1 / how->temperature : 0;
    w->weights = how ? how->weights : NULL;
    w->batch = batch;
    if (is_first(w))
        stage_ids(w, batch);
    if (is_last(w))
        dt_head_stage(&w->head, m, batch);
}

static struct dt_tensor rows_of(const struct dt_workspace *w, const struct dt_tensor *x)
{
    return dt_tensor_rows(x, 0, w->rows);
}

/* This rank's rows of hidden states, of a buffer with all rows; and of a buffer with these only. */
static struct dt_tensor stream_of(const struct dt_workspace *w, const struct dt_tensor *x)
{
    struct dt_tensor rows = rows_of(w, x);
    return dt_block_hidden_rows(w->model, &rows);
}

static struct dt_tensor own_of(const struct dt_workspace *w, const struct dt_tensor *x)
{
    return dt_tensor_rows(x, 0, dt_range_count(dt_tensor_parallel_rows(w->model, w->rows)));
}

struct dt_tensor dt_pass_input(const struct dt_workspace *w)
{
    return stream_of(w, &w->common.x);
}

struct dt_tensor dt_pass_output(const struct dt_workspace *w)
{
    return own_of(w, &w->last);
}

struct dt_tensor dt_pass_gradient(const struct dt_workspace *w)
{
    return own_of(w, &w->common.dstream);
}

uint64_t dt_pass_token(const struct dt_workspace *w, int64_t i)
{
    const struct dt_model *m = w->model;
    const struct dt_batch batch = {.count = w->pass.attention.batch,
                                   .length = w->pass.attention.length};
    int64_t row = dt_tensor_parallel_rows(m, w->rows).first + i;
    return w->pass.sample * (uint64_t)batch.length +
           (uint64_t)dt_context_parallel_row(&m->part, &batch, row);
}

static void trace(const struct dt_workspace *w, enum dt_trace_point point, int layer,
                  const struct dt_tensor *buffer)
{
    struct dt_tensor states = own_of(w, buffer);
    if (w->shape.training)
        dt_model_trace(w->model, w, point, layer, &states);
}

static const struct dt_block *block_of(const struct dt_workspace *w, int layer)
{
    return &w->blocks[(layer - w->shape.run.first) % block_count(w)];
}

struct dt_tensor dt_pass_units(const struct dt_workspace *w, int layer)
{
    const struct dt_block *b = block_of(w, layer);
    return rows_of(w, dt_model_is_gated(&w->model->config) ? &b->gate : &b->up);
}

struct dt_mean_keys dt_pass_mean_keys(const struct dt_workspace *w, int layer)
{
    return dt_block_mean_keys(w->model, layer, block_of(w, layer), &w->common.scratch, &w->pass);
}

/* Repeats the first row of x: all tokens are of type 0. */
static struct dt_tensor repeat_first(const struct dt_tensor *x, int64_t rows)
{
    struct dt_tensor repeated = *x;
    repeated.rows = rows;
    repeated.stride = 0;
    return repeated;
}

/* The row of the position embeddings of chunk i's first token. */
static int64_t first_position(const struct dt_workspace *w, int i)
{
    const struct dt_model *m = w->model;
    return dt_context_parallel_chunk_start(&m->part, w->pass.attention.length, i) +
           dt_family_of(&m->config)->position_offset;
}

/* Token and position embeddings, the input of the first block. */
static void embed(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    struct dt_tensor x = rows_of(w, &w->common.x), own = stream_of(w, &w->common.x);
    struct dt_tensor tokens = dt_model_weight(m, DT_ROLE_TOKEN_EMBEDDING, -1);
    struct dt_tensor positions = dt_model_weight(m, DT_ROLE_POSITION_EMBEDDING, -1);
    bool adds_positions = positions.data && m->part.tp_rank == 0; /* added by one rank of the sum */
    const struct dt_attention *chunk = &w->pass.attention;
    for (int i = 0; i < dt_context_parallel_chunks(&m->part); i++) {
        struct dt_tensor rows = dt_context_parallel_chunk_rows(&m->part, &x, i);
        m->device->ops->embedding_forward(m->device, &rows, w->inputs + i * rows.rows, &tokens,
                                          adds_positions ? &positions : NULL, chunk->queries,
                                          first_position(w, i));
    }
    if (m->part.tp_size > 1)
        dt_tensor_parallel_reduce_hidden(m, &x);
    dt_layer_scale(m, &own, m->config.embedding_scale);
    if (!dt_block_drops_embedding(m, 0))
        dt_block_dropout(m, -1, DT_DROPOUT_SITE_EMBEDDING, &own, &w->pass);
}

/* The gradient of the embeddings, all rows, from this rank's rows. */
static struct dt_tensor all_rows(struct dt_workspace *w, struct dt_tensor *own)
{
    const struct dt_model *m = w->model;
    struct dt_tensor rows = rows_of(w, &w->common.dnorm), dest = stream_of(w, &w->common.dnorm);
    if (!dt_block_drops_embedding(m, 0))
        dt_block_dropout(m, -1, DT_DROPOUT_SITE_EMBEDDING, own, &w->pass);
    if (!m->part.sequence)
        return *own;
    m->device->ops->copy(m->device, &dest, own);
    dt_tensor_parallel_all_gather(m, &rows);
    return rows;
}

static struct dt_tensor positions_of(const struct dt_workspace *w,
                                     const struct dt_tensor *dpositions, int chunk)
{
    return dt_tensor_rows(dpositions, first_position(w, chunk), w->pass.attention.queries);
}

/* Adds to the gradients of the positions of chunk i. */
static void positions_backward(struct dt_workspace *w, const struct dt_tensor *dpositions,
                               const struct dt_tensor *stream, int i)
{
    const struct dt_model *m = w->model;
    struct dt_tensor rows = dt_context_parallel_chunk_rows(&m->part, stream, i);
    struct dt_tensor here = positions_of(w, dpositions, i);
    struct dt_tensor no_tokens = dt_matrix(NULL, 0, dpositions->columns);
    m->device->ops->embedding_backward(m->device, &no_tokens, &here, &rows,
                                       w->inputs + i * rows.rows, w->pass.attention.queries, 1);
}

static void embed_backward(struct dt_workspace *w, const struct dt_flat *gradients)
{
    const struct dt_model *m = w->model;
    const struct dt_ops *ops = m->device->ops;
    if (m->adapter) /* embeddings are frozen */
        return;
    struct dt_tensor own = own_of(w, &w->common.dstream), stream = all_rows(w, &own);
    struct dt_tensor dtokens = dt_table_view(&m->table, gradients, DT_ROLE_TOKEN_EMBEDDING, -1);
    struct dt_tensor dpositions =
        dt_table_view(&m->table, gradients, DT_ROLE_POSITION_EMBEDDING, -1);
    struct dt_tensor dtypes = dt_table_view(&m->table, gradients, DT_ROLE_TYPE_EMBEDDING, -1);
    int chunks = dt_context_parallel_chunks(&m->part);
    if (dtypes.data) {
        struct dt_tensor dtype = dt_tensor_rows(&dtypes, 0, 1);
        ops->bias_backward(m->device, &dtype, &stream, chunks);
    }
    dt_layer_scale(m, &stream, m->config.embedding_scale);
    if (chunks == 1 && dpositions.data) {
        struct dt_tensor here = positions_of(w, &dpositions, 0);
        ops->embedding_backward(m->device, &dtokens, &here, &stream, w->inputs,
                                w->pass.attention.queries, 1);
        return;
    }
    ops->embedding_backward(m->device, &dtokens, NULL, &stream, w->inputs, stream.rows, chunks);
    for (int i = 0; i < chunks && dpositions.data; i++)
        positions_backward(w, &dpositions, &stream, i);
}

/* Forward of the blocks, from w->common.x to w->last. */
static void forward_blocks(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    struct dt_tensor x = stream_of(w, &w->common.x), out = rows_of(w, &w->common.out), type = {0};
    struct dt_tensor added = stream_of(w, &w->common.out);
    struct dt_tensor last = own_of(w, &w->last), stats = own_of(w, &w->stats);
    const struct dt_tensor *add = NULL;
    if (is_first(w) && m->base->has[DT_ROLE_TYPE_EMBEDDING]) {
        struct dt_tensor types = dt_model_weight(m, DT_ROLE_TYPE_EMBEDDING, -1);
        type = repeat_first(&types, x.rows);
        add = &type;
    }
    for (int layer = (int)w->shape.run.first; layer < w->shape.run.end; layer++) {
        struct dt_block *block = &w->blocks[(layer - w->shape.run.first) % block_count(w)];
        double since = dt_time_spans_begin();
        dt_model_bucket_enter(m, dt_table_layer_bucket(layer), false);
        dt_block_forward(m, layer, block, &x, add, &out, NULL, &w->pass);
        trace(w, DT_TRACE_POINT_INPUT, layer, &block->input);
        trace(w, DT_TRACE_POINT_MIDDLE, layer, &block->middle);
        dt_model_bucket_leave(m, dt_table_layer_bucket(layer), false);
        dt_time_spans_end(DT_TIME_LANE_LAYER, "forward", layer, since);
        x = dt_block_output(m, block, w->rows);
        add = &added;
    }
    if (is_last(w)) {
        struct dt_tensor norm = stream_of(w, &w->norm), rows = rows_of(w, &w->norm);
        dt_model_bucket_enter(m, dt_table_layer_bucket(m->table.layers), false);
        dt_layer_norm_forward(m, m->table.layers, DT_ROLE_FINAL_NORM_WEIGHT,
                              DT_ROLE_FINAL_NORM_BIAS, &norm, &stats, &last, &x, add);
        trace(w, DT_TRACE_POINT_INPUT, m->table.layers, &last);
        trace(w, DT_TRACE_POINT_OUTPUT, m->table.layers, &norm);
        dt_tensor_parallel_gather_hidden(m, &rows);
        dt_model_bucket_leave(m, dt_table_layer_bucket(m->table.layers), false);
    } else {
        m->device->ops->copy(m->device, &last, &x);
        if (add)
            m->device->ops->combine(m->device, &last, 1, add, 1);
    }
}

/* Adapters draw the dropout of their inputs. */
static void begin_adapters(const struct dt_workspace *w)
{
    if (w->model->adapter)
        w->model->adapter->pass = &w->pass;
}

void dt_pass_forward(struct dt_workspace *w)
{
    const struct dt_model *m = w->model;
    begin_adapters(w);
    if (is_first(w)) {
        dt_model_bucket_enter(m, DT_TOKEN_BUCKET, false);
        dt_model_bucket_enter(m, dt_table_layer_bucket(-1), false);
        embed(w);
        dt_model_bucket_leave(m, DT_TOKEN_BUCKET, false);
    }
    forward_blocks(w);
    if (is_first(w))
        dt_model_bucket_leave(m, dt_table_layer_bucket(-1), false);
}

/* --- the head --------------------------------------------------------------------------------- */

/* The head is tied, and its gradient accumulates in that of the token embedding. */
static bool shares_gradient(const struct dt_model *m)
{
    return dt_head_gradient_bucket(m) == DT_TOKEN_BUCKET;
}

static void enter_head(const struct dt_model *m, bool gradients)
{
    int after = dt_table_layer_bucket(m->table.layers), weight = dt_head_weight_bucket(m);
    int gradient = dt_head_gradient_bucket(m);
    dt_model_bucket_enter(m, after, gradients);
    if (weight != after)
        dt_model_bucket_enter(m, weight, gradients && gradient == weight);
    if (gradients && gradient != weight)
        dt_model_bucket_enter(m, gradient, true);
}

static void leave_head(const struct dt_model *m, bool gradients)
{
    int after = dt_table_layer_bucket(m->table.layers), weight = dt_head_weight_bucket(m);
    int gradient = dt_head_gradient_bucket(m);
    if (gradients && gradient != weight)
        dt_model_bucket_leave(m, gradient, true);
    if (weight != after && !(gradients && shares_gradient(m)))
        dt_model_bucket_leave(m, weight, gradients && gradient == weight);
    dt_model_bucket_leave(m, after, gradients);
}

/* Gradients whose partial sums are kept separately until the all-reduce over TP ranks. */
static struct dt_flat begin_gradients(const struct dt_model *m, int bucket,
                                      const struct dt_flat *gradients)
{
    struct dt_flat separate = *gradients;
    separate.partial = m->scratch.partial;
    dt_tensor_parallel_clear_partial(m, bucket);
    return separate;
}

static void download(const struct dt_workspace *w, const struct dt_batch *batch,
                     const float *values, float *host);

/* Computes the losses of the tokens, and from them the weights of their gradients. */
static void weigh_tokens(struct dt_workspace *w, const struct dt_tensor *norm)
{
    struct dt_cross_entropy forward_only = w->loss;
    size_t most = (size_t)(w->shape.batch * w->shape.length);
    assert(!selects_rows(w));
    if (w->token_losses == NULL) {
        w->token_losses = dt_alloc(most, sizeof *w->token_losses);
        w->token_weights = dt_alloc(most, sizeof *w->token_weights);
    }
    forward_only.scale = 0;
    dt_head_run(&w->head, w->model, norm, false, NULL, NULL, &forward_only);
    download(w, w->batch, w->head.losses, w->token_losses);
    w->weights->set(w->weights->context, w->batch, w->token_losses, w->token_weights);
    dt_head_weigh(&w->head, w->batch, w->token_weights);
}

/* Sets common.dstream to the gradient after the last block. */
static void head_backward(struct dt_workspace *w, const struct dt_flat *gradients)
{
    const struct dt_model *m = w->model;
    int after = dt_table_layer_bucket(m->table.layers);
    struct dt_tensor norm = rows_of(w, &w->norm), dnorm = rows_of(w, &w->common.dnorm);
    struct dt_tensor own = stream_of(w, &w->common.dnorm), stream = own_of(w, &w->common.dstream);
    struct dt_tensor last = own_of(w, &w->last), stats = own_of(w, &w->stats);
    enter_head(m, true);
    struct dt_flat separate = begin_gradients(m, after, gradients);
    if (w->weights)
        weigh_tokens(w, &norm);
    dt_head_run(&w->head, m, &norm, false, &separate, &dnorm, &w->loss);
    if (w->weights)
        dt_head_set_losses(&w->head, m, w->batch, w->token_losses);
    m->device->ops->zero(m->device, &stream);
    dt_layer_norm_backward(m, &separate, m->table.layers, DT_ROLE_FINAL_NORM_WEIGHT,
                           DT_ROLE_FINAL_NORM_BIAS, &stream, &own, &last, &stats);
    dt_tensor_parallel_add_partial(m, after, gradients);
    leave_head(m, true);
    trace(w, DT_TRACE_POINT_GRADIENT, m->table.layers, &stream);
}

static void blocks_backward(struct dt_workspace *w, const struct dt_flat *gradients)
{
    const struct dt_model *m = w->model;
    struct dt_tensor stream = own_of(w, &w->common.dstream);
    for (int layer = (int)w->shape.run.end - 1; layer >= w->shape.run.first; layer--) {
        int bucket = dt_table_layer_bucket(layer);
        double since = dt_time_spans_begin();
        dt_model_bucket_enter(m, bucket, true);
        struct dt_flat separate = begin_gradients(m, bucket, gradients);
        dt_block_backward(m, layer, &w->blocks[layer - w->shape.run.first], &stream,
                          &w->common.scratch, &separate, w->shape.recompute, &w->pass);
        trace(w, DT_TRACE_POINT_GRADIENT, layer, &stream);
        dt_tensor_parallel_add_partial(m, bucket, gradients);
        dt_model_bucket_leave(m, bucket, true);
        dt_time_spans_end(DT_TIME_LANE_LAYER, "backward", layer, since);
    }
}

void dt_pass_backward(struct dt_workspace *w, const struct dt_flat *gradients,
                      struct dt_exact_sum *loss)
{
    const struct dt_model *m = w->model;
    assert(w->shape.training);
    double since = dt_time_spans_begin();
    begin_adapters(w);
    if (is_last(w))
        head_backward(w, gradients);
    dt_time_spans_end(DT_TIME_LANE_LAYER, "head", -1, since);
    blocks_backward(w, gradients);
    if (is_first(w)) {
        if (!(is_last(w) && shares_gradient(m)))
            dt_model_bucket_enter(m, DT_TOKEN_BUCKET, true);
        dt_model_bucket_enter(m, dt_table_layer_bucket(-1), true);
        embed_backward(w, gradients);
        dt_model_bucket_leave(m, dt_table_layer_bucket(-1), true);
        dt_model_bucket_leave(m, DT_TOKEN_BUCKET, true);
    }
    if (is_last(w))
        m->device->ops->exact_sum(m->device, loss, w->head.losses, w->head.count, false);
}

double dt_model_backward(const struct dt_model *m, struct dt_workspace *w,
                         const struct dt_batch *batch, const struct dt_flat *gradients,
                         const struct dt_pass *how)
{
    assert(w->model == m && is_first(w) && is_last(w));
    struct dt_exact_sum loss;
    struct dt_tensor words = dt_matrix(w->loss_sum, 1, (int64_t)(sizeof loss / sizeof(float)));
    m->device->ops->zero(m->device, &words);
    dt_pass_begin(w, batch, how);
    dt_pass_forward(w);
    dt_pass_backward(w, gradients, w->loss_sum);
    m->device->ops->download(m->device, &loss, w->loss_sum, sizeof loss);
    return dt_exact_sum_round(&loss);
}

/* values: of the rows with a target only. */
static void download(const struct dt_workspace *w, const struct dt_batch *batch,
                     const float *values, float *host)
{
    const struct dt_model *m = w->model;
    if (!selects_rows(w)) {
        dt_head_download(&w->head, m, batch, values, host);
        return;
    }
    float *own = dt_alloc((size_t)w->rows, sizeof *own);
    dt_head_download(&w->head, m, &w->own, values, own);
    memset(host, 0, (size_t)(batch->count * batch->length) * sizeof *host);
    for (int64_t i = 0; i < w->rows; i++)
        host[dt_context_parallel_row(&m->part, batch, i)] = own[i];
    free(own);
}

void dt_pass_score(struct dt_workspace *w, const struct dt_batch *batch, float *losses, float *hits)
{
    const struct dt_model *m = w->model;
    struct dt_tensor norm = rows_of(w, &w->norm);
    enter_head(m, false);
    dt_head_run(&w->head, m, &norm, hits != NULL, NULL, NULL, &w->loss);
    leave_head(m, false);
    download(w, batch, w->head.losses, losses);
    if (hits)
        download(w, batch, w->head.hits, hits);
}

void dt_model_score(const struct dt_model *m, struct dt_workspace *w, const struct dt_batch *batch,
                    float *losses, float *hits)
{
    assert(w->model == m && is_first(w) && is_last(w));
    dt_pass_begin(w, batch, NULL);
    dt_pass_forward(w);
    dt_pass_score(w, batch, losses, hits);
}

void dt_model_score_at(const struct dt_model *m, struct dt_workspace *w,
                       const struct dt_batch *batch, float temperature, float *losses)
{
    assert(w->model == m && is_first(w) && is_last(w));
    dt_pass_begin(w, batch, NULL);
    w->loss.map.scale = 1 / temperature;
    dt_pass_forward(w);
    dt_pass_score(w, batch, losses, NULL);
}

void dt_model_logits(const struct dt_model *m, struct dt_workspace *w, const struct dt_batch *batch,
                     float *logits)
{
    assert(w->model == m && is_first(w) && is_last(w) && !selects_rows(w));
    dt_pass_begin(w, batch, NULL);
    dt_pass_forward(w);
    struct dt_tensor norm = rows_of(w, &w->norm);
    enter_head(m, false);
    dt_head_logits(&w->head, m, &norm, logits);
    leave_head(m, false);
}
