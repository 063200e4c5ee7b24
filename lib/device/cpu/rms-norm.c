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
    int64_t n = weight->columns, groups = x->columns / n;
    assert(groups * n == x->columns && rstd->columns == groups);
    assert(y->columns == x->columns && sum->columns == x->columns);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++) {
        float *to = dt_cpu_sum_row(sum, x, add, i), *r = dt_cpu_row(rstd, i);
        for (int64_t g = 0; g < groups; g++) {
            r[g] = reciprocal_rms(to + g * n, n, epsilon);
            scale_row(dt_cpu_row(y, i) + g * n, to + g * n, weight->data, r[g], n);
        }
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
    for (int64_t i = 0; i < dy->rows; i++)
        for (int64_t g = 0; g < rstd->columns; g++) {
            int64_t group = g * (dy->columns / rstd->columns);
            const float *restrict in = dt_cpu_row(dy, i) + group;
            const float *restrict x = dt_cpu_row(sum, i) + group;
            float r = dt_cpu_row(rstd, i)[g];
            for (int64_t j = from; j < to; j++)
                dweight[j] += in[j] * x[j] * r;
        }
}

void dt_cpu_rms_norm_backward(struct dt_device *dev, struct dt_tensor *dsum,
                              struct dt_tensor *dweight, const struct dt_tensor *dy,
                              const struct dt_tensor *sum, const struct dt_tensor *weight,
                              const struct dt_tensor *rstd)
{
    int64_t n = weight->columns, groups = rstd->columns;
    assert(dy->columns == n * groups && dweight->columns == n);
    assert(dsum->columns == dy->columns && sum->columns == dy->columns);
#pragma omp parallel num_threads(dev->threads)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < dy->rows; i++)
            for (int64_t g = 0; g < groups; g++)
                row_backward(dt_cpu_row(dsum, i) + g * n, dt_cpu_row(dy, i) + g * n,
                             dt_cpu_row(sum, i) + g * n, weight->data, dt_cpu_row(rstd, i)[g], n);
        int64_t from, to;
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        columns_backward(dweight->data, dy, sum, rstd, from, to);
    }
}
