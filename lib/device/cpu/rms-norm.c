/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define COLUMN_UNIT 64

static float reciprocal_rms(const float *x, int64_t n, float epsilon)
{
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < n; j++)
        squares += x[j] * x[j];
    return 1.0f / sqrtf(squares / (float)n + epsilon);
}

static void scale_row(float *restrict y, const float *restrict x, const float *restrict weight,
                      float rstd, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        y[j] = x[j] * rstd * weight[j];
}

void dt_cpu_rms_norm_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *rstd,
                             struct dt_tensor *sum, const struct dt_tensor *x,
                             const struct dt_tensor *add, const struct dt_tensor *weight,
                             float epsilon)
{
    int64_t n = x->columns;
    assert(y->columns == n && sum->columns == n && weight->columns == n && rstd->columns == 1);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++) {
        float *to = dt_cpu_sum_row(sum, x, add, i), *r = dt_cpu_row(rstd, i);
        *r = reciprocal_rms(to, n, epsilon);
        scale_row(dt_cpu_row(y, i), to, weight->data, *r, n);
    }
}

/* dx = rstd * (g - xhat * mean(g * xhat)) with g = dy * weight, xhat = x * rstd. */
static void row_backward(float *restrict dx, const float *restrict dy, const float *restrict x,
                         const float *restrict weight, float rstd, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++)
        sum += dy[j] * weight[j] * x[j];
    float mean = sum * rstd / (float)n;
    for (int64_t j = 0; j < n; j++)
        dx[j] += rstd * (dy[j] * weight[j] - x[j] * rstd * mean);
}

static void columns_backward(float *restrict dweight, const struct dt_tensor *dy,
                             const struct dt_tensor *sum, const struct dt_tensor *rstd,
                             int64_t from, int64_t to)
{
    for (int64_t i = 0; i < dy->rows; i++) {
        const float *restrict g = dt_cpu_row(dy, i), *restrict x = dt_cpu_row(sum, i);
        float r = *dt_cpu_row(rstd, i);
        for (int64_t j = from; j < to; j++)
            dweight[j] += g[j] * x[j] * r;
    }
}

void dt_cpu_rms_norm_backward(struct dt_device *dev, struct dt_tensor *dsum,
                              struct dt_tensor *dweight, const struct dt_tensor *dy,
                              const struct dt_tensor *sum, const struct dt_tensor *weight,
                              const struct dt_tensor *rstd)
{
    int64_t n = dy->columns;
    assert(dsum->columns == n && sum->columns == n && dweight->columns == n);
#pragma omp parallel num_threads(dev->threads)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < dy->rows; i++)
            row_backward(dt_cpu_row(dsum, i), dt_cpu_row(dy, i), dt_cpu_row(sum, i), weight->data,
                         *dt_cpu_row(rstd, i), n);
        int64_t from, to;
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        columns_backward(dweight->data, dy, sum, rstd, from, to);
    }
}
