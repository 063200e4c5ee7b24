/* SPDX-License-Identifier: MIT */
/* Forward: a thread takes a block of queries of one head, and loops over the blocks of keys with an
 * online softmax (Milakov and Gimelshein 2018). */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/attention/attention-bf16.h"
#include "device/cpu/attention/attention-few.h"

/* A thread's scratch. */
struct forward {
    const struct dt_attention *how;
    const struct dt_tensor *q, *k, *v;
    struct dt_cpu_queries queries;
    int64_t size, width;
    float *transposed;                     /* queries, width x DT_CPU_BLOCK */
    float *loaded;                         /* queries, keys or values, DT_CPU_BLOCK x width */
    float *weights;                        /* keys x queries */
    float *factors;                        /* dropout's, keys x queries; or scratch of dots */
    float *sums;                           /* DT_CPU_BLOCK x width: weighted values */
    const struct dt_cpu_dots_kernel *dots; /* the products of attention-bf16.h, of these; or NULL */
    struct dt_cpu_dots q_dots, k_dots, v_dots;
    float highest[DT_CPU_BLOCK], total[DT_CPU_BLOCK];
};

static size_t forward_scratch(int64_t size)
{
    int64_t width = dt_cpu_head_width(size);
    return (size_t)(DT_CPU_BLOCK * (3 * width + 2 * DT_CPU_BLOCK) + 3 * dt_cpu_dots_size(width));
}

static void lay_out(struct forward *f, float *scratch)
{
    f->transposed = scratch;
    f->loaded = f->transposed + DT_CPU_BLOCK * f->width;
    f->sums = f->loaded + DT_CPU_BLOCK * f->width;
    f->weights = f->sums + DT_CPU_BLOCK * f->width;
    f->factors = f->weights + DT_CPU_BLOCK * DT_CPU_BLOCK;
    uint32_t *rows = (uint32_t *)(f->factors + DT_CPU_BLOCK * DT_CPU_BLOCK);
    int64_t size = dt_cpu_dots_size(f->width);
    f->q_dots = (struct dt_cpu_dots){.rows = rows, .lanes = rows + size};
    f->k_dots = (struct dt_cpu_dots){.rows = rows};
    f->v_dots = (struct dt_cpu_dots){.rows = rows, .pairs = rows + 2 * size};
}

static void raise_maxima(float *restrict highest, const float *restrict scores, int64_t vectors)
{
    for (int64_t i = 0; i < vectors * DT_CPU_VECTOR; i++)
        highest[i] = scores[i] > highest[i] ? scores[i] : highest[i];
}

/* Scores become exp(score - highest), and are added to total. */
static void exponentiate(float *restrict scores, const float *restrict highest,
                         float *restrict total, int64_t vectors)
{
    for (int64_t i = 0; i < vectors * DT_CPU_VECTOR; i++) {
        float x = dt_device_exp(scores[i] - highest[i]);
        scores[i] = x;
        total[i] += x;
    }
}

/* Rescales sums from the previous maxima to the new ones. */
static void rescale(struct forward *f, const float *restrict before)
{
    for (int64_t i = 0; i < f->queries.lanes; i++) {
        if (before[i] == f->highest[i])
            continue;
        float factor = dt_device_exp(before[i] - f->highest[i]);
        f->total[i] *= factor;
        dt_cpu_scale(f->sums + i * f->width, f->width, factor);
    }
}

/* Scores of the keys from row first on, in head number head. */
static void score(struct forward *f, const struct dt_cpu_keys *keys, int64_t first, int64_t head)
{
    if (f->dots) {
        dt_cpu_dots_load(&f->k_dots, dt_cpu_dots_rows(keys->rows), f->k, first, keys->count, head,
                         f->size);
        dt_cpu_dots_score(f->dots, f->weights, &f->k_dots, &f->q_dots, keys, &f->queries, f->width,
                          dt_attention_scale(f->how, f->size));
        return;
    }
    dt_cpu_load_head(f->loaded, keys->rows, f->k, first, keys->count, head, f->size);
    dt_cpu_score(f->weights, f->loaded, f->transposed, keys, &f->queries, f->size);
}

static void sum_values(struct forward *f, const struct dt_cpu_keys *keys, int64_t first,
                       int64_t head)
{
    if (f->dots) {
        dt_cpu_dots_load(&f->v_dots, dt_cpu_dots_rows(keys->rows), f->v, first, keys->count, head,
                         f->size);
        dt_cpu_dots_sum_keys(f->dots, f->sums, f->weights, &f->v_dots, keys, &f->queries, f->width,
                             (uint32_t *)f->factors);
        return;
    }
    dt_cpu_load_head(f->loaded, keys->rows, f->v, first, keys->count, head, f->size);
    dt_cpu_sum_keys(f->sums, f->weights, f->loaded, keys, &f->queries, f->width);
}

static void add_keys(struct forward *f, const struct dt_cpu_keys *keys)
{
    const struct dt_cpu_queries *q = &f->queries;
    int64_t first = q->sequence * f->how->key_stride + keys->first;
    int64_t shared = q->head / (f->how->heads / f->how->kv_heads);
    float before[DT_CPU_BLOCK];
    score(f, keys, first, shared);
    if (f->how->softcap > 0)
        dt_cpu_cap(f->weights, NULL, f->how, keys, q);
    dt_cpu_mask(f->weights, keys, q);
    memcpy(before, f->highest, sizeof before);
    DT_CPU_EACH_ROW(keys, q, row, lane)
    raise_maxima(f->highest + lane, f->weights + row * DT_CPU_BLOCK + lane,
                 (q->lanes - lane) / DT_CPU_VECTOR);
    rescale(f, before);
    DT_CPU_EACH_ROW(keys, q, row, lane)
    exponentiate(f->weights + row * DT_CPU_BLOCK + lane, f->highest + lane, f->total + lane,
                 (q->lanes - lane) / DT_CPU_VECTOR);
    if (f->how->dropout.rate > 0) {
        dt_cpu_weight_dropout(f->factors, f->how, keys, q);
        dt_cpu_scale_weights(f->weights, f->factors, keys, q);
    }
    sum_values(f, keys, first, shared);
}

static void begin_sums(struct forward *f)
{
    const struct dt_cpu_queries *q = &f->queries;
    memset(f->sums, 0, (size_t)(q->lanes * f->width) * sizeof *f->sums);
    for (int64_t i = 0; i < q->lanes; i++)
        f->highest[i] = DT_CPU_LOWEST, f->total[i] = 0;
}

static void end_sums(struct forward *f, struct dt_tensor *y, struct dt_tensor *lse, int64_t row)
{
    const struct dt_cpu_queries *q = &f->queries;
    for (int64_t i = 0; i < q->count; i++) {
        float factor = q->begins[i] < q->ends[i] ? 1.0f / f->total[i] : 0;
        dt_cpu_finish_sums(f->sums + i * f->width, f->width, factor);
        dt_cpu_row(lse, row + i)[q->head] = f->highest[i] + dt_device_log(f->total[i]);
    }
    dt_cpu_store_head(y, row, q->count, q->head, f->size, f->sums);
}

/* Those of dots are not scaled: scores are. */
static void load_queries(struct forward *f, int64_t row)
{
    const struct dt_cpu_queries *q = &f->queries;
    if (f->dots) {
        dt_cpu_dots_load(&f->q_dots, dt_cpu_dots_rows(q->lanes), f->q, row, q->count, q->head,
                         f->size);
        return;
    }
    dt_cpu_load_head(f->loaded, q->lanes, f->q, row, q->count, q->head, f->size);
    dt_cpu_scale(f->loaded, q->lanes * f->width, dt_attention_scale(f->how, f->size));
    dt_cpu_transpose(f->transposed, f->loaded, f->width, q->lanes, f->width);
}

static void forward_block(struct forward *f, struct dt_tensor *y, struct dt_tensor *lse)
{
    const struct dt_cpu_queries *q = &f->queries;
    int64_t row = q->sequence * f->how->queries + q->first;
    load_queries(f, row);
    begin_sums(f);
    struct dt_cpu_keys keys;
    for (int64_t block = q->begin / DT_CPU_BLOCK; dt_cpu_find_keys(&keys, q, block); block++)
        add_keys(f, &keys);
    end_sums(f, y, lse, row);
}

void dt_cpu_attention_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                              const struct dt_tensor *q, const struct dt_tensor *k,
                              const struct dt_tensor *v, const struct dt_attention *how)
{
    assert(q->columns % how->heads == 0 && q->rows == how->batch * how->queries);
    assert(how->heads % how->kv_heads == 0);
    assert(k->columns * how->heads == q->columns * how->kv_heads);
    int64_t size = q->columns / how->heads, blocks = dt_cpu_blocks(how->queries);
    if (dt_cpu_has_few_queries(how)) {
        dt_cpu_attend_few(dev, y, lse, q, k, v, how);
        return;
    }
    int64_t width = dt_cpu_head_width(size);
    const struct dt_cpu_dots_kernel *dots = dt_cpu_dots_kernel(dev, q, width);
#pragma omp parallel num_threads(dev->threads)
    {
        /* Every thread allocates its scratch memory at the first call, even without work. */
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), forward_scratch(size));
        struct forward f = {how, q, k, v, .size = size, .width = width, .dots = dots};
        lay_out(&f, scratch);
        dt_cpu_dots_begin(dots, DT_CPU_BLOCK);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < how->batch * how->heads * blocks; i++) {
            int64_t head = i / blocks;
            dt_cpu_find_queries(&f.queries, how, head / how->heads, head % how->heads, i % blocks);
            forward_block(&f, y, lse);
        }
        dt_cpu_dots_end(dots);
    }
}
