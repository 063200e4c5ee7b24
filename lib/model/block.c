/* SPDX-License-Identifier: MIT */
#include "model/block.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "model/context-parallel.h"
#include "model/layer.h"
#include "model/qk-norm.h"
#include "model/tensor-parallel.h"

static bool is_gated(const struct dt_model *m)
{
    return dt_model_is_gated(&m->config);
}

/* The two branches that are added to the residual stream, as indices. */
enum branch { ATTENTION, MLP };

static const struct {
    enum dt_role norm, norm_bias, last, last_bias;
    enum dt_dropout_site site;
} branches[] = {
    {DT_ROLE_NORM1_WEIGHT, DT_ROLE_NORM1_BIAS, DT_ROLE_PROJECTION_WEIGHT, DT_ROLE_PROJECTION_BIAS,
     DT_DROPOUT_SITE_PROJECTION},
    {DT_ROLE_NORM2_WEIGHT, DT_ROLE_NORM2_BIAS, DT_ROLE_DOWN_WEIGHT, DT_ROLE_DOWN_BIAS,
     DT_DROPOUT_SITE_MLP},
};

/* What a branch reads. */
enum entry {
    ENTRY_NORM,   /* a norm of the stream */
    ENTRY_STREAM, /* the stream */
    ENTRY_JOINED  /* a norm of the stream, which continues from it */
};

static enum entry entry_of(const struct dt_model *m, int layer, enum branch branch)
{
    const struct dt_family_descriptor *family = dt_family_of(&m->config);
    switch (family->norm_placement) {
    case DT_NORM_PLACEMENT_PRE:
    case DT_NORM_PLACEMENT_BOTH:
        return family->embedding_norm && layer == 0 && branch == ATTENTION ? ENTRY_JOINED
                                                                           : ENTRY_NORM;
    case DT_NORM_PLACEMENT_OUTPUT:
        return ENTRY_STREAM;
    case DT_NORM_PLACEMENT_POST:
        return ENTRY_JOINED;
    }
    abort();
}

static bool has_input_norms(const struct dt_model *m)
{
    return dt_family_of(&m->config)->norm_placement != DT_NORM_PLACEMENT_OUTPUT;
}

/* The norm of a branch's output; DT_ROLE_NONE: there is none. */
static enum dt_role output_norm(const struct dt_model *m, enum branch branch)
{
    switch (dt_family_of(&m->config)->norm_placement) {
    case DT_NORM_PLACEMENT_PRE:
    case DT_NORM_PLACEMENT_POST:
        return DT_ROLE_NONE;
    case DT_NORM_PLACEMENT_OUTPUT:
        return branch == ATTENTION ? DT_ROLE_NORM1_WEIGHT : DT_ROLE_NORM2_WEIGHT;
    case DT_NORM_PLACEMENT_BOTH:
        return branch == ATTENTION ? DT_ROLE_NORM1_OUTPUT_WEIGHT : DT_ROLE_NORM2_OUTPUT_WEIGHT;
    }
    abort();
}

static bool has_output_norms(const struct dt_model *m)
{
    return output_norm(m, MLP) != DT_ROLE_NONE;
}

/* Whether what branches read has buffers: norms, or all rows of the stream. */
static bool has_inputs(const struct dt_model *m)
{
    return has_input_norms(m) || m->part.sequence;
}

static const struct dt_tensor *attention_input(const struct dt_model *m, const struct dt_block *b)
{
    return has_inputs(m) ? &b->norm1 : &b->input;
}

static const struct dt_tensor *mlp_input(const struct dt_model *m, const struct dt_block *b)
{
    return has_inputs(m) ? &b->norm2 : &b->middle;
}

/* What norm2 is the norm of. */
static struct dt_tensor *mlp_stream(const struct dt_model *m, struct dt_block *b)
{
    return m->config.parallel_residual ? &b->input : &b->middle;
}

static bool scales_branches(const struct dt_model *m)
{
    return m->config.residual_scale != 0 && m->config.residual_scale != 1;
}

/* A call of dt_block_layout. */
struct layout {
    struct dt_arena *arena;
    enum dt_recompute recompute;
    bool kept; /* buffers that a block keeps, or those that all blocks share */
};

/* A buffer that blocks keep unless recompute is above most. */
static void lay_out(const struct layout *l, struct dt_tensor *x, enum dt_recompute most,
                    enum dt_dtype dtype, int64_t rows, int64_t columns)
{
    if ((l->recompute <= most) == l->kept)
        *x = dt_arena_matrix_of(l->arena, dtype, rows, columns);
}

int64_t dt_block_hidden_rows_most(const struct dt_model *m, int64_t rows)
{
    return m->part.sequence ? (rows + m->part.tp_size - 1) / m->part.tp_size : rows;
}

struct dt_tensor dt_block_hidden_rows(const struct dt_model *m, const struct dt_tensor *x)
{
    struct dt_range own = dt_tensor_parallel_rows(m, x->rows);
    return dt_tensor_rows(x, own.first, dt_range_count(own));
}

void dt_block_layout(struct dt_block *b, struct dt_arena *arena, const struct dt_model *m,
                     int64_t rows, enum dt_recompute recompute, const struct dt_block *shared)
{
    const struct dt_model_config *c = &m->config;
    const struct layout l = {arena, recompute, shared != NULL};
    int64_t width = c->hidden_size, inner = dt_range_count(m->partition.inner),
            own = dt_block_hidden_rows_most(m, rows);
    int64_t queries = dt_model_query_columns(m), keys = dt_model_key_columns(m);
    int64_t heads = dt_range_count(m->partition.heads);
    *b = shared ? *shared : (struct dt_block){0};
    lay_out(&l, &b->input, DT_RECOMPUTE_FULL, m->compute, own, width);
    if (has_inputs(m))
        lay_out(&l, &b->norm1, DT_RECOMPUTE_NONE, m->compute, rows, width);
    if (has_input_norms(m))
        lay_out(&l, &b->stats1, DT_RECOMPUTE_NONE, DT_DTYPE_F32, own, dt_layer_norm_statistics(m));
    lay_out(&l, &b->qkv, DT_RECOMPUTE_SELECTIVE, m->compute, rows, queries + 2 * keys);
    if (c->qk_norm) {
        lay_out(&l, &b->qk, DT_RECOMPUTE_SELECTIVE, m->compute, rows, queries + keys);
        lay_out(&l, &b->qk_stats, DT_RECOMPUTE_SELECTIVE, DT_DTYPE_F32, rows,
                dt_qk_norm_statistics(m));
    }
    if (!l.kept)
        dt_qk_norm_layout(b, arena, m, rows);
    lay_out(&l, &b->attention, DT_RECOMPUTE_SELECTIVE, m->compute, rows, queries);
    lay_out(&l, &b->lse, DT_RECOMPUTE_SELECTIVE, DT_DTYPE_F32, rows, heads);
    lay_out(&l, &b->middle, DT_RECOMPUTE_SELECTIVE, m->compute, own, width);
    if (has_inputs(m))
        lay_out(&l, &b->norm2, DT_RECOMPUTE_NONE, m->compute, rows, width);
    if (has_input_norms(m))
        lay_out(&l, &b->stats2, DT_RECOMPUTE_NONE, DT_DTYPE_F32, own, dt_layer_norm_statistics(m));
    for (int i = 0; i < 2 && has_output_norms(m); i++) {
        lay_out(&l, &b->output[i], DT_RECOMPUTE_SELECTIVE, m->compute, own, width);
        lay_out(&l, &b->output_stats[i], DT_RECOMPUTE_SELECTIVE, DT_DTYPE_F32, own,
                dt_layer_norm_statistics(m));
    }
    if (is_gated(m))
        lay_out(&l, &b->gate, DT_RECOMPUTE_SELECTIVE, m->compute, rows, inner);
    lay_out(&l, &b->up, DT_RECOMPUTE_SELECTIVE, m->compute, rows, inner);
    lay_out(&l, &b->active, DT_RECOMPUTE_NONE, m->compute, rows, inner);
}

static bool is_tensor_parallel(const struct dt_model *m)
{
    return m->part.tp_size > 1;
}

/* Whether the gradient of attention's output has a buffer; otherwise that of a branch's input is
 * used, which is free then and has as many columns. */
static bool has_heads_scratch(const struct dt_model *m)
{
    return is_tensor_parallel(m) || has_output_norms(m) ||
           dt_model_query_width(&m->config) != m->config.hidden_size;
}

void dt_block_scratch_layout(struct dt_block_scratch *s, struct dt_arena *arena,
                             const struct dt_model *m, int64_t rows)
{
    const struct dt_model_config *c = &m->config;
    int64_t inner = dt_range_count(m->partition.inner), own = dt_block_hidden_rows_most(m, rows);
    int64_t queries = dt_model_query_columns(m), keys = dt_model_key_columns(m);
    s->width = dt_arena_matrix_of(arena, m->compute, own, c->hidden_size);
    s->qkv = dt_arena_matrix_of(arena, m->compute, rows, queries + 2 * keys);
    if (c->qk_norm)
        s->qk = dt_arena_matrix_of(arena, m->compute, rows, queries + keys);
    if (is_gated(m))
        s->gate = dt_arena_matrix_of(arena, m->compute, rows, inner);
    s->inner = dt_arena_matrix_of(arena, m->compute, rows, inner);
    if (c->dropout > 0 || scales_branches(m))
        s->added = dt_arena_matrix_of(arena, m->compute, own, c->hidden_size);
    if (c->parallel_residual)
        s->after = dt_arena_matrix_of(arena, m->compute, own, c->hidden_size);
    if (is_tensor_parallel(m))
        s->wide = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    if (has_heads_scratch(m))
        s->heads = dt_arena_matrix_of(arena, m->compute, rows, queries);
}

/* A smaller batch uses the first rows of the buffers. */
static struct dt_block first_rows(const struct dt_block *b, int64_t rows, int64_t own)
{
    return (struct dt_block){
        .input = dt_tensor_rows(&b->input, 0, own),
        .norm1 = dt_tensor_rows(&b->norm1, 0, rows),
        .stats1 = dt_tensor_rows(&b->stats1, 0, own),
        .qkv = dt_tensor_rows(&b->qkv, 0, rows),
        .qk = dt_tensor_rows(&b->qk, 0, rows),
        .qk_stats = dt_tensor_rows(&b->qk_stats, 0, rows),
        .qk_all = {dt_tensor_rows(&b->qk_all[0], 0, rows), dt_tensor_rows(&b->qk_all[1], 0, rows),
                   dt_tensor_rows(&b->qk_all[2], 0, rows)},
        .attention = dt_tensor_rows(&b->attention, 0, rows),
        .lse = dt_tensor_rows(&b->lse, 0, rows),
        .middle = dt_tensor_rows(&b->middle, 0, own),
        .norm2 = dt_tensor_rows(&b->norm2, 0, rows),
        .stats2 = dt_tensor_rows(&b->stats2, 0, own),
        .output = {dt_tensor_rows(&b->output[0], 0, own), dt_tensor_rows(&b->output[1], 0, own)},
        .output_stats = {dt_tensor_rows(&b->output_stats[0], 0, own),
                         dt_tensor_rows(&b->output_stats[1], 0, own)},
        .gate = dt_tensor_rows(&b->gate, 0, rows),
        .up = dt_tensor_rows(&b->up, 0, rows),
        .active = dt_tensor_rows(&b->active, 0, rows),
    };
}

static struct dt_qkv split(const struct dt_model *m, const struct dt_tensor *qkv)
{
    int64_t queries = dt_model_query_columns(m), keys = dt_model_key_columns(m);
    return (struct dt_qkv){dt_tensor_columns(qkv, 0, queries),
                           dt_tensor_columns(qkv, queries, keys),
                           dt_tensor_columns(qkv, queries + keys, keys)};
}

static bool is_fused(const struct dt_model *m)
{
    return m->base->has[DT_ROLE_QKV_WEIGHT];
}

/* Applies RoPE to queries and keys, in place; inverse: to their gradients. */
static void apply_rope(const struct dt_model *m, int layer, struct dt_qkv *s,
                       const struct dt_attention *how, bool inverse)
{
    enum dt_rope_table table = dt_rope_table_of(&m->config, layer);
    int64_t size = dt_model_head_dim(&m->config);
    if (table == DT_ROPE_TABLE_COUNT)
        return;
    for (int i = 0; i < dt_context_parallel_chunks(&m->part); i++) {
        struct dt_tensor q = dt_context_parallel_chunk_rows(&m->part, &s->q, i);
        struct dt_tensor k = dt_context_parallel_chunk_rows(&m->part, &s->k, i);
        int64_t past = how->past + dt_context_parallel_chunk_start(&m->part, how->length, i);
        m->device->ops->rope(m->device, &q, &m->ropes[table], size, how->queries, past, inverse);
        m->device->ops->rope(m->device, &k, &m->ropes[table], size, how->queries, past, inverse);
    }
}

/* Queries, keys and values. */
static struct dt_qkv project(const struct dt_model *m, int layer, struct dt_block *b)
{
    struct dt_qkv s = split(m, &b->qkv);
    const struct dt_tensor *x = attention_input(m, b);
    if (is_fused(m)) {
        dt_layer_linear_forward(m, layer, DT_ROLE_QKV_WEIGHT, DT_ROLE_QKV_BIAS, &b->qkv, x, NULL);
    } else if (m->config.qk_norm) {
        struct dt_qk raw = dt_qk_norm_split(m, &b->qk);
        dt_layer_linear_forward(m, layer, DT_ROLE_Q_WEIGHT, DT_ROLE_Q_BIAS, &raw.q, x, NULL);
        dt_layer_linear_forward(m, layer, DT_ROLE_K_WEIGHT, DT_ROLE_K_BIAS, &raw.k, x, NULL);
        dt_qk_norm_forward(m, layer, b, &s);
    } else {
        dt_layer_linear_forward(m, layer, DT_ROLE_Q_WEIGHT, DT_ROLE_Q_BIAS, &s.q, x, NULL);
        dt_layer_linear_forward(m, layer, DT_ROLE_K_WEIGHT, DT_ROLE_K_BIAS, &s.k, x, NULL);
    }
    if (!is_fused(m))
        dt_layer_linear_forward(m, layer, DT_ROLE_V_WEIGHT, DT_ROLE_V_BIAS, &s.v, x, NULL);
    return s;
}

/* Whether anything reads the gradient of a layer's input: below the first layer, embeddings are
 * frozen with an adapter. */
static bool needs_input_gradient(const struct dt_model *m, int layer)
{
    return layer > 0 || m->adapter == NULL || m->trace != NULL;
}

/* dx: the gradient of b->norm1, unless nothing needs it; how: whether it is accumulated. */
static void project_backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                             struct dt_tensor *dx, const struct dt_qkv *d,
                             const struct dt_tensor *dqkv, const struct dt_block *b,
                             const struct dt_matmul *how)
{
    const struct dt_tensor *x = attention_input(m, b);
    int64_t queries = dt_model_query_columns(m), keys = dt_model_key_columns(m);
    if (is_fused(m)) {
        const struct dt_layer_map parts[] = {
            {DT_ROLE_QKV_WEIGHT, &d->q, {0, queries}},
            {DT_ROLE_QKV_WEIGHT, &d->k, {queries, queries + keys}},
            {DT_ROLE_QKV_WEIGHT, &d->v, {queries + keys, queries + 2 * keys}}};
        dt_layer_weight_backward(m, gradients, layer, DT_ROLE_QKV_WEIGHT, DT_ROLE_QKV_BIAS, dqkv,
                                 x);
        if (needs_input_gradient(m, layer))
            dt_layer_input_backward(m, layer, parts, 3, dx, how);
        return;
    }
    const struct dt_layer_map maps[] = {{.weight = DT_ROLE_Q_WEIGHT, .dy = &d->q},
                                        {.weight = DT_ROLE_K_WEIGHT, .dy = &d->k},
                                        {.weight = DT_ROLE_V_WEIGHT, .dy = &d->v}};
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_Q_WEIGHT, DT_ROLE_Q_BIAS, &d->q, x);
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_K_WEIGHT, DT_ROLE_K_BIAS, &d->k, x);
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_V_WEIGHT, DT_ROLE_V_BIAS, &d->v, x);
    if (needs_input_gradient(m, layer))
        dt_layer_input_backward(m, layer, maps, 3, dx, how);
}

/* The MLP up to the down map. */
static void mlp_inner(const struct dt_model *m, int layer, struct dt_block *b)
{
    const struct dt_tensor *x = mlp_input(m, b);
    if (is_gated(m)) {
        dt_layer_linear_forward(m, layer, DT_ROLE_GATE_WEIGHT, DT_ROLE_GATE_BIAS, &b->gate, x,
                                NULL);
        dt_layer_linear_forward(m, layer, DT_ROLE_UP_WEIGHT, DT_ROLE_UP_BIAS, &b->up, x, NULL);
        m->device->ops->gated_forward(m->device, &b->active, &b->gate, &b->up,
                                      dt_layer_activation(m));
    } else {
        dt_layer_linear_forward(
            m, layer, DT_ROLE_UP_WEIGHT, DT_ROLE_UP_BIAS, &b->active, x,
            &(struct dt_matmul){.activation = dt_layer_activation(m), .aux = &b->up});
    }
}

/* dnorm: the gradient of the MLP's input; how: whether it is accumulated. It may alias dout. */
static void mlp_backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                         struct dt_tensor *dnorm, const struct dt_tensor *dout, struct dt_block *b,
                         struct dt_tensor *inner, struct dt_tensor *gate,
                         const struct dt_matmul *how)
{
    const struct dt_tensor *x = mlp_input(m, b);
    const struct dt_layer_map down = {.weight = DT_ROLE_DOWN_WEIGHT, .dy = dout};
    const struct dt_layer_map inputs[] = {{.weight = DT_ROLE_UP_WEIGHT, .dy = inner},
                                          {.weight = DT_ROLE_GATE_WEIGHT, .dy = gate}};
    const struct dt_matmul through = {
        .activation = dt_layer_activation(m), .derivative = true, .aux = &b->up};
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_DOWN_WEIGHT, DT_ROLE_DOWN_BIAS, dout,
                             &b->active);
    dt_layer_input_backward(m, layer, &down, 1, inner, is_gated(m) ? NULL : &through);
    if (is_gated(m)) {
        m->device->ops->gated_backward(m->device, gate, inner, &b->gate, &b->up,
                                       dt_layer_activation(m));
        dt_layer_weight_backward(m, gradients, layer, DT_ROLE_GATE_WEIGHT, DT_ROLE_GATE_BIAS, gate,
                                 x);
    }
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_UP_WEIGHT, DT_ROLE_UP_BIAS, inner, x);
    dt_layer_input_backward(m, layer, inputs, is_gated(m) ? 2 : 1, dnorm, how);
}

/* Tokens that leave a cache together: a multiple of the blocks in which engines sum over keys, so
 * that bits do not depend on when they leave. */
#define CACHE_BLOCK 64

int64_t dt_block_cache_rows(const struct dt_model *m, int layer, int64_t capacity)
{
    int64_t window = dt_model_window(&m->config, layer);
    int64_t blocks = (window + window / 8 + DT_BLOCK_MOST_CACHED) / CACHE_BLOCK + 3;
    return window > 0 && blocks * CACHE_BLOCK < capacity ? blocks * CACHE_BLOCK : capacity;
}

/* Moves the rows of x from drop on to the front; kept: their number. */
static void drop_rows(struct dt_device *dev, struct dt_tensor *x, int64_t drop, int64_t kept)
{
    for (int64_t at = 0, some; at < kept; at += some) {
        some = kept - at < drop ? kept - at : drop;
        struct dt_tensor to = dt_tensor_rows(x, at, some),
                         from = dt_tensor_rows(x, at + drop, some);
        dev->ops->copy(dev, &to, &from);
    }
}

/* Drops tokens before the window of the token at position past, if count more do not fit. */
static void make_room(const struct dt_model *m, int layer, struct dt_cache *cache, int64_t past,
                      int64_t count)
{
    int64_t oldest = past + 1 - dt_model_window(&m->config, layer);
    if (past + count - cache->first <= cache->keys.rows)
        return;
    int64_t drop = oldest / CACHE_BLOCK * CACHE_BLOCK - cache->first;
    int64_t kept = past - cache->first - drop;
    drop_rows(m->device, &cache->keys, drop, kept);
    drop_rows(m->device, &cache->values, drop, kept);
    cache->first += drop;
    assert(kept + count <= cache->keys.rows);
}

static void append(struct dt_device *dev, struct dt_tensor *cache, const struct dt_tensor *rows,
                   int64_t past)
{
    struct dt_tensor rows_of_cache = dt_tensor_rows(cache, past, rows->rows);
    dev->ops->copy(dev, &rows_of_cache, rows);
}

/* Attention of each sequence separately, as their lengths differ. */
static void attend_cached(const struct dt_model *m, int layer, const struct dt_block *b,
                          const struct dt_qkv *s, struct dt_cache *caches,
                          const struct dt_attention *how,
                          const struct dt_cached_sequence *sequences)
{
    struct dt_device *dev = m->device;
    struct dt_attention one = *how;
    one.batch = 1;
    for (int64_t i = 0; i < how->batch; i++) {
        int64_t from = i * how->queries, count = how->queries;
        struct dt_cache *cache = &caches[sequences[i].slot];
        struct dt_qkv own = {dt_tensor_rows(&s->q, from, count), dt_tensor_rows(&s->k, from, count),
                             dt_tensor_rows(&s->v, from, count)};
        struct dt_tensor y = dt_tensor_rows(&b->attention, from, count);
        struct dt_tensor lse = dt_tensor_rows(&b->lse, from, count);
        one.past = sequences[i].past;
        apply_rope(m, layer, &own, &one, false);
        make_room(m, layer, cache, one.past, count);
        one.past -= cache->first;
        one.key_stride = cache->keys.rows;
        append(dev, &cache->keys, &own.k, one.past);
        append(dev, &cache->values, &own.v, one.past);
        dev->ops->attention_forward(dev, &y, &lse, &own.q, &cache->keys, &cache->values, &one);
    }
}

static struct dt_dropout dropout(double rate, int layer, enum dt_dropout_site site,
                                 const struct dt_block_pass *pass)
{
    return (struct dt_dropout){
        .rate = pass->dropout ? (float)rate : 0,
        .key = dt_random_key(pass->seed, 'D', 4 * (uint64_t)(layer + 1) + (uint64_t)site),
        .sample = pass->sample,
    };
}

void dt_block_dropout(const struct dt_model *m, int layer, enum dt_dropout_site site,
                      struct dt_tensor *x, const struct dt_block_pass *pass)
{
    struct dt_dropout how = dropout(m->config.dropout, layer, site, pass);
    const struct dt_attention *chunk = &pass->attention;
    int64_t own = dt_tensor_parallel_rows(m, pass->rows).first,
            each = chunk->batch * chunk->queries;
    for (int i = 0; i < dt_context_parallel_chunks(&m->part) && how.rate > 0; i++) {
        int64_t first = i * each > own ? i * each : own;
        int64_t end = (i + 1) * each < own + x->rows ? (i + 1) * each : own + x->rows;
        struct dt_tensor rows = dt_tensor_rows(x, first - own, end > first ? end - first : 0);
        how.first = first - i * each;
        how.past = dt_context_parallel_chunk_start(&m->part, chunk->length, i);
        if (end > first)
            m->device->ops->dropout(m->device, &rows, chunk->queries, &how);
    }
}

static struct dt_attention attention_of(const struct dt_model *m, int layer,
                                        const struct dt_block_pass *pass)
{
    struct dt_attention how = pass->attention;
    how.dropout = dropout(m->config.attention_dropout, layer, DT_DROPOUT_SITE_ATTENTION, pass);
    how.window = dt_model_window(&m->config, layer);
    how.scale = (float)m->config.attention_scale;
    how.softcap = (float)m->config.attention_softcap;
    return how;
}

/* Attention sets lse again, whose bits may differ without dropout, and backward needs the first. */
struct dt_mean_keys dt_block_mean_keys(const struct dt_model *m, int layer,
                                       const struct dt_block *b,
                                       const struct dt_block_scratch *scratch,
                                       const struct dt_block_pass *pass)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_attention how = attention_of(m, layer, pass);
    struct dt_tensor qkv = dt_tensor_rows(&b->qkv, 0, pass->rows);
    struct dt_qkv s = split(m, &qkv);
    struct dt_mean_keys keys = {
        .queries = s.q,
        .means = dt_matrix_of(m->compute, scratch->qkv.data, pass->rows, s.q.columns),
        .lse = dt_tensor_rows(&b->lse, 0, pass->rows),
        .scale =
            how.scale > 0 ? (double)how.scale : 1 / sqrt((double)dt_model_head_dim(&m->config)),
    };
    size_t bytes = (size_t)(keys.lse.rows * keys.lse.stride) * sizeof(float);
    float *kept = dt_alloc(bytes, 1);
    how.dropout.rate = 0;
    s.v = s.k;
    ops->download(m->device, kept, keys.lse.data, bytes);
    dt_context_attention_forward(m, pass->context, &keys.means, &keys.lse, &s, &how);
    ops->upload(m->device, keys.lse.data, kept, bytes);
    free(kept);
    return keys;
}

struct dt_tensor dt_block_output(const struct dt_model *m, const struct dt_block *b, int64_t rows)
{
    struct dt_tensor norm = dt_tensor_rows(&b->norm2, 0, rows);
    return entry_of(m, 0, MLP) == ENTRY_JOINED
               ? dt_block_hidden_rows(m, &norm)
               : dt_tensor_rows(&b->middle, 0, dt_range_count(dt_tensor_parallel_rows(m, rows)));
}

bool dt_block_drops_embedding(const struct dt_model *m, int layer)
{
    return layer == 0 && entry_of(m, layer, ATTENTION) == ENTRY_JOINED;
}

/* sum = x + add (add NULL: x). */
static void add_rows(const struct dt_model *m, struct dt_tensor *sum, const struct dt_tensor *x,
                     const struct dt_tensor *add)
{
    if (sum->data != x->data)
        m->device->ops->copy(m->device, sum, x);
    if (add)
        m->device->ops->combine(m->device, sum, 1, add, 1);
}

/* all = all rows of the stream x, which a branch without a norm reads. */
static void gather_stream(const struct dt_model *m, struct dt_tensor *all,
                          const struct dt_tensor *x)
{
    struct dt_tensor own = dt_block_hidden_rows(m, all);
    if (!m->part.sequence)
        return;
    m->device->ops->copy(m->device, &own, x);
    dt_tensor_parallel_gather_hidden(m, all);
}

/* b->input = x + add, and its norm. */
static void add_and_norm1(const struct dt_model *m, int layer, struct dt_block *b,
                          const struct dt_tensor *x, const struct dt_tensor *add,
                          const struct dt_block_pass *pass)
{
    struct dt_tensor norm = dt_block_hidden_rows(m, &b->norm1);
    if (!has_input_norms(m)) {
        add_rows(m, &b->input, x, add);
        gather_stream(m, &b->norm1, &b->input);
        return;
    }
    dt_layer_norm_forward(m, layer, DT_ROLE_NORM1_WEIGHT, DT_ROLE_NORM1_BIAS, &norm, &b->stats1,
                          &b->input, x, add);
    if (dt_block_drops_embedding(m, layer))
        dt_block_dropout(m, -1, DT_DROPOUT_SITE_EMBEDDING, &norm, pass);
    dt_tensor_parallel_gather_hidden(m, &b->norm1);
}

/* b->middle = stream + add, and its norm, or with a parallel residual that of b->input. */
static void add_and_norm2(const struct dt_model *m, int layer, struct dt_block *b,
                          const struct dt_tensor *stream, const struct dt_tensor *add)
{
    struct dt_tensor norm = dt_block_hidden_rows(m, &b->norm2), *sum = mlp_stream(m, b);
    bool apart = !has_input_norms(m) || m->config.parallel_residual;
    if (apart)
        add_rows(m, &b->middle, stream, add);
    if (!has_input_norms(m)) {
        gather_stream(m, &b->norm2, &b->middle);
        return;
    }
    dt_layer_norm_forward(m, layer, DT_ROLE_NORM2_WEIGHT, DT_ROLE_NORM2_BIAS, &norm, &b->stats2,
                          sum, apart ? sum : stream, apart ? NULL : add);
    dt_tensor_parallel_gather_hidden(m, &b->norm2);
}

/* The last linear map of a branch, from x, and the norm of its output. */
static void branch_output(const struct dt_model *m, int layer, enum branch branch,
                          struct dt_block *b, struct dt_tensor *out, const struct dt_tensor *x,
                          const struct dt_block_pass *pass)
{
    bool norms = has_output_norms(m), whole = norms && !is_tensor_parallel(m);
    struct dt_tensor *kept = &b->output[branch], own = dt_block_hidden_rows(m, out);
    dt_layer_row_parallel_forward(m, layer, branches[branch].last, branches[branch].last_bias,
                                  whole ? kept : out, x, &pass->partial);
    if (norms && !whole)
        m->device->ops->copy(m->device, kept, &own);
    if (norms)
        dt_layer_norm_forward(m, layer, output_norm(m, branch), DT_ROLE_NONE, &own,
                              &b->output_stats[branch], kept, kept, NULL);
}

/* What a branch adds to the stream: dropout and scale of its output, this rank's rows. */
static struct dt_tensor addend(const struct dt_model *m, int layer, enum branch branch,
                               const struct dt_tensor *out, const struct dt_block_pass *pass)
{
    struct dt_tensor own = dt_block_hidden_rows(m, out);
    dt_block_dropout(m, layer, branches[branch].site, &own, pass);
    dt_layer_scale(m, &own, m->config.residual_scale);
    return own;
}

/* From norm1 to the MLP's activation. out is the output of attention. */
static void forward_inside(const struct dt_model *m, int layer, struct dt_block *b,
                           struct dt_tensor *out, struct dt_cache *caches,
                           const struct dt_block_pass *pass)
{
    struct dt_attention how = attention_of(m, layer, pass);
    struct dt_qkv s = project(m, layer, b);
    if (caches) {
        attend_cached(m, layer, b, &s, caches, &how, pass->sequences);
    } else {
        apply_rope(m, layer, &s, &how, false);
        dt_context_attention_forward(m, pass->context, &b->attention, &b->lse, &s, &how);
    }
    branch_output(m, layer, ATTENTION, b, out, &b->attention, pass);
    struct dt_tensor add = addend(m, layer, ATTENTION, out, pass),
                     norm1 = dt_block_hidden_rows(m, &b->norm1);
    add_and_norm2(m, layer, b, entry_of(m, layer, ATTENTION) == ENTRY_JOINED ? &norm1 : &b->input,
                  &add);
    mlp_inner(m, layer, b);
}

void dt_block_forward(const struct dt_model *m, int layer, struct dt_block *buffers,
                      const struct dt_tensor *x, const struct dt_tensor *add, struct dt_tensor *out,
                      struct dt_cache *caches, const struct dt_block_pass *pass)
{
    struct dt_block b = first_rows(buffers, out->rows, x->rows);
    add_and_norm1(m, layer, &b, x, add, pass);
    forward_inside(m, layer, &b, out, caches, pass);
    branch_output(m, layer, MLP, &b, out, &b.active, pass);
    addend(m, layer, MLP, out, pass);
}

/* Recomputes the activations that forward has not kept; overwrites scratch (R x C). */
static void forward_again(const struct dt_model *m, int layer, struct dt_block *b,
                          struct dt_tensor *scratch, enum dt_recompute recompute,
                          const struct dt_block_pass *pass)
{
    const struct dt_ops *ops = m->device->ops;
    if (recompute == DT_RECOMPUTE_NONE)
        return;
    add_and_norm1(m, layer, b, &b->input, NULL, pass);
    if (recompute == DT_RECOMPUTE_FULL) {
        forward_inside(m, layer, b, scratch, NULL, pass);
        if (has_output_norms(m))
            branch_output(m, layer, MLP, b, scratch, &b->active, pass);
        return;
    }
    add_and_norm2(m, layer, b, &b->middle, NULL);
    if (is_gated(m))
        ops->gated_forward(m->device, &b->active, &b->gate, &b->up, dt_layer_activation(m));
    else
        ops->activation_forward(m->device, &b->active, &b->up, dt_layer_activation(m));
}

/* The gradient of the residual stream, and a buffer for that of a branch's input; S x C. */
struct flow {
    struct dt_tensor *stream, *other;
};

/* The gradient, all rows, of the output of a branch's last linear map, from dstream, that of the
 * stream, through scale, dropout and the norm of the output. Overwrites other. */
static const struct dt_tensor *output_gradient(const struct dt_model *m,
                                               const struct dt_flat *gradients, int layer,
                                               enum branch branch, const struct dt_block *b,
                                               const struct dt_tensor *dstream,
                                               struct dt_tensor *other, struct dt_block_scratch *s,
                                               const struct dt_block_pass *pass)
{
    const struct dt_ops *ops = m->device->ops;
    bool drops = m->config.dropout > 0 && pass->dropout;
    bool changes = drops || scales_branches(m), gathers = m->part.sequence;
    struct dt_tensor *all = gathers ? &s->wide : &s->added, own = dt_block_hidden_rows(m, all);
    const struct dt_tensor *dy = changes || gathers ? &own : dstream;
    if (changes || gathers)
        ops->copy(m->device, &own, dstream);
    if (changes)
        dt_layer_scale(m, &own, m->config.residual_scale);
    dt_block_dropout(m, layer, branches[branch].site, &own, pass);
    if (has_output_norms(m)) {
        ops->zero(m->device, other);
        dt_layer_norm_backward(m, gradients, layer, output_norm(m, branch), DT_ROLE_NONE, other, dy,
                               &b->output[branch], &b->output_stats[branch]);
        if (!gathers)
            return other;
        ops->copy(m->device, &own, other);
    }
    dt_tensor_parallel_gather_hidden(m, all);
    return changes || gathers ? all : dstream;
}

/* The buffer in which the gradient of a branch's input is accumulated: its destination or, with
 * tensor parallelism, an fp32 scratch buffer that is then summed over the ranks. how: of the
 * product. */
struct input_gradient {
    struct dt_tensor dx, *destination;
    struct dt_matmul how;
};

static struct input_gradient begin_input_gradient(const struct dt_model *m, enum entry entry,
                                                  const struct flow *flow,
                                                  const struct dt_block_scratch *s,
                                                  const struct dt_block_pass *pass)
{
    struct input_gradient g = {.destination = entry == ENTRY_NORM ? flow->other : flow->stream};
    if (is_tensor_parallel(m)) {
        g.dx = pass->partial.data ? dt_tensor_rows(&pass->partial, 0, pass->rows) : s->wide;
    } else {
        g.dx = *g.destination;
        g.how.accumulate = entry != ENTRY_NORM;
    }
    return g;
}

static void end_input_gradient(const struct dt_model *m, enum entry entry, struct input_gradient *g)
{
    if (is_tensor_parallel(m))
        dt_tensor_parallel_sum_hidden(m, g->destination, &g->dx, NULL, entry != ENTRY_NORM);
}

/* Backward of the norm that a branch reads, of sum. */
static void through_norm(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                         enum branch branch, struct flow *flow, const struct dt_tensor *sum,
                         const struct dt_tensor *stats)
{
    enum entry entry = entry_of(m, layer, branch);
    enum dt_role weight = branches[branch].norm, bias = branches[branch].norm_bias;
    if (entry == ENTRY_NORM)
        dt_layer_norm_backward(m, gradients, layer, weight, bias, flow->stream, flow->other, sum,
                               stats);
    if (entry != ENTRY_JOINED)
        return;
    m->device->ops->zero(m->device, flow->other);
    dt_layer_norm_backward(m, gradients, layer, weight, bias, flow->other, flow->stream, sum,
                           stats);
    *flow = (struct flow){flow->other, flow->stream};
}

/* Backward from the projection to attention's input. dstream: the gradient of the stream after
 * attention. */
static void attention_backward(const struct dt_model *m, int layer, const struct dt_block *b,
                               const struct flow *flow, const struct dt_tensor *dstream,
                               struct dt_block_scratch *s, const struct dt_flat *gradients,
                               const struct dt_block_pass *pass)
{
    enum entry entry = entry_of(m, layer, ATTENTION);
    struct dt_attention attention = attention_of(m, layer, pass);
    struct dt_qkv qkv = split(m, &b->qkv), d = split(m, &s->qkv);
    struct dt_tensor *dattention = has_heads_scratch(m) ? &s->heads : flow->other;
    const struct dt_tensor *dy =
        output_gradient(m, gradients, layer, ATTENTION, b, dstream, flow->other, s, pass);
    struct input_gradient to = begin_input_gradient(m, entry, flow, s, pass);
    const struct dt_layer_map projection = {.weight = DT_ROLE_PROJECTION_WEIGHT, .dy = dy};
    dt_layer_weight_backward(m, gradients, layer, DT_ROLE_PROJECTION_WEIGHT,
                             DT_ROLE_PROJECTION_BIAS, dy, &b->attention);
    dt_layer_input_backward(m, layer, &projection, 1, dattention, NULL);
    dt_context_attention_backward(m, pass->context, &d, dattention, &b->attention, &b->lse, &qkv,
                                  &attention);
    apply_rope(m, layer, &d, &attention, true);
    if (m->config.qk_norm)
        dt_qk_norm_backward(m, gradients, layer, &d, b, &s->qk);
    project_backward(m, gradients, layer, &to.dx, &d, &s->qkv, b, &to.how);
    end_input_gradient(m, entry, &to);
}

static struct dt_block_scratch first_scratch_rows(const struct dt_block_scratch *s, int64_t rows,
                                                  int64_t own)
{
    return (struct dt_block_scratch){
        .width = dt_tensor_rows(&s->width, 0, own),
        .qkv = dt_tensor_rows(&s->qkv, 0, rows),
        .qk = dt_tensor_rows(&s->qk, 0, rows),
        .gate = dt_tensor_rows(&s->gate, 0, rows),
        .inner = dt_tensor_rows(&s->inner, 0, rows),
        .added = dt_tensor_rows(&s->added, 0, own),
        .after = dt_tensor_rows(&s->after, 0, own),
        .wide = dt_tensor_rows(&s->wide, 0, rows),
        .heads = dt_tensor_rows(&s->heads, 0, rows),
    };
}

/* The branches add the gradients of their inputs to that of the stream, through their norms. Where
 * the stream continues from a norm's output, its gradient moves to the other buffer there. */
void dt_block_backward(const struct dt_model *m, int layer, struct dt_block *buffers,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch,
                       const struct dt_flat *gradients, enum dt_recompute recompute,
                       const struct dt_block_pass *pass)
{
    int64_t rows = pass->rows;
    struct dt_block b = first_rows(buffers, rows, stream->rows);
    struct dt_block_scratch s = first_scratch_rows(scratch, rows, stream->rows);
    struct flow flow = {stream, &s.width};
    enum entry entry = entry_of(m, layer, MLP);
    bool parallel = m->config.parallel_residual;
    forward_again(m, layer, &b, is_tensor_parallel(m) ? &s.wide : &s.width, recompute, pass);
    if (parallel)
        m->device->ops->copy(m->device, &s.after, stream);
    const struct dt_tensor *dy =
        output_gradient(m, gradients, layer, MLP, &b, stream, flow.other, &s, pass);
    struct input_gradient to = begin_input_gradient(m, entry, &flow, &s, pass);
    mlp_backward(m, gradients, layer, &to.dx, dy, &b, &s.inner, &s.gate, &to.how);
    end_input_gradient(m, entry, &to);
    through_norm(m, gradients, layer, MLP, &flow, mlp_stream(m, &b), &b.stats2);
    attention_backward(m, layer, &b, &flow, parallel ? &s.after : flow.stream, &s, gradients, pass);
    if (!needs_input_gradient(m, layer))
        return;
    if (dt_block_drops_embedding(m, layer))
        dt_block_dropout(m, -1, DT_DROPOUT_SITE_EMBEDDING, flow.stream, pass);
    through_norm(m, gradients, layer, ATTENTION, &flow, &b.input, &b.stats1);
    if (flow.stream != stream)
        m->device->ops->copy(m->device, stream, flow.stream);
}
