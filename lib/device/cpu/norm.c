/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define COLUMN_UNIT 64

static void mean_and_rstd(const float *x, int64_t n, float epsilon, float stats[2])
{
    float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++)
        sum += x[j];
    float mean = sum / (float)n;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < n; j++)
        squares += (x[j] - mean) * (x[j] - mean);
    stats[0] = mean;
    stats[1] = 1.0f / sqrtf(squares / (float)n + epsilon);
}

static void scale_row(float *restrict y, const float *restrict x, const float *restrict weight,
                      const float *restrict bias, const float stats[2], int64_t n)
{
    float mean = stats[0], rstd = stats[1];
    for (int64_t j = 0; j < n; j++)
        y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
}

void dt_cpu_norm_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *stats,
                         struct dt_tensor *sum, const struct dt_tensor *x,
                         const struct dt_tensor *add, const struct dt_tensor *weight,
                         const struct dt_tensor *bias, float epsilon)
{
    int64_t n = x->columns;
    assert(y->columns == n && sum->columns == n && weight->columns == n && stats->columns == 2);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++) {
        float *to = dt_cpu_sum_row(sum, x, add, i), *s = dt_cpu_row(stats, i);
        mean_and_rstd(to, n, epsilon, s);
        scale_row(dt_cpu_row(y, i), to, weight->data, bias->data, s, n);
    }
}

/* dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) with g = dy * weight. */
static void row_backward(float *restrict dx, const float *restrict dy, const float *restrict x,
                         const float *restrict weight, const float stats[2], int64_t n)
{
    float mean = stats[0], rstd = stats[1], g_sum = 0, gx_sum = 0;
#pragma omp simd reduction(+ : g_sum, gx_sum)
    for (int64_t j = 0; j < n; j++) {
        float g = dy[j] * weight[j];
        g_sum += g;
        gx_sum += g * (x[j] - mean) * rstd;
    }
    float g_mean = g_sum / (float)n, gx_mean = gx_sum / (float)n;
    for (int64_t j = 0; j < n; j++) {
        float xhat = (x[j] - mean) * rstd;
        dx[j] += rstd * (dy[j] * weight[j] - g_mean - xhat * gx_mean);
    }
}

static void columns_backward(struct dt_tensor *dweight, struct dt_tensor *dbias,
                             const struct dt_tensor *dy, const struct dt_tensor *sum,
                             const struct dt_tensor *stats, int64_t from, int64_t to)
{
    float *restrict dw = dweight->data, *restrict db = dbias->data;
    for (int64_t i = 0; i < dy->rows; i++) {
        const float *restrict g = dt_cpu_row(dy, i), *restrict x = dt_cpu_row(sum, i);
        float mean = dt_cpu_row(stats, i)[0], rstd = dt_cpu_row(stats, i)[1];
        for (int64_t j = from; j < to; j++) {
            dw[j] += g[j] * (x[j] - mean) * rstd;
            db[j] += g[j];
        }
    }
}

void dt_cpu_norm_backward(struct dt_device *dev, struct dt_tensor *dsum, struct dt_tensor *dweight,
                          struct dt_tensor *dbias, const struct dt_tensor *dy,
                          const struct dt_tensor *sum, const struct dt_tensor *weight,
                          const struct dt_tensor *stats)
{
    int64_t n = dy->columns;
    assert(dsum->columns == n && sum->columns == n && dweight->columns == n);
#pragma omp parallel num_threads(dev->threads)
    {
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < dy->rows; i++)
            row_backward(dt_cpu_row(dsum, i), dt_cpu_row(dy, i), dt_cpu_row(sum, i), weight->data,
                         dt_cpu_row(stats, i), n);
        int64_t from, to;
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        columns_backward(dweight, dbias, dy, sum, stats, from, to);
    }
}
