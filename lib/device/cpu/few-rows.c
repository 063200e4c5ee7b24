/* SPDX-License-Identifier: MIT */
/* Products of few rows with a large matrix, which is read once and from memory, as
 * when text is generated. Each element is summed in an order of its own that only
 * the length of the sum decides: a row has the same bits whatever rows are beside it. */
#include "device/cpu/few-rows.h"

#include <string.h>

#define LANES 16
#define STEPS 8    /* rows of B that are added at once */
#define ROOM  8192 /* elements of C that stay near */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static inline void load(lanes *v, const float *x)
{
    memcpy(v, x, sizeof *v);
}

static float add_lanes(const lanes *v)
{
    float x[LANES];
    memcpy(x, v, sizeof x);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

/* Products of a with rows 0 .. 3 of b. */
static void dot_four(const float *restrict a, const float *restrict b, int64_t stride, int64_t k,
                     float sums[4])
{
    lanes s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        lanes x, y0, y1, y2, y3;
        load(&x, a + i);
        load(&y0, b + i);
        load(&y1, b + stride + i);
        load(&y2, b + 2 * stride + i);
        load(&y3, b + 3 * stride + i);
        s0 += x * y0, s1 += x * y1, s2 += x * y2, s3 += x * y3;
    }
    sums[0] = add_lanes(&s0), sums[1] = add_lanes(&s1);
    sums[2] = add_lanes(&s2), sums[3] = add_lanes(&s3);
    for (; i < k; i++)
        for (int j = 0; j < 4; j++)
            sums[j] += a[i] * b[j * stride + i];
}

static float dot_one(const float *restrict a, const float *restrict b, int64_t k)
{
    lanes s = {0};
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        lanes x, y;
        load(&x, a + i);
        load(&y, b + i);
        s += x * y;
    }
    float sum = add_lanes(&s);
    for (; i < k; i++)
        sum += a[i] * b[i];
    return sum;
}

static void multiply_transposed(const struct dt_cpu_few_rows *p, int64_t from, int64_t to)
{
    int64_t n = from;
    for (; n + 4 <= to; n += 4)
        for (int64_t row = 0; row < p->rows; row++) {
            float sums[4];
            dot_four(p->a + row * p->a_stride, p->b + n * p->b_stride, p->b_stride, p->k, sums);
            for (int j = 0; j < 4; j++)
                p->c[row * p->c_stride + n + j] += sums[j];
        }
    for (; n < to; n++)
        for (int64_t row = 0; row < p->rows; row++)
            p->c[row * p->c_stride + n] +=
                dot_one(p->a + row * p->a_stride, p->b + n * p->b_stride, p->k);
}

static void add_eight(float *restrict c, const float *restrict a, const float *restrict b,
                      int64_t stride, int64_t n)
{
    const float *restrict b1 = b + stride, *restrict b2 = b1 + stride, *restrict b3 = b2 + stride;
    const float *restrict b4 = b3 + stride, *restrict b5 = b4 + stride, *restrict b6 = b5 + stride;
    const float *restrict b7 = b6 + stride;
    for (int64_t j = 0; j < n; j++)
        c[j] = c[j] + a[0] * b[j] + a[1] * b1[j] + a[2] * b2[j] + a[3] * b3[j] + a[4] * b4[j] +
               a[5] * b5[j] + a[6] * b6[j] + a[7] * b7[j];
}

static void add_one(float *restrict c, float a, const float *restrict b, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        c[j] += a * b[j];
}

static void multiply_plain(const struct dt_cpu_few_rows *p, int64_t from, int64_t to)
{
    int64_t i = 0;
    for (; i + STEPS <= p->k; i += STEPS)
        for (int64_t row = 0; row < p->rows; row++)
            add_eight(p->c + row * p->c_stride + from, p->a + row * p->a_stride + i,
                      p->b + i * p->b_stride + from, p->b_stride, to - from);
    for (; i < p->k; i++)
        for (int64_t row = 0; row < p->rows; row++)
            add_one(p->c + row * p->c_stride + from, p->a[row * p->a_stride + i],
                    p->b + i * p->b_stride + from, to - from);
}

void dt_cpu_multiply_few_rows(const struct dt_cpu_few_rows *p, int64_t from, int64_t to)
{
    int64_t width = ROOM / p->rows / LANES * LANES;
    if (p->transpose_b) {
        multiply_transposed(p, from, to);
        return;
    }
    for (int64_t at = from; at < to; at += width)
        multiply_plain(p, at, to - at < width ? to : at + width);
}
