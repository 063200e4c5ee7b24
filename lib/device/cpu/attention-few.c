/* SPDX-License-Identifier: MIT */
/* Forward of few queries with many keys (decoding): each query reads keys and values in place, and
 * its bits do not depend on the other queries. */
#include "device/cpu/attention-few.h"

#include <math.h>
#include <omp.h>

#include "device/cpu/functions.h"

#define LANES 16

/* A thread's work: one query of one head. */
struct query {
    const struct dt_attention *how;
    const struct dt_tensor *k, *v;
    int64_t size, keys, first, column; /* of the keys: their number, first row and column */
    float *q, *row, *weights, *sum;    /* scratch: size, size, keys, size */
};

static float dot(const float *restrict a, const float *restrict b, int64_t n)
{
    float lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            lanes[j] += a[i + j] * b[i + j];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    for (; i < n; i++)
        sum += a[i] * b[i];
    return lanes[0] + sum;
}

static void add_scaled(float *restrict to, const float *restrict x, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * x[i];
}

/* exp(score - *highest) of all keys. Returns their sum. */
static float softmax_weights(const struct query *w, float *highest)
{
    float total = 0;
    *highest = -INFINITY;
    for (int64_t t = 0; t < w->keys; t++) {
        const float *key = dt_cpu_load(w->k, w->first + t, w->column, w->size, w->row);
        w->weights[t] = dot(w->q, key, w->size);
        *highest = w->weights[t] > *highest ? w->weights[t] : *highest;
    }
    for (int64_t t = 0; t < w->keys; t++)
        w->weights[t] = dt_device_exp(w->weights[t] - *highest);
    for (int64_t t = 0; t < w->keys; t++)
        total += w->weights[t];
    return total;
}

static void attend(const struct query *w, struct dt_tensor *y, struct dt_tensor *lse,
                   const struct dt_tensor *q, int64_t row, int64_t head)
{
    float highest, scale = dt_cpu_score_scale(w->size);
    const float *from = dt_cpu_load(q, row, head * w->size, w->size, w->row);
    for (int64_t i = 0; i < w->size; i++)
        w->q[i] = from[i] * scale, w->sum[i] = 0;
    float total = softmax_weights(w, &highest);
    for (int64_t t = 0; t < w->keys; t++)
        add_scaled(w->sum, dt_cpu_load(w->v, w->first + t, w->column, w->size, w->row),
                   w->weights[t], w->size);
    dt_cpu_scale(w->sum, w->size, 1.0f / total);
    dt_cpu_row(lse, row)[head] = highest + dt_device_log(total);
    dt_cpu_store(y, row, head * w->size, w->size, w->sum);
}

bool dt_cpu_has_few_queries(const struct dt_attention *how)
{
    return how->queries <= DT_CPU_FEW_QUERIES && !how->bidirectional && how->begins == NULL &&
           how->keys == 0 && how->dropout.rate == 0;
}

void dt_cpu_attend_few(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                       const struct dt_tensor *q, const struct dt_tensor *k,
                       const struct dt_tensor *v, const struct dt_attention *how)
{
    int64_t size = q->columns / how->heads, most_keys = how->past + how->queries;
    bool large = how->batch * how->queries * how->heads * most_keys * size > DT_CPU_SMALL_WORK;
#pragma omp parallel num_threads(dev->threads) if (large)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(3 * size + most_keys));
        struct query w = {how, k, v, .size = size, .q = scratch, .row = scratch + size};
        w.sum = scratch + 2 * size;
        w.weights = scratch + 3 * size;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < how->batch * how->heads * how->queries; i++) {
            int64_t query = i % how->queries, head = i / how->queries % how->heads;
            int64_t sequence = i / how->queries / how->heads;
            w.keys = how->past + query + 1;
            w.first = sequence * how->key_stride;
            w.column = head / (how->heads / how->kv_heads) * size;
            attend(&w, y, lse, q, sequence * how->queries + query, head);
        }
    }
}
