/* SPDX-License-Identifier: MIT */
/* Sums whose order follows from the shape alone. */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"
#include "device/cpu/sums-over-rows.h"

#define BLOCK        8192 /* floats whose sum is one fp64 partial sum */
#define COLUMN_UNIT  64
#define STRIP        1024 /* columns of a block of rows that a thread adds at once */
#define MOST_PARTIAL 1024

void dt_cpu_bias_backward(struct dt_device *dev, struct dt_tensor *dbias,
                          const struct dt_tensor *dy, int parts)
{
    assert(dbias->columns == dy->columns);
    int64_t n = dy->columns, strips = (n + STRIP - 1) / STRIP;
    const struct dt_cpu_sums_over_rows sums = dt_cpu_sums_over_rows(dev, dy->rows, parts, n);
#pragma omp parallel num_threads(dev->threads)
    {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), STRIP);
        int64_t from, to;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < dt_cpu_count_blocks(&sums) * strips; i++) {
            int64_t first = i % strips * STRIP, width = n - first < STRIP ? n - first : STRIP;
            float *sum = dt_cpu_find_block(&sums, i / strips, &from, &to) + first;
            memset(sum, 0, (size_t)width * sizeof *sum);
            for (int64_t row = from; row < to; row++)
                dt_cpu_add_row(sum, dt_cpu_load(dy, row, first, width, scratch), width);
        }
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        dt_cpu_add_blocks(&sums, from, to, dt_cpu_row(dbias, 0) + from);
    }
}

static double block_sum(const float *x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    return sum;
}

static double block_sum_squares(const float *x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

/* Partial sums of blocks, then their sum in block order; MOST_PARTIAL at a time, so that they fit
 * on the stack. */
static double sum_blocks(struct dt_device *dev, double (*sum)(const float *, int64_t),
                         const float *x, int64_t n)
{
    double total = 0, partial[MOST_PARTIAL];
    for (int64_t base = 0; base < n; base += (int64_t)BLOCK * MOST_PARTIAL) {
        int64_t left = n - base, blocks = (left + BLOCK - 1) / BLOCK;
        blocks = blocks < MOST_PARTIAL ? blocks : MOST_PARTIAL;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
        for (int64_t b = 0; b < blocks; b++) {
            int64_t from = b * BLOCK, size = left - from < BLOCK ? left - from : BLOCK;
            partial[b] = sum(x + base + from, size);
        }
        for (int64_t b = 0; b < blocks; b++)
            total += partial[b];
    }
    return total;
}

void dt_cpu_sum(struct dt_device *dev, double *sum, const float *x, int64_t n)
{
    *sum = sum_blocks(dev, block_sum, x, n);
}

double dt_cpu_sum_squares(struct dt_device *dev, const float *x, int64_t n)
{
    return sum_blocks(dev, block_sum_squares, x, n);
}

void dt_cpu_square_blocks(struct dt_device *dev, double *sums, const float *x, int64_t n,
                          int64_t block)
{
    for (int64_t first = 0; first < n; first += block)
        *sums++ =
            sum_blocks(dev, block_sum_squares, x + first, n - first < block ? n - first : block);
}
