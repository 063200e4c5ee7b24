/* SPDX-License-Identifier: MIT */
/*
 * Forward of few queries with many keys (decoding), with the same order of operations, and so the
 * same bits, as attention.c. A block of keys is transposed, so that keys are lanes of the vectors;
 * it is used by all queries of a head of keys before the next block is read. Values are read in
 * place, or, for the products of attention-bf16.h, as pairs of rows.
 */
#include "device/cpu/attention/attention-few.h"

#include <math.h>
#include <omp.h>

#include "device/cpu/attention/attention-bf16.h"

/* The online softmax of a query of a head. */
struct state {
    float highest, total;
};

/* A thread's work: some queries of the heads that share a head of keys. */
struct few {
    const struct dt_attention *how;
    const struct dt_tensor *q, *k, *v;
    int64_t size, width;
    int64_t sequence, shared, from, to; /* pairs of head and query, numbered from 0 */
    /* scratch: */
    float *queries, *sums; /* of each pair: its scaled query, its weighted values; width each */
    struct state *states;
    float *transposed; /* width x DT_CPU_BLOCK: keys */
    float *loaded;     /* DT_CPU_BLOCK x width: keys, then values */
    float *weights;    /* DT_CPU_BLOCK */
    const struct dt_cpu_dots_kernel
        *dots;                         /* of attention-bf16.h, or NULL, for queries' words and: */
    struct dt_cpu_dots k_dots, v_dots; /* in the memory of transposed and loaded */
};

static int64_t pairs_of(const struct dt_attention *how)
{
    return how->heads / how->kv_heads * how->queries;
}

static size_t lay_out(struct few *f, float *scratch)
{
    size_t pairs = (size_t)pairs_of(f->how), width = (size_t)f->width;
    size_t block = DT_CPU_BLOCK * width;
    if (scratch) {
        f->transposed = scratch;
        f->loaded = f->transposed + block;
        f->weights = f->loaded + block;
        f->queries = f->weights + DT_CPU_BLOCK;
        f->sums = f->queries + pairs * width;
        f->states = (struct state *)(f->sums + pairs * width);
        uint32_t *rows = (uint32_t *)f->loaded, *lanes = (uint32_t *)f->transposed;
        f->k_dots = (struct dt_cpu_dots){.rows = rows, .lanes = lanes};
        f->v_dots = (struct dt_cpu_dots){.rows = rows, .pairs = rows + block / 2};
    }
    return 2 * block + DT_CPU_BLOCK + pairs * (2 * width + 2);
}

static int64_t head_of(const struct few *f, int64_t pair)
{
    return f->shared * (f->how->heads / f->how->kv_heads) + pair / f->how->queries;
}

static int64_t row_of(const struct few *f, int64_t pair)
{
    return f->sequence * f->how->queries + pair % f->how->queries;
}

static uint32_t *words_of(const struct few *f, int64_t pair)
{
    return (uint32_t *)(f->queries + pair * f->width);
}

/* Those of dots are not scaled: scores are. */
static void load_query(const struct few *f, int64_t pair)
{
    int64_t row = row_of(f, pair), head = head_of(f, pair);
    if (f->dots) {
        struct dt_cpu_dots query = {.rows = words_of(f, pair)};
        dt_cpu_dots_load(&query, 1, f->q, row, 1, head, f->size);
        return;
    }
    dt_cpu_load_head(f->queries + pair * f->width, 1, f->q, row, 1, head, f->size);
    dt_cpu_scale(f->queries + pair * f->width, f->width, dt_attention_scale(f->how, f->size));
}

static void begin(struct few *f)
{
    for (int64_t i = f->from; i < f->to; i++) {
        load_query(f, i);
        f->states[i] = (struct state){DT_CPU_LOWEST, 0};
    }
    memset(f->sums + f->from * f->width, 0,
           (size_t)((f->to - f->from) * f->width) * sizeof *f->sums);
}

static void end(const struct few *f, struct dt_tensor *y, struct dt_tensor *lse)
{
    for (int64_t i = f->from; i < f->to; i++) {
        const struct state *s = &f->states[i];
        dt_cpu_finish_sums(f->sums + i * f->width, f->width, 1.0f / s->total);
        dt_cpu_store_head(y, row_of(f, i), 1, head_of(f, i), f->size, f->sums + i * f->width);
        dt_cpu_row(lse, row_of(f, i))[head_of(f, i)] = s->highest + dt_device_log(s->total);
    }
}

/* Keys of a block, padded to a multiple of DT_CPU_LANES. */
static int64_t padded(int64_t count)
{
    return dt_cpu_round_up(count, DT_CPU_LANES);
}

static bool in_place(const struct few *f, const struct dt_tensor *x)
{
    return x->dtype == DT_DTYPE_F32 && f->size == f->width;
}

/* Transposes count keys from key number first on; the padding is zeros. */
static void load_keys(struct few *f, int64_t first, int64_t count)
{
    int64_t row = f->sequence * f->how->key_stride + first;
    if (f->dots) {
        dt_cpu_dots_load(&f->k_dots, dt_cpu_dots_rows(count), f->k, row, count, f->shared, f->size);
        return;
    }
    int64_t whole = in_place(f, f->k) ? count / DT_CPU_LANES * DT_CPU_LANES : 0;
    if (whole > 0)
        dt_cpu_transpose(f->transposed, dt_cpu_row(f->k, row) + f->shared * f->size, f->k->stride,
                         whole, f->width);
    if (whole == count)
        return;
    dt_cpu_load_head(f->loaded, padded(count) - whole, f->k, row + whole, count - whole, f->shared,
                     f->size);
    dt_cpu_transpose(f->transposed + whole, f->loaded, f->width, padded(count) - whole, f->width);
}

/* The values of count keys, with a stride; NULL: as dots. */
static const float *load_values(struct few *f, int64_t first, int64_t count, int64_t *stride)
{
    int64_t row = f->sequence * f->how->key_stride + first;
    *stride = f->v->stride;
    if (f->dots) {
        dt_cpu_dots_load(&f->v_dots, dt_cpu_dots_rows(count), f->v, row, count, f->shared, f->size);
        return NULL;
    }
    if (in_place(f, f->v))
        return dt_cpu_row(f->v, row) + f->shared * f->size;
    dt_cpu_load_head(f->loaded, count, f->v, row, count, f->shared, f->size);
    *stride = f->width;
    return f->loaded;
}

/* Scores of a query and some vectors of keys. */
DT_CPU_INLINE void score_vectors(float *scores, const float *query, const float *keys, int64_t size,
                                 int vectors)
{
    dt_cpu_vector sums[4] = {{0}};
    for (int64_t j = 0; j < size; j++)
        DT_CPU_UNROLL
    for (int i = 0; i < vectors; i++)
        sums[i] = dt_cpu_vector_fma(dt_cpu_vector_of(query[j]),
                                    dt_cpu_vector_load(keys + j * DT_CPU_BLOCK + i * DT_CPU_VECTOR),
                                    sums[i]);
    DT_CPU_UNROLL
    for (int i = 0; i < vectors; i++)
        dt_cpu_vector_store(scores + i * DT_CPU_VECTOR, sums[i]);
}

/* Scores of a query and the padded keys before end. */
static void score(float *scores, const float *query, const float *keys, int64_t size, int64_t end)
{
    int64_t t = 0;
    for (; t + 4 * DT_CPU_VECTOR <= end; t += 4 * DT_CPU_VECTOR)
        score_vectors(scores + t, query, keys + t, size, 4);
    for (; t + 2 * DT_CPU_VECTOR <= end; t += 2 * DT_CPU_VECTOR)
        score_vectors(scores + t, query, keys + t, size, 2);
    for (; t < end; t += DT_CPU_VECTOR)
        score_vectors(scores + t, query, keys + t, size, 1);
}

static float highest_of(const float *restrict scores, int64_t count, float before)
{
    float lanes[DT_CPU_LANES];
    for (int i = 0; i < DT_CPU_LANES; i++)
        lanes[i] = before;
    for (int64_t t = 0; t < count; t += DT_CPU_LANES)
        for (int i = 0; i < DT_CPU_LANES; i++)
            lanes[i] = scores[t + i] > lanes[i] ? scores[t + i] : lanes[i];
    for (int half = DT_CPU_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] = lanes[i + half] > lanes[i] ? lanes[i + half] : lanes[i];
    return lanes[0];
}

/* Scores become weights. */
static void exponentiate(struct state *s, float *restrict weights, float *restrict sums,
                         int64_t width, int64_t count)
{
    float highest = highest_of(weights, padded(count), s->highest);
    if (highest != s->highest) {
        float factor = dt_device_exp(s->highest - highest);
        s->total *= factor;
        dt_cpu_scale(sums, width, factor);
        s->highest = highest;
    }
    for (int64_t t = 0; t < padded(count); t++)
        weights[t] = dt_device_exp(weights[t] - highest);
    for (int64_t t = 0; t < count; t++)
        s->total += weights[t];
}

/* sums += weights times rows of values, for some vectors of channels. */
DT_CPU_INLINE void add_vectors(float *sums, const float *weights, const float *values,
                               int64_t stride, int64_t count, int vectors)
{
    dt_cpu_vector sum[8];
    DT_CPU_UNROLL
    for (int i = 0; i < vectors; i++)
        sum[i] = dt_cpu_vector_load(sums + i * DT_CPU_VECTOR);
    for (int64_t t = 0; t < count; t++)
        DT_CPU_UNROLL
    for (int i = 0; i < vectors; i++)
        sum[i] =
            dt_cpu_vector_fma(dt_cpu_vector_of(weights[t]),
                              dt_cpu_vector_load(values + t * stride + i * DT_CPU_VECTOR), sum[i]);
    DT_CPU_UNROLL
    for (int i = 0; i < vectors; i++)
        dt_cpu_vector_store(sums + i * DT_CPU_VECTOR, sum[i]);
}

static void add_values(float *sums, const float *weights, const float *values, int64_t stride,
                       int64_t count, int64_t width)
{
    int64_t j = 0;
    for (; j + 8 * DT_CPU_VECTOR <= width; j += 8 * DT_CPU_VECTOR)
        add_vectors(sums + j, weights, values + j, stride, count, 8);
    for (; j + 4 * DT_CPU_VECTOR <= width; j += 4 * DT_CPU_VECTOR)
        add_vectors(sums + j, weights, values + j, stride, count, 4);
    for (; j < width; j += DT_CPU_VECTOR)
        add_vectors(sums + j, weights, values + j, stride, count, 1);
}

/* The keys of a block that a pair attends to. */
struct span {
    int64_t begin, end;
};

static int64_t clip(int64_t key)
{
    return key < 0 ? 0 : key < DT_CPU_BLOCK ? key : DT_CPU_BLOCK;
}

/* first: key number of the block's first. */
static struct span span_of(const struct few *f, int64_t pair, int64_t first)
{
    int64_t own = f->how->past + pair % f->how->queries - first;
    return (struct span){clip(own - dt_attention_band_of(f->how).before), clip(own + 1)};
}

/* Scores of a pair and the block of keys; those of masked keys and padding are minus infinity. */
static void score_span(struct few *f, int64_t pair, const struct span *own)
{
    float *scores = f->weights;
    if (f->dots)
        dt_cpu_dots_score_row(f->dots, scores, words_of(f, pair), &f->k_dots, padded(own->end),
                              f->width, dt_attention_scale(f->how, f->size));
    else
        score(scores, f->queries + pair * f->width, f->transposed, f->size, padded(own->end));
    if (f->how->softcap > 0)
        dt_cpu_cap_scores(scores, f->how->softcap, padded(own->end));
    for (int64_t t = 0; t < own->begin; t++)
        scores[t] = -INFINITY;
    for (int64_t t = own->end; t < padded(own->end); t++)
        scores[t] = -INFINITY;
}

static void attend(struct few *f)
{
    int64_t keys = f->how->past + f->how->queries;
    int64_t begin = f->how->past - dt_attention_band_of(f->how).before;
    begin = begin < 0 ? 0 : begin / DT_CPU_BLOCK * DT_CPU_BLOCK;
    for (int64_t first = begin; first < keys; first += DT_CPU_BLOCK) {
        int64_t left = keys - first, stride;
        int64_t count = left < DT_CPU_BLOCK ? left : DT_CPU_BLOCK;
        load_keys(f, first, count);
        const float *values = load_values(f, first, count, &stride);
        for (int64_t i = f->from; i < f->to; i++) {
            float *sums = f->sums + i * f->width;
            struct span own = span_of(f, i, first);
            if (own.begin >= own.end)
                continue;
            score_span(f, i, &own);
            exponentiate(&f->states[i], f->weights, sums, f->width, own.end);
            if (f->dots)
                dt_cpu_dots_sum_row(f->dots, sums, f->weights, &f->v_dots, own.end, f->width);
            else
                add_values(sums, f->weights, values, stride, own.end, f->width);
        }
    }
}

bool dt_cpu_has_few_queries(const struct dt_attention *how)
{
    return how->queries <= DT_CPU_FEW_QUERIES && !how->bidirectional && how->begins == NULL &&
           how->dropout.rate == 0;
}

/* Parts of the pairs of a head of keys, so that all threads have work. */
static int64_t parts_of(const struct dt_attention *how, int threads)
{
    int64_t heads = how->batch * how->kv_heads, parts = 1;
    while (parts < pairs_of(how) && heads * parts % threads != 0 && heads * parts < 4 * threads)
        parts++;
    return parts;
}

void dt_cpu_attend_few(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                       const struct dt_tensor *q, const struct dt_tensor *k,
                       const struct dt_tensor *v, const struct dt_attention *how)
{
    int64_t size = q->columns / how->heads, keys = how->past + how->queries;
    int64_t most_keys = how->window > 0 && how->window < keys ? how->window : keys;
    int64_t pairs = pairs_of(how), parts = parts_of(how, dev->threads);
    bool large = how->batch * how->queries * how->heads * most_keys * size > DT_CPU_SMALL_WORK;
    int64_t width = dt_cpu_head_width(size);
    const struct dt_cpu_dots_kernel *dots = dt_cpu_dots_kernel(dev, q, width);
#pragma omp parallel num_threads(dev->threads) if (large)
    {
        struct few f = {how, q, k, v, .size = size, .width = width, .dots = dots};
        size_t scratch = lay_out(&f, NULL);
        lay_out(&f, dt_cpu_scratch(dev, omp_get_thread_num(), scratch));
        dt_cpu_dots_begin(dots, 1);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < how->batch * how->kv_heads * parts; i++) {
            int64_t part = i % parts, head = i / parts;
            f.sequence = head / how->kv_heads, f.shared = head % how->kv_heads;
            f.from = pairs * part / parts, f.to = pairs * (part + 1) / parts;
            begin(&f);
            attend(&f);
            end(&f, y, lse);
        }
        dt_cpu_dots_end(dots);
    }
}
