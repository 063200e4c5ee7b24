/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/lanes.h"
#include "device/cpu/sums-over-rows.h"

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

static inline void add_values(dt_cpu_vector *sums, const dt_cpu_vector *x, const float *none)
{
    (void)none;
    sums[0] += x[0];
}

static inline void add_squares(dt_cpu_vector *sums, const dt_cpu_vector *x, const float *mean)
{
    dt_cpu_vector difference = x[0] - mean[0];
    sums[0] = dt_cpu_vector_fma(difference, difference, sums[0]);
}

static void mean_and_rstd(const float *x, int64_t n, float epsilon, float stats[2])
{
    float mean = dt_cpu_lanes_sum(add_values, &x, 1, NULL, n).sum[0] / (float)n;
    float squares = dt_cpu_lanes_sum(add_squares, &x, 1, &mean, n).sum[0];
    stats[0] = mean;
    stats[1] = 1.0f / sqrtf(squares / (float)n + epsilon);
}

static void scale_row(float *restrict y, const float *restrict x, const float *restrict weight,
                      const float *restrict bias, const float stats[2], int64_t n)
{
    float mean = stats[0], rstd = stats[1];
    for (int64_t j = 0; j < n; j++)
        y[j] = DT_FMA((x[j] - mean) * rstd, weight[j], bias[j]);
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

/* Of rows dy, weight and x: the sums of g = dy * weight, and of g * xhat. */
static inline void add_gradients(dt_cpu_vector *sums, const dt_cpu_vector *row, const float *stats)
{
    dt_cpu_vector g = row[0] * row[1];
    sums[0] += g;
    sums[1] = dt_cpu_vector_fma(g, (row[2] - stats[0]) * stats[1], sums[1]);
}

/* With xhat = (x - mean) * rstd:
 *     dx += rstd * (g - mean(g) - xhat * mean(g * xhat)), dweight += dy * xhat, dbias += dy */
static void row_backward(float *restrict dx, float *restrict dweight, float *restrict dbias,
                         const float *restrict dy, const float *restrict x,
                         const float *restrict weight, const float stats[2], int64_t n)
{
    struct dt_cpu_row_sums g =
        dt_cpu_lanes_sum(add_gradients, (const float *[]){dy, weight, x}, 3, stats, n);
    float mean = stats[0], rstd = stats[1];
    float g_mean = g.sum[0] / (float)n, gx_mean = g.sum[1] / (float)n;
    for (int64_t j = 0; j < n; j++) {
        float xhat = (x[j] - mean) * rstd;
        dx[j] = DT_FMA(rstd, DT_FMA(-xhat, gx_mean, dy[j] * weight[j] - g_mean), dx[j]);
        dweight[j] = DT_FMA(dy[j], xhat, dweight[j]);
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
                          const struct dt_tensor *stats, int parts)
{
    int64_t n = dy->columns;
    assert(dsum->columns == n && sum->columns == n && dweight->columns == n);
    const struct dt_cpu_sums_over_rows sums = dt_cpu_sums_over_rows(dev, dy->rows, parts, 2 * n);
#pragma omp parallel num_threads(dev->threads)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 4 * (size_t)n);
        const struct backward w = {dsum, dy, sum, stats, dt_cpu_load(weight, 0, 0, n, scratch)};
#pragma omp for schedule(static)
        for (int64_t block = 0; block < dt_cpu_count_blocks(&sums); block++) {
            int64_t from, to;
            float *of_block = dt_cpu_open_block(&sums, block, &from, &to);
            for (int64_t i = from; i < to; i++)
                tensor_row_backward(&w, i, of_block, scratch + n);
        }
        int64_t from, to;
        dt_cpu_share(n, 1, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        dt_cpu_add_blocks(&sums, from, to, dt_cpu_row(dweight, 0) + from);
        dt_cpu_add_blocks(&sums, n + from, n + to, dt_cpu_row(dbias, 0) + from);
    }
}
