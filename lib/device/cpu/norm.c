/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/partial-sums.h"

const float *dt_cpu_sum_row(const struct dt_tensor *sum, const struct dt_tensor *x,
                            const struct dt_tensor *add, int64_t row, float *scratch)
{
    int64_t n = x->columns;
    const float *from = dt_cpu_load(x, row, 0, n, scratch);
    if (add) {
        const float *more = dt_cpu_load(add, row, 0, n, scratch + n);
        float *to = dt_cpu_output(sum, row, 0, scratch);
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            to[j] = from[j] + more[j];
        from = to;
    }
    if (add || sum->data != x->data)
        dt_cpu_store(sum, row, 0, n, from);
    return dt_cpu_load(sum, row, 0, n, scratch);
}

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
#pragma omp parallel num_threads(dev->threads) if (x->rows * n > DT_CPU_SMALL_WORK)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 4 * (size_t)n);
        const float *w = dt_cpu_load(weight, 0, 0, n, scratch + 2 * n);
        const float *b = dt_cpu_load(bias, 0, 0, n, scratch + 3 * n);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < x->rows; i++) {
            const float *row = dt_cpu_sum_row(sum, x, add, i, scratch);
            float *to = dt_cpu_output(y, i, 0, scratch + n), *s = dt_cpu_row(stats, i);
            mean_and_rstd(row, n, epsilon, s);
            scale_row(to, row, w, b, s, n);
            dt_cpu_store(y, i, 0, n, to);
        }
    }
}

/* With g = dy * weight and xhat = (x - mean) * rstd:
 *     dx += rstd * (g - mean(g) - xhat * mean(g * xhat)), dweight += dy * xhat, dbias += dy */
static void row_backward(float *restrict dx, float *restrict dweight, float *restrict dbias,
                         const float *restrict dy, const float *restrict x,
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
        dweight[j] += dy[j] * xhat;
        dbias[j] += dy[j];
    }
}

struct backward {
    const struct dt_tensor *dsum, *dy, *sum, *stats;
    const float *weight;
};

/* Row i. sums: of dweight, then of dbias; scratch: three rows. */
static void tensor_row_backward(const struct backward *w, int64_t i, float *sums, float *scratch)
{
    int64_t n = w->dy->columns;
    float *dx = dt_cpu_output(w->dsum, i, 0, scratch);
    dt_cpu_load(w->dsum, i, 0, n, dx);
    row_backward(dx, sums, sums + n, dt_cpu_load(w->dy, i, 0, n, scratch + n),
                 dt_cpu_load(w->sum, i, 0, n, scratch + 2 * n), w->weight, dt_cpu_row(w->stats, i),
                 n);
    dt_cpu_store(w->dsum, i, 0, n, dx);
}

void dt_cpu_norm_backward(struct dt_device *dev, struct dt_tensor *dsum, struct dt_tensor *dweight,
                          struct dt_tensor *dbias, const struct dt_tensor *dy,
                          const struct dt_tensor *sum, const struct dt_tensor *weight,
                          const struct dt_tensor *stats, int row_parts)
{
    (void)row_parts;
    int64_t n = dy->columns;
    assert(dsum->columns == n && sum->columns == n && dweight->columns == n);
    const struct dt_cpu_partial_sums sums = dt_cpu_partial_sums(dev, dy->rows, 2 * n);
#pragma omp parallel num_threads(dev->threads)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 4 * (size_t)n);
        const struct backward w = {dsum, dy, sum, stats, dt_cpu_load(weight, 0, 0, n, scratch)};
#pragma omp for schedule(static)
        for (int64_t block = 0; block < sums.blocks; block++) {
            float *of_block = dt_cpu_open_block(&sums, block);
            int64_t end = (block + 1) * sums.block_rows;
            for (int64_t i = block * sums.block_rows; i < end && i < dy->rows; i++)
                tensor_row_backward(&w, i, of_block, scratch + n);
        }
        int64_t from, to;
        dt_cpu_share(n, 1, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        dt_cpu_add_blocks(&sums, from, to, dt_cpu_row(dweight, 0) + from);
        dt_cpu_add_blocks(&sums, n + from, n + to, dt_cpu_row(dbias, 0) + from);
    }
}
