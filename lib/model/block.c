/* SPDX-License-Identifier: MIT */
#include "model/block.h"

#include "base/rng.h"
#include "model/families.h"
#include "model/layer.h"

static bool is_gated(const struct dt_model *m)
{
    return dt_table_find(&m->table, DT_GATE_WEIGHT, 0) != NULL;
}

static bool is_post_norm(const struct dt_model *m)
{
    return dt_architecture_of(&m->config)->post_norm;
}

static enum dt_activation activation_of(const struct dt_model *m)
{
    return dt_architecture_of(&m->config)->activation;
}

const char *const dt_recomputes[] = {"none", "selective", "full", NULL};

/* What a call of dt_block_layout lays out. */
struct layout {
    struct dt_arena *arena;
    int64_t rows;
    enum dt_recompute recompute;
    bool kept; /* what a block keeps for itself, or what all share */
};

/* A tensor that blocks keep up to that degree of recomputing. */
static void place(const struct layout *l, struct dt_tensor *x, enum dt_recompute most,
                  enum dt_dtype dtype, int64_t columns)
{
    if ((l->recompute <= most) == l->kept)
        *x = dt_arena_matrix_of(l->arena, dtype, l->rows, columns);
}

void dt_block_layout(struct dt_block *b, struct dt_arena *arena, const struct dt_model *m,
                     int64_t rows, enum dt_recompute recompute, const struct dt_block *shared)
{
    const struct dt_model_config *c = &m->config;
    const struct layout l = {arena, rows, recompute, shared != NULL};
    int64_t width = c->hidden_size, inner = c->intermediate_size;
    *b = shared ? *shared : (struct dt_block){0};
    place(&l, &b->input, DT_RECOMPUTE_FULL, m->compute, width);
    place(&l, &b->norm1, DT_RECOMPUTE_NONE, m->compute, width);
    place(&l, &b->stats1, DT_RECOMPUTE_NONE, DT_F32, dt_norm_statistics(m));
    place(&l, &b->qkv, DT_RECOMPUTE_SELECTIVE, m->compute, width + 2 * dt_model_kv_width(c));
    if (c->qk_norm) {
        place(&l, &b->qk, DT_RECOMPUTE_SELECTIVE, m->compute, width + dt_model_kv_width(c));
        place(&l, &b->qk_stats, DT_RECOMPUTE_SELECTIVE, DT_F32, c->num_heads + c->num_kv_heads);
    }
    place(&l, &b->attention, DT_RECOMPUTE_SELECTIVE, m->compute, width);
    place(&l, &b->lse, DT_RECOMPUTE_SELECTIVE, DT_F32, c->num_heads);
    place(&l, &b->middle, DT_RECOMPUTE_SELECTIVE, m->compute, width);
    place(&l, &b->norm2, DT_RECOMPUTE_NONE, m->compute, width);
    place(&l, &b->stats2, DT_RECOMPUTE_NONE, DT_F32, dt_norm_statistics(m));
    if (is_gated(m))
        place(&l, &b->gate, DT_RECOMPUTE_SELECTIVE, m->compute, inner);
    place(&l, &b->up, DT_RECOMPUTE_SELECTIVE, m->compute, inner);
    place(&l, &b->active, DT_RECOMPUTE_NONE, m->compute, inner);
}

void dt_block_scratch_layout(struct dt_block_scratch *s, struct dt_arena *arena,
                             const struct dt_model *m, int64_t rows)
{
    const struct dt_model_config *c = &m->config;
    s->width = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    s->qkv = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size + 2 * dt_model_kv_width(c));
    if (c->qk_norm)
        s->qk = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size + dt_model_kv_width(c));
    if (is_gated(m))
        s->gate = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
    s->inner = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
    if (c->dropout > 0)
        s->added = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
}

/* Only the first rows of the buffers are in use when a batch is smaller. */
static struct dt_block first_rows(const struct dt_block *b, int64_t rows)
{
    return (struct dt_block){
        .input = dt_rows(&b->input, 0, rows),
        .norm1 = dt_rows(&b->norm1, 0, rows),
        .stats1 = dt_rows(&b->stats1, 0, rows),
        .qkv = dt_rows(&b->qkv, 0, rows),
        .qk = dt_rows(&b->qk, 0, rows),
        .qk_stats = dt_rows(&b->qk_stats, 0, rows),
        .attention = dt_rows(&b->attention, 0, rows),
        .lse = dt_rows(&b->lse, 0, rows),
        .middle = dt_rows(&b->middle, 0, rows),
        .norm2 = dt_rows(&b->norm2, 0, rows),
        .stats2 = dt_rows(&b->stats2, 0, rows),
        .gate = dt_rows(&b->gate, 0, rows),
        .up = dt_rows(&b->up, 0, rows),
        .active = dt_rows(&b->active, 0, rows),
    };
}

struct qkv {
    struct dt_tensor q, k, v;
};

static struct qkv split(const struct dt_model *m, const struct dt_tensor *qkv)
{
    int64_t width = m->config.hidden_size, keys = dt_model_kv_width(&m->config);
    return (struct qkv){dt_columns(qkv, 0, width), dt_columns(qkv, width, keys),
                        dt_columns(qkv, width + keys, keys)};
}

static bool is_fused(const struct dt_model *m)
{
    return dt_table_find(&m->table, DT_QKV_WEIGHT, 0) != NULL;
}

/* Turns queries and keys by their positions, where the model's are rotary. */
static void rotate(const struct dt_model *m, struct qkv *s, const struct dt_attention *how,
                   bool inverse)
{
    if (m->turns.data == NULL)
        return;
    m->device->ops->rope(m->device, &s->q, &m->turns, how->queries, how->past, inverse);
    m->device->ops->rope(m->device, &s->k, &m->turns, how->queries, how->past, inverse);
}

/* Queries and keys before their norm, and columns for its statistics. */
struct qk {
    struct dt_tensor q, k, q_stats, k_stats;
};

static struct qk split_qk(const struct dt_model *m, const struct dt_tensor *qk,
                          const struct dt_tensor *stats)
{
    const struct dt_model_config *c = &m->config;
    return (struct qk){
        dt_columns(qk, 0, c->hidden_size), dt_columns(qk, c->hidden_size, dt_model_kv_width(c)),
        dt_columns(stats, 0, c->num_heads), dt_columns(stats, c->num_heads, c->num_kv_heads)};
}

/* Queries, keys and values of the rows b->norm1. */
static struct qkv project(const struct dt_model *m, int layer, struct dt_block *b)
{
    struct qkv s = split(m, &b->qkv);
    struct dt_tensor *x = &b->norm1;
    if (is_fused(m)) {
        dt_linear_forward(m, layer, DT_QKV_WEIGHT, DT_QKV_BIAS, &b->qkv, x, NULL);
    } else if (m->config.qk_norm) {
        struct qk raw = split_qk(m, &b->qk, &b->qk_stats);
        dt_linear_forward(m, layer, DT_Q_WEIGHT, DT_Q_BIAS, &raw.q, x, NULL);
        dt_linear_forward(m, layer, DT_K_WEIGHT, DT_K_BIAS, &raw.k, x, NULL);
        dt_norm_forward(m, layer, DT_Q_NORM_WEIGHT, DT_NO_ROLE, &s.q, &raw.q_stats, &raw.q, &raw.q,
                        NULL);
        dt_norm_forward(m, layer, DT_K_NORM_WEIGHT, DT_NO_ROLE, &s.k, &raw.k_stats, &raw.k, &raw.k,
                        NULL);
    } else {
        dt_linear_forward(m, layer, DT_Q_WEIGHT, DT_Q_BIAS, &s.q, x, NULL);
        dt_linear_forward(m, layer, DT_K_WEIGHT, DT_K_BIAS, &s.k, x, NULL);
    }
    if (!is_fused(m))
        dt_linear_forward(m, layer, DT_V_WEIGHT, DT_V_BIAS, &s.v, x, NULL);
    return s;
}

/* Gradients through the norms of queries and keys, from d into scratch. */
static void qk_norm_backward(const struct dt_model *m, float *gradients, int layer, struct qkv *d,
                             const struct dt_block *b, struct dt_tensor *scratch)
{
    struct qk raw = split_qk(m, &b->qk, &b->qk_stats), draw = split_qk(m, scratch, &b->qk_stats);
    m->device->ops->zero(m->device, scratch);
    dt_norm_backward(m, gradients, layer, DT_Q_NORM_WEIGHT, DT_NO_ROLE, &draw.q, &d->q, &raw.q,
                     &raw.q_stats);
    dt_norm_backward(m, gradients, layer, DT_K_NORM_WEIGHT, DT_NO_ROLE, &draw.k, &d->k, &raw.k,
                     &raw.k_stats);
    d->q = draw.q;
    d->k = draw.k;
}

/* dx: the gradient of b->norm1, finished as how says. */
static void project_backward(const struct dt_model *m, float *gradients, int layer,
                             struct dt_tensor *dx, struct qkv *d, const struct dt_tensor *dqkv,
                             const struct dt_block *b, const struct dt_matmul *how)
{
    const struct dt_matmul add = {.accumulate = true};
    const struct dt_tensor *x = &b->norm1;
    if (is_fused(m)) {
        dt_linear_backward(m, gradients, layer, DT_QKV_WEIGHT, DT_QKV_BIAS, dx, dqkv, x, how);
        return;
    }
    dt_linear_backward(m, gradients, layer, DT_Q_WEIGHT, DT_Q_BIAS, dx, &d->q, x, how);
    dt_linear_backward(m, gradients, layer, DT_K_WEIGHT, DT_K_BIAS, dx, &d->k, x, &add);
    dt_linear_backward(m, gradients, layer, DT_V_WEIGHT, DT_V_BIAS, dx, &d->v, x, &add);
}

/* The MLP up to its last product. */
static void mlp_inner(const struct dt_model *m, int layer, struct dt_block *b)
{
    if (is_gated(m)) {
        dt_linear_forward(m, layer, DT_GATE_WEIGHT, DT_NO_ROLE, &b->gate, &b->norm2, NULL);
        dt_linear_forward(m, layer, DT_UP_WEIGHT, DT_UP_BIAS, &b->up, &b->norm2, NULL);
        m->device->ops->swiglu_forward(m->device, &b->active, &b->gate, &b->up);
    } else {
        dt_linear_forward(m, layer, DT_UP_WEIGHT, DT_UP_BIAS, &b->active, &b->norm2,
                          &(struct dt_matmul){.activation = activation_of(m), .aux = &b->up});
    }
}

/* dnorm: the gradient of the MLP's input, finished as how says. It may be dout. */
static void mlp_backward(const struct dt_model *m, float *gradients, int layer,
                         struct dt_tensor *dnorm, const struct dt_tensor *dout, struct dt_block *b,
                         struct dt_tensor *inner, struct dt_tensor *gate,
                         const struct dt_matmul *how)
{
    if (!is_gated(m)) {
        dt_linear_backward(
            m, gradients, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, inner, dout, &b->active,
            &(struct dt_matmul){.activation = activation_of(m), .derivative = true, .aux = &b->up});
        dt_linear_backward(m, gradients, layer, DT_UP_WEIGHT, DT_UP_BIAS, dnorm, inner, &b->norm2,
                           how);
        return;
    }
    dt_linear_backward(m, gradients, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, inner, dout, &b->active,
                       NULL);
    m->device->ops->swiglu_backward(m->device, gate, inner, &b->gate, &b->up);
    dt_linear_backward(m, gradients, layer, DT_UP_WEIGHT, DT_UP_BIAS, dnorm, inner, &b->norm2, how);
    dt_linear_backward(m, gradients, layer, DT_GATE_WEIGHT, DT_NO_ROLE, dnorm, gate, &b->norm2,
                       &(struct dt_matmul){.accumulate = true});
}

static void append(struct dt_device *dev, struct dt_tensor *cache, const struct dt_tensor *rows,
                   int64_t past)
{
    struct dt_tensor place = dt_rows(cache, past, rows->rows);
    dev->ops->copy(dev, &place, rows);
}

/* Each sequence by itself, as long as it is so far. */
static void attend_streams(const struct dt_model *m, const struct dt_block *b, const struct qkv *s,
                           struct dt_cache *caches, const struct dt_attention *how,
                           const struct dt_stream *streams)
{
    struct dt_device *dev = m->device;
    struct dt_attention one = *how;
    one.batch = 1;
    for (int64_t i = 0; i < how->batch; i++) {
        int64_t from = i * how->queries, count = how->queries;
        struct dt_cache *cache = &caches[streams[i].slot];
        struct qkv own = {dt_rows(&s->q, from, count), dt_rows(&s->k, from, count),
                          dt_rows(&s->v, from, count)};
        struct dt_tensor y = dt_rows(&b->attention, from, count);
        struct dt_tensor lse = dt_rows(&b->lse, from, count);
        one.past = streams[i].past;
        rotate(m, &own, &one, false);
        append(dev, &cache->keys, &own.k, one.past);
        append(dev, &cache->values, &own.v, one.past);
        dev->ops->attention_forward(dev, &y, &lse, &own.q, &cache->keys, &cache->values, &one);
    }
}

static struct dt_dropout dropout(double rate, int layer, enum dt_dropout_place place,
                                 const struct dt_block_pass *pass)
{
    return (struct dt_dropout){
        .rate = pass->dropout ? (float)rate : 0,
        .key = dt_random_key(pass->seed, 'D', 4 * (uint64_t)(layer + 1) + (uint64_t)place),
        .sample = pass->sample,
    };
}

void dt_drop(const struct dt_model *m, int layer, enum dt_dropout_place place, struct dt_tensor *x,
             const struct dt_block_pass *pass)
{
    struct dt_dropout how = dropout(m->config.dropout, layer, place, pass);
    if (how.rate > 0)
        m->device->ops->dropout(m->device, x, pass->attention.queries, &how);
}

static struct dt_attention attention_of(const struct dt_model *m, int layer,
                                        const struct dt_block_pass *pass)
{
    struct dt_attention how = pass->attention;
    how.dropout = dropout(m->config.attention_dropout, layer, DT_DROP_ATTENTION, pass);
    return how;
}

const struct dt_tensor *dt_block_stream(const struct dt_model *m, const struct dt_block *b)
{
    return is_post_norm(m) ? &b->norm2 : &b->middle;
}

static bool drops_embedding(const struct dt_model *m, int layer)
{
    return is_post_norm(m) && layer == 0;
}

/* The block's input and its norm. */
static void enter(const struct dt_model *m, int layer, struct dt_block *b,
                  const struct dt_tensor *x, const struct dt_tensor *add,
                  const struct dt_block_pass *pass)
{
    dt_norm_forward(m, layer, DT_NORM1_WEIGHT, DT_NORM1_BIAS, &b->norm1, &b->stats1, &b->input, x,
                    add);
    if (drops_embedding(m, layer))
        dt_drop(m, -1, DT_DROP_EMBEDDING, &b->norm1, pass);
}

/* From norm1 to the activation behind the MLP's first product. out is left with
 * what attention added. */
static void forward_inside(const struct dt_model *m, int layer, struct dt_block *b,
                           struct dt_tensor *out, struct dt_cache *caches,
                           const struct dt_block_pass *pass)
{
    struct dt_device *dev = m->device;
    struct dt_attention how = attention_of(m, layer, pass);
    struct qkv s = project(m, layer, b);
    if (caches) {
        attend_streams(m, b, &s, caches, &how, pass->streams);
    } else {
        rotate(m, &s, &how, false);
        dev->ops->attention_forward(dev, &b->attention, &b->lse, &s.q, &s.k, &s.v, &how);
    }
    dt_linear_forward(m, layer, DT_PROJECTION_WEIGHT, DT_PROJECTION_BIAS, out, &b->attention, NULL);
    dt_drop(m, layer, DT_DROP_PROJECTION, out, pass);
    dt_norm_forward(m, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, &b->norm2, &b->stats2, &b->middle,
                    is_post_norm(m) ? &b->norm1 : &b->input, out);
    mlp_inner(m, layer, b);
}

void dt_block_forward(const struct dt_model *m, int layer, struct dt_block *buffers,
                      const struct dt_tensor *x, const struct dt_tensor *add, struct dt_tensor *out,
                      struct dt_cache *caches, const struct dt_block_pass *pass)
{
    struct dt_block b = first_rows(buffers, x->rows);
    enter(m, layer, &b, x, add, pass);
    forward_inside(m, layer, &b, out, caches, pass);
    dt_linear_forward(m, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, out, &b.active, NULL);
    dt_drop(m, layer, DT_DROP_MLP, out, pass);
}

/* Computes again what forward has not kept; spare (R x C) is overwritten. */
static void forward_again(const struct dt_model *m, int layer, struct dt_block *b,
                          struct dt_tensor *spare, enum dt_recompute recompute,
                          const struct dt_block_pass *pass)
{
    const struct dt_ops *ops = m->device->ops;
    if (recompute == DT_RECOMPUTE_NONE)
        return;
    enter(m, layer, b, &b->input, NULL, pass);
    if (recompute == DT_RECOMPUTE_FULL) {
        forward_inside(m, layer, b, spare, NULL, pass);
        return;
    }
    dt_norm_forward(m, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, &b->norm2, &b->stats2, &b->middle,
                    &b->middle, NULL);
    if (is_gated(m))
        ops->swiglu_forward(m->device, &b->active, &b->gate, &b->up);
    else
        ops->activation_forward(m->device, &b->active, &b->up, activation_of(m));
}

/* The gradient of what the block added at that place: the stream's, through dropout. */
static const struct dt_tensor *added(const struct dt_model *m, int layer,
                                     enum dt_dropout_place place, struct dt_tensor *spare,
                                     const struct dt_tensor *stream,
                                     const struct dt_block_pass *pass)
{
    if (m->config.dropout == 0 || !pass->dropout)
        return stream;
    m->device->ops->copy(m->device, spare, stream);
    dt_drop(m, layer, place, spare, pass);
    return spare;
}

/* Gradient of a norm's input, sum, from that of its output: added to dsum, or with
 * post-norm, where nothing else goes on from the input, set. */
static void through_norm(const struct dt_model *m, float *gradients, int layer, enum dt_role weight,
                         enum dt_role bias, struct dt_tensor *dsum, const struct dt_tensor *dy,
                         const struct dt_tensor *sum, const struct dt_tensor *stats)
{
    if (is_post_norm(m))
        m->device->ops->zero(m->device, dsum);
    dt_norm_backward(m, gradients, layer, weight, bias, dsum, dy, sum, stats);
}

/* Attention and what stands before it. middle: the gradient of b->middle; other:
 * memory for that of b->attention. The gradient of b->norm1 goes to dnorm, as how says. */
static void attention_backward(const struct dt_model *m, int layer, const struct dt_block *b,
                               struct dt_tensor *dnorm, const struct dt_tensor *middle,
                               struct dt_tensor *other, struct dt_block_scratch *scratch,
                               float *gradients, const struct dt_matmul *how,
                               const struct dt_block_pass *pass)
{
    struct dt_attention attention = attention_of(m, layer, pass);
    struct qkv s = split(m, &b->qkv), d = split(m, &scratch->qkv);
    dt_linear_backward(m, gradients, layer, DT_PROJECTION_WEIGHT, DT_PROJECTION_BIAS, other,
                       added(m, layer, DT_DROP_PROJECTION, &scratch->added, middle, pass),
                       &b->attention, NULL);
    m->device->ops->attention_backward(m->device, &d.q, &d.k, &d.v, other, &b->attention, &b->lse,
                                       &s.q, &s.k, &s.v, &attention);
    rotate(m, &d, &attention, true);
    if (m->config.qk_norm)
        qk_norm_backward(m, gradients, layer, &d, b, &scratch->qk);
    project_backward(m, gradients, layer, dnorm, &d, &scratch->qkv, b, how);
}

static struct dt_block_scratch first_scratch_rows(const struct dt_block_scratch *s, int64_t rows)
{
    return (struct dt_block_scratch){
        .width = dt_rows(&s->width, 0, rows),
        .qkv = dt_rows(&s->qkv, 0, rows),
        .qk = dt_rows(&s->qk, 0, rows),
        .gate = dt_rows(&s->gate, 0, rows),
        .inner = dt_rows(&s->inner, 0, rows),
        .added = dt_rows(&s->added, 0, rows),
    };
}

/* Where the stream goes on from a norm's input (pre-norm), stream collects the
 * gradients and scratch.width carries those of the norms' outputs. Where it goes on
 * from the output (post-norm), that gradient is already in stream, the branch's is
 * added to it, and the two change roles with each norm. */
void dt_block_backward(const struct dt_model *m, int layer, struct dt_block *buffers,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch, float *gradients,
                       enum dt_recompute recompute, const struct dt_block_pass *pass)
{
    struct dt_block b = first_rows(buffers, stream->rows);
    struct dt_block_scratch s = first_scratch_rows(scratch, stream->rows);
    const struct dt_matmul how = {.accumulate = is_post_norm(m)};
    struct dt_tensor *middle = is_post_norm(m) ? &s.width : stream;
    struct dt_tensor *other = is_post_norm(m) ? stream : &s.width;
    forward_again(m, layer, &b, &s.width, recompute, pass);
    mlp_backward(m, gradients, layer, other, added(m, layer, DT_DROP_MLP, &s.added, stream, pass),
                 &b, &s.inner, &s.gate, &how);
    through_norm(m, gradients, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, middle, other, &b.middle,
                 &b.stats2);
    attention_backward(m, layer, &b, &s.width, middle, other, &s, gradients, &how, pass);
    if (drops_embedding(m, layer))
        dt_drop(m, -1, DT_DROP_EMBEDDING, &s.width, pass);
    through_norm(m, gradients, layer, DT_NORM1_WEIGHT, DT_NORM1_BIAS, stream, &s.width, &b.input,
                 &b.stats1);
}
