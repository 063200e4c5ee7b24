/* SPDX-License-Identifier: MIT */
/* Attention by blocks of queries (Dao et al. 2022): the scores of one block
 * live in a thread's scratch and are never stored; backward computes them
 * again from the log-sum-exp. A (sequence, head) pair is one thread's work from
 * beginning to end; backward, where heads add to the keys and values that they
 * share, a (sequence, head of keys) pair is: so no sum crosses threads. */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define QUERY_BLOCK 64

/* Where one head of one sequence lies in each tensor. */
static const float *head_of(const struct dt_tensor *x, int64_t first_row, int64_t head,
                            int64_t size)
{
    return dt_cpu_row(x, first_row) + head * size;
}

/* Turns a row of scores into weights that sum to 1; returns its log-sum-exp. */
static float softmax(float *restrict x, int64_t visible, int64_t n)
{
    float most = x[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < visible; j++)
        most = x[j] > most ? x[j] : most;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < visible; j++) {
        x[j] = dt_cpu_exp(x[j] - most);
        sum += x[j];
    }
    float factor = 1.0f / sum;
    for (int64_t j = 0; j < visible; j++)
        x[j] *= factor;
    for (int64_t j = visible; j < n; j++)
        x[j] = 0;
    return most + logf(sum);
}

static void forward_head(struct dt_tensor *y, struct dt_tensor *lse, const struct dt_tensor *q,
                         const struct dt_tensor *k, const struct dt_tensor *v,
                         const struct dt_attention *how, int64_t b, int64_t h, float *scores)
{
    int64_t size = q->columns / how->heads, length = how->queries, first = b * length;
    int64_t shared = h / (how->heads / how->kv_heads);
    const float *keys = head_of(k, b * how->key_stride, shared, size);
    const float *values = head_of(v, b * how->key_stride, shared, size);
    float scale = 1.0f / sqrtf((float)size);
    for (int64_t t = 0; t < length; t += QUERY_BLOCK) {
        int64_t rows = length - t < QUERY_BLOCK ? length - t : QUERY_BLOCK;
        int64_t seen = how->past + t + rows;
        dt_cpu_sgemm(false, true, rows, seen, size, scale, head_of(q, first + t, h, size),
                     q->stride, keys, k->stride, 0.0f, scores, seen);
        for (int64_t i = 0; i < rows; i++)
            dt_cpu_row(lse, first + t + i)[h] =
                softmax(scores + i * seen, how->past + t + i + 1, seen);
        dt_cpu_sgemm(false, false, rows, size, seen, 1.0f, scores, seen, values, v->stride, 0.0f,
                     (float *)head_of(y, first + t, h, size), y->stride);
    }
}

void dt_cpu_attention_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                              const struct dt_tensor *q, const struct dt_tensor *k,
                              const struct dt_tensor *v, const struct dt_attention *how)
{
    assert(q->columns % how->heads == 0 && q->rows == how->batch * how->queries);
    assert(how->heads % how->kv_heads == 0);
    assert(k->columns * how->heads == q->columns * how->kv_heads);
    size_t need = QUERY_BLOCK * (size_t)(how->past + how->queries);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < how->batch * how->heads; i++)
        forward_head(y, lse, q, k, v, how, i / how->heads, i % how->heads,
                     dt_cpu_scratch(dev, omp_get_thread_num(), need));
}

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

/* p: scores in, weights out. dp: gradient of the weights in, of the scores out. */
static void softmax_backward(float *restrict p, float *restrict dp, float lse, float delta,
                             int64_t visible, int64_t n)
{
    for (int64_t j = 0; j < visible; j++) {
        p[j] = dt_cpu_exp(p[j] - lse);
        dp[j] = p[j] * (dp[j] - delta);
    }
    for (int64_t j = visible; j < n; j++)
        p[j] = dp[j] = 0;
}

struct backward {
    struct dt_tensor *dq, *dk, *dv;
    const struct dt_tensor *dy, *y, *lse, *q, *k, *v;
    const struct dt_attention *how;
};

/* Queries t .. t+rows of one head: adds to dk and dv of the keys they see. */
static void backward_block(const struct backward *w, int64_t first, int64_t h, int64_t t,
                           int64_t rows, float *p, float *dp)
{
    int64_t size = w->q->columns / w->how->heads, seen = t + rows;
    int64_t group = w->how->heads / w->how->kv_heads, shared = h / group;
    bool opens = h % group == 0; /* the first head that adds to these keys */
    float scale = 1.0f / sqrtf((float)size), add = t > 0 || !opens ? 1.0f : 0.0f;
    const float *q = head_of(w->q, first + t, h, size), *k = head_of(w->k, first, shared, size);
    const float *v = head_of(w->v, first, shared, size), *dy = head_of(w->dy, first + t, h, size);
    float *dk = (float *)head_of(w->dk, first, shared, size);
    float *dv = (float *)head_of(w->dv, first, shared, size);
    /* The last rows of this block are seen here for the first time: start them at 0. */
    for (int64_t i = t; opens && t > 0 && i < seen; i++) {
        memset(dk + i * w->dk->stride, 0, (size_t)size * sizeof *dk);
        memset(dv + i * w->dv->stride, 0, (size_t)size * sizeof *dv);
    }
    dt_cpu_sgemm(false, true, rows, seen, size, scale, q, w->q->stride, k, w->k->stride, 0, p,
                 seen);
    dt_cpu_sgemm(false, true, rows, seen, size, 1.0f, dy, w->dy->stride, v, w->v->stride, 0, dp,
                 seen);
    for (int64_t i = 0; i < rows; i++) {
        const float *y = head_of(w->y, first + t + i, h, size);
        float delta = dot(dy + i * w->dy->stride, y, size);
        softmax_backward(p + i * seen, dp + i * seen, dt_cpu_row(w->lse, first + t + i)[h], delta,
                         t + i + 1, seen);
    }
    dt_cpu_sgemm(false, false, rows, size, seen, scale, dp, seen, k, w->k->stride, 0,
                 (float *)head_of(w->dq, first + t, h, size), w->dq->stride);
    dt_cpu_sgemm(true, false, seen, size, rows, scale, dp, seen, q, w->q->stride, add, dk,
                 w->dk->stride);
    dt_cpu_sgemm(true, false, seen, size, rows, 1.0f, p, seen, dy, w->dy->stride, add, dv,
                 w->dv->stride);
}

static void backward_head(const struct backward *w, int64_t b, int64_t h, float *p, float *dp)
{
    int64_t length = w->how->queries;
    for (int64_t t = 0; t < length; t += QUERY_BLOCK) {
        int64_t rows = length - t < QUERY_BLOCK ? length - t : QUERY_BLOCK;
        backward_block(w, b * length, h, t, rows, p, dp);
    }
}

void dt_cpu_attention_backward(struct dt_device *dev, struct dt_tensor *dq, struct dt_tensor *dk,
                               struct dt_tensor *dv, const struct dt_tensor *dy,
                               const struct dt_tensor *y, const struct dt_tensor *lse,
                               const struct dt_tensor *q, const struct dt_tensor *k,
                               const struct dt_tensor *v, const struct dt_attention *how)
{
    assert(how->past == 0 && how->key_stride == how->queries);
    struct backward w = {dq, dk, dv, dy, y, lse, q, k, v, how};
    size_t block = QUERY_BLOCK * (size_t)how->queries;
    int64_t group = how->heads / how->kv_heads;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < how->batch * how->kv_heads; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * block);
        int64_t head = i % how->kv_heads * group;
        for (int64_t h = head; h < head + group; h++)
            backward_head(&w, i / how->kv_heads, h, scratch, scratch + block);
    }
}
