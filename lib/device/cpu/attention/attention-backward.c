/* SPDX-License-Identifier: MIT */
/*
 * Backward recomputes the attention weights from the log-sum-exp, for each pair of a block of
 * queries and a block of keys. The gradient of queries is a sum over blocks of keys, those of keys
 * and values are sums over heads and blocks of queries, each in ascending order. If there are
 * enough sequences and heads for all threads, a thread computes all three gradients of a head of
 * keys in one loop. Otherwise separate loops compute the gradients of queries and of keys: more
 * parallelism, but the weights are computed twice. The sums, and their bits, are the same.
 */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/attention/attention-bf16.h"

/* A thread's work and scratch memory. Loaded queries are scaled. */
struct backward {
    const struct dt_attention *how;
    struct dt_tensor *dq, *dk, *dv;
    const struct dt_tensor *dy, *y, *lse, *q, *k, *v;
    int64_t size, width;
    struct dt_cpu_queries queries;
    float *q_rows, *q_transposed;   /* DT_CPU_BLOCK x width, width x DT_CPU_BLOCK */
    float *dy_rows, *dy_transposed; /* the same */
    float *k_rows, *v_rows;         /* DT_CPU_BLOCK x width */
    float *weights, *scores;  /* keys x queries: weights; gradients of weights, then of scores */
    float *factors;           /* dropout's, keys x queries */
    float *slopes;            /* the soft cap's, keys x queries */
    float *dq_sums;           /* DT_CPU_BLOCK x width */
    float *dk_sums, *dv_sums; /* keys x width, of one block or of all */
    const struct dt_cpu_dots_kernel *dots; /* the products of attention-bf16.h, of these; or NULL */
    struct dt_cpu_dots q_dots, dy_dots, k_dots, v_dots;
    float log_sums[DT_CPU_BLOCK], deltas[DT_CPU_BLOCK];
};

static size_t lay_out_dots(struct backward *w, uint32_t *scratch)
{
    uint32_t **parts[] = {&w->q_dots.rows,   &w->q_dots.lanes, &w->q_dots.pairs, &w->dy_dots.lanes,
                          &w->dy_dots.pairs, &w->k_dots.rows,  &w->k_dots.pairs, &w->v_dots.rows};
    size_t size = (size_t)dt_cpu_dots_size(w->width);
    for (size_t i = 0; i < 8; i++)
        *parts[i] = scratch ? scratch + i * size : NULL;
    w->dy_dots.rows = w->q_dots.rows; /* needed only while the others are made */
    return 8 * size;
}

static size_t lay_out(struct backward *w, float *scratch, int64_t key_blocks)
{
    int64_t rows = DT_CPU_BLOCK * w->width, square = DT_CPU_BLOCK * DT_CPU_BLOCK;
    float **parts[] = {&w->q_rows,        &w->dy_rows, &w->k_rows,  &w->v_rows, &w->q_transposed,
                       &w->dy_transposed, &w->dq_sums, &w->weights, &w->scores, &w->factors,
                       &w->slopes,        &w->dk_sums, &w->dv_sums};
    size_t used = 0;
    for (int i = 0; i < 13; i++) {
        *parts[i] = scratch ? scratch + used : NULL;
        used += (size_t)(i < 7 ? rows : i < 11 ? square : key_blocks * rows);
    }
    used += w->dots ? lay_out_dots(w, scratch ? (uint32_t *)(scratch + used) : NULL) : 0;
    return used;
}

/* deltas: of each lane, the sum over channels of dy times y. */
static void find_deltas(float *deltas, const float *dy, const float *y, int64_t lanes, int64_t size)
{
    for (int64_t i = 0; i < lanes; i += DT_CPU_VECTOR) {
        dt_cpu_vector sum = dt_cpu_vector_of(0);
        for (int64_t j = i; j < size * DT_CPU_BLOCK; j += DT_CPU_BLOCK)
            sum = dt_cpu_vector_fma(dt_cpu_vector_load(dy + j), dt_cpu_vector_load(y + j), sum);
        dt_cpu_vector_store(deltas + i, sum);
    }
}

static void load_queries(struct backward *w, int64_t sequence, int64_t head, int64_t block)
{
    struct dt_cpu_queries *q = &w->queries;
    dt_cpu_find_queries(q, w->how, sequence, head, block);
    int64_t row = sequence * w->how->queries + q->first;
    for (int64_t i = 0; i < q->lanes; i++) {
        float sum = i < q->count ? dt_cpu_row(w->lse, row + i)[head] : 0;
        w->log_sums[i] = sum == -INFINITY ? 0 : sum; /* without keys: all weights are 0 */
    }
    dt_cpu_load_head(w->dy_rows, q->lanes, w->dy, row, q->count, head, w->size);
    dt_cpu_transpose(w->dy_transposed, w->dy_rows, w->width, q->lanes, w->width);
    dt_cpu_load_head(w->q_rows, q->lanes, w->y, row, q->count, head, w->size);
    dt_cpu_transpose(w->q_transposed, w->q_rows, w->width, q->lanes, w->width);
    find_deltas(w->deltas, w->dy_transposed, w->q_transposed, q->lanes, w->size);
    if (w->dots) {
        dt_cpu_dots_load(&w->q_dots, dt_cpu_dots_rows(q->lanes), w->q, row, q->count, head,
                         w->size);
        dt_cpu_dots_load(&w->dy_dots, dt_cpu_dots_rows(q->lanes), w->dy, row, q->count, head,
                         w->size);
        return;
    }
    dt_cpu_load_head(w->q_rows, q->lanes, w->q, row, q->count, head, w->size);
    dt_cpu_scale(w->q_rows, q->lanes * w->width, dt_attention_scale(w->how, w->size));
    dt_cpu_transpose(w->q_transposed, w->q_rows, w->width, q->lanes, w->width);
}

/* weights: scores in, weights out. */
static void recompute_weights(float *restrict weights, const float *restrict log_sums,
                              int64_t vectors)
{
    for (int64_t i = 0; i < vectors * DT_CPU_VECTOR; i++)
        weights[i] = dt_device_exp(weights[i] - log_sums[i]);
}

/* scores: gradients of weights in, of scores out. */
static void softmax_backward(float *restrict scores, const float *restrict weights,
                             const float *restrict deltas, int64_t vectors)
{
    for (int64_t i = 0; i < vectors * DT_CPU_VECTOR; i++)
        scores[i] = weights[i] * (scores[i] - deltas[i]);
}

static void load_keys(struct backward *w, const struct dt_cpu_keys *keys, int64_t first,
                      int64_t head)
{
    if (w->dots) {
        dt_cpu_dots_load(&w->k_dots, dt_cpu_dots_rows(keys->rows), w->k, first, keys->count, head,
                         w->size);
        dt_cpu_dots_load(&w->v_dots, dt_cpu_dots_rows(keys->rows), w->v, first, keys->count, head,
                         w->size);
        return;
    }
    dt_cpu_load_head(w->k_rows, keys->rows, w->k, first, keys->count, head, w->size);
    dt_cpu_load_head(w->v_rows, keys->rows, w->v, first, keys->count, head, w->size);
}

static void score(struct backward *w, const struct dt_cpu_keys *keys)
{
    if (w->dots)
        dt_cpu_dots_score(w->dots, w->weights, &w->k_dots, &w->q_dots, keys, &w->queries, w->width,
                          dt_attention_scale(w->how, w->size));
    else
        dt_cpu_score(w->weights, w->k_rows, w->q_transposed, keys, &w->queries, w->size);
}

static void score_gradients(struct backward *w, const struct dt_cpu_keys *keys)
{
    if (w->dots)
        dt_cpu_dots_score(w->dots, w->scores, &w->v_dots, &w->dy_dots, keys, &w->queries, w->width,
                          1);
    else
        dt_cpu_score(w->scores, w->v_rows, w->dy_transposed, keys, &w->queries, w->size);
}

static void sum_keys(struct backward *w, const struct dt_cpu_keys *keys, float *dq)
{
    if (w->dots)
        dt_cpu_dots_sum_keys(w->dots, dq, w->scores, &w->k_dots, keys, &w->queries, w->width,
                             (uint32_t *)w->slopes);
    else
        dt_cpu_sum_keys(dq, w->scores, w->k_rows, keys, &w->queries, w->width);
}

static void sum_queries(struct backward *w, const struct dt_cpu_keys *keys, float *dk, float *dv)
{
    const struct dt_cpu_queries *q = &w->queries;
    if (w->dots) {
        uint32_t *scratch = (uint32_t *)w->slopes; /* no longer needed */
        dt_cpu_dots_sum_queries(w->dots, dk, w->scores, &w->q_dots, keys, q, w->width, scratch);
        dt_cpu_dots_sum_queries(w->dots, dv, w->weights, &w->dy_dots, keys, q, w->width, scratch);
        return;
    }
    dt_cpu_sum_queries(dk, w->scores, w->q_rows, keys, q, w->width);
    dt_cpu_sum_queries(dv, w->weights, w->dy_rows, keys, q, w->width);
}

/* Adds the contributions of the loaded queries and a block of keys to dq, and to dk and dv. dq, or
 * dk and dv, may be NULL. */
static void add_pair(struct backward *w, const struct dt_cpu_keys *keys, float *dq, float *dk,
                     float *dv)
{
    const struct dt_cpu_queries *q = &w->queries;
    int64_t first = q->sequence * w->how->key_stride + keys->first;
    int64_t shared = q->head / (w->how->heads / w->how->kv_heads);
    load_keys(w, keys, first, shared);
    score(w, keys);
    if (w->how->softcap > 0)
        dt_cpu_cap(w->weights, w->slopes, w->how, keys, q);
    dt_cpu_mask(w->weights, keys, q);
    DT_CPU_EACH_ROW(keys, q, row, lane)
    recompute_weights(w->weights + row * DT_CPU_BLOCK + lane, w->log_sums + lane,
                      (q->lanes - lane) / DT_CPU_VECTOR);
    score_gradients(w, keys);
    if (w->how->dropout.rate > 0) {
        dt_cpu_weight_dropout(w->factors, w->how, keys, q);
        dt_cpu_scale_weights(w->scores, w->factors, keys, q);
    }
    DT_CPU_EACH_ROW(keys, q, row, lane)
    softmax_backward(w->scores + row * DT_CPU_BLOCK + lane, w->weights + row * DT_CPU_BLOCK + lane,
                     w->deltas + lane, (q->lanes - lane) / DT_CPU_VECTOR);
    if (w->how->softcap > 0)
        dt_cpu_scale_weights(w->scores, w->slopes, keys, q);
    if (dq)
        sum_keys(w, keys, dq);
    if (dk == NULL)
        return;
    if (w->how->dropout.rate > 0)
        dt_cpu_scale_weights(w->weights, w->factors, keys, q);
    sum_queries(w, keys, dk, dv);
}

/* dq of one block of queries, over all its keys; all: also adds to dk and dv. */
static void query_block(struct backward *w, int64_t sequence, int64_t head, int64_t block, bool all)
{
    load_queries(w, sequence, head, block);
    const struct dt_cpu_queries *q = &w->queries;
    memset(w->dq_sums, 0, (size_t)(q->lanes * w->width) * sizeof *w->dq_sums);
    struct dt_cpu_keys keys;
    for (int64_t b = q->begin / DT_CPU_BLOCK; dt_cpu_find_keys(&keys, q, b); b++)
        add_pair(w, &keys, w->dq_sums, all ? w->dk_sums + keys.first * w->width : NULL,
                 all ? w->dv_sums + keys.first * w->width : NULL);
    int64_t row = sequence * w->how->queries + q->first;
    dt_cpu_finish_sums(w->dq_sums, q->lanes * w->width, dt_attention_scale(w->how, w->size));
    dt_cpu_store_head(w->dq, row, q->count, head, w->size, w->dq_sums);
}

/* dk and dv of one block of keys, over all queries that attend to it. */
static void all_queries(struct backward *w, int64_t sequence, int64_t head, int64_t block)
{
    const struct dt_attention *how = w->how;
    struct dt_attention_band band = dt_attention_band_of(how);
    int64_t first = block * DT_CPU_BLOCK - band.after - how->past; /* the first such query */
    int64_t end = (block + 1) * DT_CPU_BLOCK + band.before - how->past;
    end = end < how->queries ? end : how->queries;
    struct dt_cpu_keys keys;
    for (int64_t b = first > 0 ? first / DT_CPU_BLOCK : 0; b * DT_CPU_BLOCK < end; b++) {
        dt_cpu_find_queries(&w->queries, w->how, sequence, head, b);
        if (!dt_cpu_find_keys(&keys, &w->queries, block))
            continue;
        load_queries(w, sequence, head, b);
        add_pair(w, &keys, NULL, w->dk_sums, w->dv_sums);
    }
}

static void clear_key_sums(struct backward *w, int64_t blocks)
{
    size_t size = (size_t)(blocks * DT_CPU_BLOCK * w->width) * sizeof(float);
    memset(w->dk_sums, 0, size);
    memset(w->dv_sums, 0, size);
}

static void store_key_sums(struct backward *w, int64_t sequence, int64_t shared, int64_t first,
                           int64_t count)
{
    int64_t row = sequence * w->how->key_stride + first;
    /* Queries of dots are not scaled. */
    dt_cpu_finish_sums(w->dk_sums, count * w->width,
                       w->dots ? dt_attention_scale(w->how, w->size) : 1);
    dt_cpu_finish_sums(w->dv_sums, count * w->width, 1);
    dt_cpu_store_head(w->dk, row, count, shared, w->size, w->dk_sums);
    dt_cpu_store_head(w->dv, row, count, shared, w->size, w->dv_sums);
}

/* All gradients of a head of keys, and of the query heads in its group. */
static void whole_head(struct backward *w, int64_t sequence, int64_t shared)
{
    int64_t group = w->how->heads / w->how->kv_heads, blocks = dt_cpu_blocks(w->how->queries);
    clear_key_sums(w, dt_cpu_blocks(w->how->key_stride));
    for (int64_t h = shared * group; h < (shared + 1) * group; h++)
        for (int64_t b = 0; b < blocks; b++)
            query_block(w, sequence, h, b, true);
    store_key_sums(w, sequence, shared, 0, w->how->key_stride);
}

static void key_block(struct backward *w, int64_t sequence, int64_t shared, int64_t block)
{
    int64_t group = w->how->heads / w->how->kv_heads, first = block * DT_CPU_BLOCK;
    int64_t left = w->how->key_stride - first;
    clear_key_sums(w, 1);
    for (int64_t h = shared * group; h < (shared + 1) * group; h++)
        all_queries(w, sequence, h, block);
    store_key_sums(w, sequence, shared, first, left < DT_CPU_BLOCK ? left : DT_CPU_BLOCK);
}

static void backward_by_heads(struct dt_device *dev, const struct backward *shared)
{
    const struct dt_attention *how = shared->how;
#pragma omp parallel num_threads(dev->threads)
    {
        struct backward w = *shared;
        int64_t blocks = dt_cpu_blocks(how->key_stride);
        size_t size = lay_out(&w, NULL, blocks);
        lay_out(&w, dt_cpu_scratch(dev, omp_get_thread_num(), size), blocks);
        dt_cpu_dots_begin(w.dots, DT_CPU_BLOCK);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < how->batch * how->kv_heads; i++)
            whole_head(&w, i / how->kv_heads, i % how->kv_heads);
        dt_cpu_dots_end(w.dots);
    }
}

static void backward_by_blocks(struct dt_device *dev, const struct backward *shared)
{
    const struct dt_attention *how = shared->how;
    int64_t blocks = dt_cpu_blocks(how->queries), key_blocks = dt_cpu_blocks(how->key_stride);
#pragma omp parallel num_threads(dev->threads)
    {
        struct backward w = *shared;
        size_t size = lay_out(&w, NULL, 1);
        lay_out(&w, dt_cpu_scratch(dev, omp_get_thread_num(), size), 1);
        dt_cpu_dots_begin(w.dots, DT_CPU_BLOCK);
#pragma omp for schedule(dynamic) nowait
        for (int64_t i = 0; i < how->batch * how->kv_heads * key_blocks; i++) {
            int64_t head = i / key_blocks;
            key_block(&w, head / how->kv_heads, head % how->kv_heads, i % key_blocks);
        }
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < how->batch * how->heads * blocks; i++) {
            int64_t head = i / blocks;
            query_block(&w, head / how->heads, head % how->heads, i % blocks, false);
        }
        dt_cpu_dots_end(w.dots);
    }
}

void dt_cpu_attention_backward(struct dt_device *dev, struct dt_tensor *dq, struct dt_tensor *dk,
                               struct dt_tensor *dv, const struct dt_tensor *dy,
                               const struct dt_tensor *y, const struct dt_tensor *lse,
                               const struct dt_tensor *q, const struct dt_tensor *k,
                               const struct dt_tensor *v, const struct dt_attention *how)
{
    assert(how->key_stride >= how->past + how->queries);
    int64_t size = q->columns / how->heads;
    struct backward w = {how, dq, dk, dv, dy, y, lse, q, k, v, size, dt_cpu_head_width(size)};
    w.dots = dt_cpu_dots_kernel(dev, q, w.width);
    /* Separate loops compute 2 of the 5 products of a pair twice. */
    int64_t heads = how->batch * how->kv_heads, rounds = (heads + dev->threads - 1) / dev->threads;
    if (5 * rounds * dev->threads <= 7 * heads)
        backward_by_heads(dev, &w);
    else
        backward_by_blocks(dev, &w);
}
