/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/block.h"
#include "model/layer.h"

/* Logits of at most this many bytes exist at a time: the head works in chunks of rows. */
#define LOGITS_BYTES ((int64_t)256 << 20)

struct dt_workspace {
    struct dt_arena arena;
    struct dt_device *device;
    int64_t batch, length, layers, chunk;
    bool training;
    int32_t *inputs, *targets; /* on the device, batch x length */
    float *losses;             /* on the device, batch x length */
    int32_t *host_inputs, *host_targets;
    struct dt_tensor x, out;            /* R x C: embeddings; what a block adds */
    struct dt_tensor last, norm, stats; /* the final residual stream and its norm */
    struct dt_tensor logits;            /* chunk x V */
    struct dt_block *blocks;            /* one a layer, or one for all when scoring */
    struct dt_tensor dstream, dnorm;    /* R x C gradients, training only */
    struct dt_block_scratch scratch;
};

static size_t parameter_bytes(const struct dt_model *m)
{
    return (size_t)m->table.elements * sizeof(float);
}

static size_t turn_bytes(const struct dt_model *m)
{
    return (size_t)(m->turns.rows * m->turns.columns) * sizeof(float);
}

size_t dt_model_bytes(const struct dt_model *m)
{
    return parameter_bytes(m) + turn_bytes(m);
}

/* Pair j of D/2 turns by theta^(-2j/D) radians a position (Su et al. 2021). */
static int make_turns(struct dt_model *m, struct dt_error *err)
{
    int64_t size = m->config.hidden_size / m->config.num_heads, half = size / 2;
    struct dt_tensor turns = dt_matrix(NULL, m->config.max_seq_len, size);
    size_t bytes = (size_t)(turns.rows * size) * sizeof(float);
    turns.data = m->device->ops->allocate(m->device, bytes);
    if (turns.data == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for %ld rotary positions", m->config.max_seq_len);
    float *host = dt_alloc(1, bytes);
    for (int64_t j = 0; j < half; j++) {
        double speed = pow(m->config.rope_theta, -2.0 * (double)j / (double)size);
        for (int64_t t = 0; t < turns.rows; t++) {
            host[t * size + j] = (float)cos((double)t * speed);
            host[t * size + half + j] = (float)sin((double)t * speed);
        }
    }
    m->device->ops->upload(m->device, turns.data, host, bytes);
    free(host);
    m->turns = turns;
    return 0;
}

static int allocate(struct dt_model *m, struct dt_error *err)
{
    m->parameters = m->device->ops->allocate(m->device, parameter_bytes(m));
    if (m->parameters == NULL)
        return dt_fail(err, DT_ENOMEM, "no memory for %.1f million parameters",
                       (double)m->table.parameters * 1e-6);
    bool learnt = dt_table_find(&m->table, DT_POSITION_EMBEDDING, -1) != NULL;
    return learnt ? 0 : make_turns(m, err);
}

int dt_model_new(struct dt_model **result, struct dt_device *dev,
                 const struct dt_model_config *config, struct dt_error *err)
{
    struct dt_model *m = dt_alloc(1, sizeof *m);
    *result = NULL;
    m->device = dev;
    m->config = *config;
    dt_table_init(&m->table, config);
    int rc = allocate(m, err);
    if (rc < 0) {
        dt_model_free(m);
        return rc;
    }
    *result = m;
    return 0;
}

void dt_model_initialize(struct dt_model *m, uint64_t seed)
{
    size_t bytes = parameter_bytes(m);
    float *host = dt_alloc(1, bytes);
    dt_table_initialize(&m->table, seed, host);
    m->device->ops->upload(m->device, m->parameters, host, bytes);
    free(host);
}

void dt_model_free(struct dt_model *m)
{
    if (m == NULL)
        return;
    if (m->parameters)
        m->device->ops->release(m->device, m->parameters, parameter_bytes(m));
    if (m->turns.data)
        m->device->ops->release(m->device, m->turns.data, turn_bytes(m));
    dt_table_release(&m->table);
    free(m);
}

static void lay_out(struct dt_workspace *w, const struct dt_model *m)
{
    const struct dt_model_config *c = &m->config;
    int64_t rows = w->batch * w->length;
    struct dt_arena *a = &w->arena;
    w->inputs = dt_arena_take(a, (size_t)rows * sizeof *w->inputs);
    w->targets = dt_arena_take(a, (size_t)rows * sizeof *w->targets);
    w->losses = dt_arena_take(a, (size_t)rows * sizeof *w->losses);
    w->x = dt_arena_matrix(a, rows, c->hidden_size);
    w->out = dt_arena_matrix(a, rows, c->hidden_size);
    w->last = dt_arena_matrix(a, rows, c->hidden_size);
    w->norm = dt_arena_matrix(a, rows, c->hidden_size);
    w->stats = dt_arena_matrix(a, rows, dt_norm_statistics(m));
    w->logits = dt_arena_matrix(a, w->chunk, c->vocab_size);
    for (int64_t i = 0; i < w->layers; i++)
        dt_block_layout(&w->blocks[i], a, m, rows);
    if (w->training) {
        w->dstream = dt_arena_matrix(a, rows, c->hidden_size);
        w->dnorm = dt_arena_matrix(a, rows, c->hidden_size);
        dt_block_scratch_layout(&w->scratch, a, m, rows);
    }
}

int dt_workspace_new(struct dt_workspace **result, const struct dt_model *m, int64_t batch,
                     int64_t length, bool training, struct dt_error *err)
{
    struct dt_workspace *w = dt_alloc(1, sizeof *w);
    int64_t rows = batch * length;
    int64_t most = LOGITS_BYTES / (int64_t)sizeof(float) / m->config.vocab_size;
    *result = NULL;
    assert(length <= m->config.max_seq_len);
    w->device = m->device;
    w->batch = batch;
    w->length = length;
    w->training = training;
    w->layers = training ? m->config.num_layers : 1;
    w->chunk = most < 1 ? 1 : most < rows ? most : rows;
    w->blocks = dt_alloc((size_t)w->layers, sizeof *w->blocks);
    w->host_inputs = dt_alloc((size_t)rows, sizeof *w->host_inputs);
    w->host_targets = dt_alloc((size_t)rows, sizeof *w->host_targets);
    lay_out(w, m);
    int rc = dt_arena_allocate(&w->arena, m->device, err);
    if (rc < 0) {
        dt_workspace_free(w);
        return rc;
    }
    lay_out(w, m);
    *result = w;
    return 0;
}

size_t dt_workspace_bytes(const struct dt_workspace *w)
{
    return w->arena.size;
}

void dt_workspace_free(struct dt_workspace *w)
{
    if (w == NULL)
        return;
    dt_arena_release(&w->arena, w->device);
    free(w->blocks);
    free(w->host_inputs);
    free(w->host_targets);
    free(w);
}

struct dt_attention dt_model_attention(const struct dt_model *m, int64_t batch, int64_t length)
{
    return (struct dt_attention){.batch = batch,
                                 .heads = m->config.num_heads,
                                 .kv_heads = m->config.num_kv_heads,
                                 .queries = length,
                                 .key_stride = length};
}

static void stage_ids(struct dt_workspace *w, const uint32_t *ids, int64_t batch, int64_t length)
{
    for (int64_t b = 0; b < batch; b++) {
        const uint32_t *row = ids + b * (length + 1);
        for (int64_t t = 0; t < length; t++) {
            w->host_inputs[b * length + t] = (int32_t)row[t];
            w->host_targets[b * length + t] = (int32_t)row[t + 1];
        }
    }
    size_t bytes = (size_t)(batch * length) * sizeof *w->inputs;
    w->device->ops->upload(w->device, w->inputs, w->host_inputs, bytes);
    w->device->ops->upload(w->device, w->targets, w->host_targets, bytes);
}

/* Embedding, blocks and final norm; leaves the norm's output in w->norm. */
static void forward(const struct dt_model *m, struct dt_workspace *w,
                    const struct dt_attention *how, int64_t rows)
{
    const struct dt_table *t = &m->table;
    int layers = t->layers;
    struct dt_tensor tokens = dt_table_view(t, m->parameters, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor positions = dt_table_view(t, m->parameters, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor x = dt_rows(&w->x, 0, rows), out = dt_rows(&w->out, 0, rows);
    struct dt_tensor last = dt_rows(&w->last, 0, rows), norm = dt_rows(&w->norm, 0, rows);
    struct dt_tensor stats = dt_rows(&w->stats, 0, rows);
    m->device->ops->embedding_forward(m->device, &x, w->inputs, &tokens,
                                      positions.data ? &positions : NULL, how->queries, 0);
    const struct dt_tensor *add = NULL;
    for (int layer = 0; layer < layers; layer++) {
        struct dt_block *block = &w->blocks[layer % w->layers];
        dt_block_forward(m, layer, block, &x, add, &out, NULL, how);
        x = dt_rows(&block->middle, 0, rows);
        add = &out;
    }
    dt_norm_forward(m, layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &norm, &stats, &last, &x,
                    add);
}

/* Head and loss, chunk by chunk; with gradients also the head's backward pass,
 * so that the logits of all rows never exist together. */
static void head(const struct dt_model *m, struct dt_workspace *w, int64_t rows, float *gradients,
                 float scale)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor weight = dt_head_view(m, m->parameters);
    for (int64_t from = 0; from < rows; from += w->chunk) {
        int64_t count = rows - from < w->chunk ? rows - from : w->chunk;
        struct dt_tensor norm = dt_rows(&w->norm, from, count);
        struct dt_tensor logits = dt_rows(&w->logits, 0, count);
        ops->matmul(m->device, &logits, &norm, &weight, &(struct dt_matmul){.transpose_b = true});
        ops->cross_entropy(m->device, w->losses + from, NULL, &logits, w->targets + from,
                           &(struct dt_cross_entropy){.scale = gradients ? scale : 0});
        if (gradients == NULL)
            continue;
        struct dt_tensor dweight = dt_head_view(m, gradients);
        struct dt_tensor dnorm = dt_rows(&w->dnorm, from, count);
        ops->matmul(m->device, &dnorm, &logits, &weight, &(struct dt_matmul){.accumulate = false});
        ops->matmul(m->device, &dweight, &logits, &norm,
                    &(struct dt_matmul){.transpose_a = true, .accumulate = true});
    }
}

static void backward(const struct dt_model *m, struct dt_workspace *w,
                     const struct dt_attention *how, int64_t rows, float *gradients)
{
    const struct dt_ops *ops = m->device->ops;
    const struct dt_table *t = &m->table;
    int layers = t->layers;
    struct dt_tensor dtokens = dt_table_view(t, gradients, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor dpositions = dt_table_view(t, gradients, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor stream = dt_rows(&w->dstream, 0, rows), dnorm = dt_rows(&w->dnorm, 0, rows);
    struct dt_tensor last = dt_rows(&w->last, 0, rows), stats = dt_rows(&w->stats, 0, rows);
    ops->zero(m->device, &stream);
    dt_norm_backward(m, gradients, layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &stream,
                     &dnorm, &last, &stats);
    for (int layer = layers - 1; layer >= 0; layer--)
        dt_block_backward(m, layer, &w->blocks[layer], &stream, &w->scratch, gradients, how);
    ops->embedding_backward(m->device, &dtokens, dpositions.data ? &dpositions : NULL, &stream,
                            w->inputs, how->queries);
}

double dt_model_backward(const struct dt_model *m, struct dt_workspace *w, const uint32_t *ids,
                         int64_t batch, int64_t length, float *gradients, float scale)
{
    int64_t rows = batch * length;
    struct dt_attention how = dt_model_attention(m, batch, length);
    assert(w->training && rows <= w->batch * w->length);
    stage_ids(w, ids, batch, length);
    forward(m, w, &how, rows);
    head(m, w, rows, gradients, scale);
    backward(m, w, &how, rows, gradients);
    return m->device->ops->sum(m->device, w->losses, rows);
}

void dt_model_score(const struct dt_model *m, struct dt_workspace *w, const uint32_t *ids,
                    int64_t batch, int64_t length, float *losses)
{
    int64_t rows = batch * length;
    struct dt_attention how = dt_model_attention(m, batch, length);
    assert(rows <= w->batch * w->length);
    stage_ids(w, ids, batch, length);
    forward(m, w, &how, rows);
    head(m, w, rows, NULL, 0);
    m->device->ops->download(m->device, losses, w->losses, (size_t)rows * sizeof *losses);
}
