/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define BLOCK 4096 /* columns per loop iteration: parameters are one long row */

/* x may be y. */
static void combine_block(float *y, float b, const float *x, float a, int64_t n)
{
    if (b == 0) { /* y may be uninitialized, even NaN */
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = a * x[j];
        return;
    }
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        y[j] = DT_FMA(a, x[j], b * y[j]);
}

void dt_cpu_combine(struct dt_device *dev, struct dt_tensor *y, float b, const struct dt_tensor *x,
                    float a)
{
    assert(x->rows == y->rows && x->columns == y->columns);
    int64_t blocks = (y->columns + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < y->rows * blocks; i++) {
        int64_t row = i / blocks, from = i % blocks * BLOCK;
        int64_t size = y->columns - from < BLOCK ? y->columns - from : BLOCK;
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * BLOCK);
        float *sum = dt_cpu_output(y, row, from, scratch);
        if (b != 0)
            dt_cpu_load(y, row, from, size, scratch);
        combine_block(sum, b, dt_cpu_load(x, row, from, size, scratch + BLOCK), a, size);
        dt_cpu_store(y, row, from, size, sum);
    }
}
