/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/lanes.h"
#include "device/cpu/sums-over-rows.h"

static inline void add_squares(dt_cpu_vector *sums, const dt_cpu_vector *x, const float *none)
{
    (void)none;
    sums[0] = dt_cpu_vector_fma(x[0], x[0], sums[0]);
}

static float reciprocal_rms(const float *x, int64_t n, float epsilon)
{
    float squares = dt_cpu_lanes_sum(add_squares, &x, 1, NULL, n).sum[0];
    return 1.0f / sqrtf(squares / (float)n + epsilon);
}

static void scale_row(float *restrict y, const float *restrict x, const float *restrict weight,
                      float rstd, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        y[j] = x[j] * rstd * weight[j];
}

/* The factors of a row: offset + weight. scratch: weight->columns floats. */
static const float *load_factors(const struct dt_tensor *weight, float offset, float *scratch)
{
    const float *w = dt_cpu_load(weight, 0, 0, weight->columns, scratch);
    if (offset == 0)
        return w;
    for (int64_t j = 0; j < weight->columns; j++)
        scratch[j] = offset + w[j];
    return scratch;
}

void dt_cpu_rms_norm_forward(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *rstd,
                             struct dt_tensor *sum, const struct dt_tensor *x,
                             const struct dt_tensor *add, const struct dt_tensor *weight,
                             float weight_offset, float epsilon)
{
    int64_t n = weight->columns, groups = x->columns / n;
    assert(groups * n == x->columns && rstd->columns == groups);
    assert(y->columns == x->columns && sum->columns == x->columns);
#pragma omp parallel num_threads(dev->threads)
    {
        float *scratch =
            dt_cpu_scratch(dev, omp_get_thread_num(), 3 * (size_t)x->columns + (size_t)n);
        const float *w = load_factors(weight, weight_offset, scratch + 3 * x->columns);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < x->rows; i++) {
            const float *row = dt_cpu_sum_row(sum, x, add, i, scratch);
            float *to = dt_cpu_output(y, i, 0, scratch + 2 * x->columns), *r = dt_cpu_row(rstd, i);
            for (int64_t g = 0; g < groups; g++) {
                r[g] = reciprocal_rms(row + g * n, n, epsilon);
                scale_row(to + g * n, row + g * n, w, r[g], n);
            }
            dt_cpu_store(y, i, 0, x->columns, to);
        }
    }
}

/* Of rows dy, weight and x: the sum of g * x, where g = dy * weight. */
static inline void add_gradients(dt_cpu_vector *sums, const dt_cpu_vector *row, const float *none)
{
    (void)none;
    sums[0] = dt_cpu_vector_fma(row[0] * row[1], row[2], sums[0]);
}

/* With xhat = x * rstd:
 *     dx += rstd * (g - xhat * mean(g * xhat)), dweight += dy * xhat */
static void row_backward(float *restrict dx, float *restrict dweight, const float *restrict dy,
                         const float *restrict x, const float *restrict weight, float rstd,
                         int64_t n)
{
    const float *rows[] = {dy, weight, x};
    float mean = dt_cpu_lanes_sum(add_gradients, rows, 3, NULL, n).sum[0] * rstd / (float)n;
    for (int64_t j = 0; j < n; j++) {
        float xhat = x[j] * rstd;
        dx[j] = DT_FMA(rstd, DT_FMA(-xhat, mean, dy[j] * weight[j]), dx[j]);
        dweight[j] = DT_FMA(dy[j], xhat, dweight[j]);
    }
}

struct backward {
    const struct dt_tensor *dsum, *dy, *sum, *rstd;
    const float *factors;
};

/* Row i. sums: of dweight, of each group separately; scratch: three rows. */
static void tensor_row_backward(const struct backward *w, int64_t i, float *sums, float *scratch)
{
    int64_t columns = w->dy->columns, n = columns / w->rstd->columns;
    float *dx = dt_cpu_output(w->dsum, i, 0, scratch);
    const float *dy = dt_cpu_load(w->dy, i, 0, columns, scratch + columns);
    const float *x = dt_cpu_load(w->sum, i, 0, columns, scratch + 2 * columns);
    dt_cpu_load(w->dsum, i, 0, columns, dx);
    for (int64_t g = 0; g < w->rstd->columns; g++)
        row_backward(dx + g * n, sums + g * n, dy + g * n, x + g * n, w->factors,
                     dt_cpu_row(w->rstd, i)[g], n);
    dt_cpu_store(w->dsum, i, 0, columns, dx);
}

void dt_cpu_rms_norm_backward(struct dt_device *dev, struct dt_tensor *dsum,
                              struct dt_tensor *dweight, const struct dt_tensor *dy,
                              const struct dt_tensor *sum, const struct dt_tensor *weight,
                              float weight_offset, const struct dt_tensor *rstd, int parts)
{
    int64_t n = weight->columns, columns = dy->columns;
    assert(columns == n * rstd->columns && dweight->columns == n);
    assert(dsum->columns == columns && sum->columns == columns);
    const struct dt_cpu_sums_over_rows sums = dt_cpu_sums_over_rows(dev, dy->rows, parts, columns);
#pragma omp parallel num_threads(dev->threads)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(3 * columns + n));
        const struct backward w = {dsum, dy, sum, rstd,
                                   load_factors(weight, weight_offset, scratch + 3 * columns)};
#pragma omp for schedule(static)
        for (int64_t block = 0; block < dt_cpu_count_blocks(&sums); block++) {
            int64_t from, to;
            float *of_block = dt_cpu_open_block(&sums, block, &from, &to);
            for (int64_t i = from; i < to; i++)
                tensor_row_backward(&w, i, of_block, scratch);
        }
        int64_t from, to;
        dt_cpu_share(n, 1, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        for (int64_t g = 0; g < columns; g += n)
            dt_cpu_sum_blocks(&sums, g + from, g + to);
        dt_cpu_add_tree(sums.sums + from, n, columns / n, to - from);
        dt_cpu_add_row(dt_cpu_row(dweight, 0) + from, sums.sums + from, to - from);
    }
}
