/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

#define BLOCK 4096 /* elements of a row per loop iteration */

static void copy_elements(const struct dt_tensor *to, const struct dt_tensor *from, int64_t row,
                          int64_t column, int64_t n, float *scratch)
{
    if (to->dtype == from->dtype)
        memcpy(dt_cpu_at(to, row, column), dt_cpu_at(from, row, column),
               (size_t)n * dt_dtype_size(to->dtype));
    else if (to->dtype == DT_DTYPE_F32)
        dt_cpu_widen(dt_cpu_at(to, row, column), from->dtype, dt_cpu_at(from, row, column), n);
    else
        dt_cpu_store(to, row, column, n, dt_cpu_load(from, row, column, n, scratch));
}

void dt_cpu_copy(struct dt_device *dev, struct dt_tensor *to, const struct dt_tensor *from)
{
    assert(to->rows == from->rows && to->columns == from->columns);
    int64_t blocks = (to->columns + BLOCK - 1) / BLOCK;
    bool large = to->rows * to->columns > DT_CPU_SMALL_WORK;
#pragma omp parallel for num_threads(dev->threads) schedule(static) if (large)
    for (int64_t i = 0; i < to->rows * blocks; i++) {
        int64_t column = i % blocks * BLOCK, left = to->columns - column;
        copy_elements(to, from, i / blocks, column, left < BLOCK ? left : BLOCK,
                      dt_cpu_scratch(dev, omp_get_thread_num(), BLOCK));
    }
}

void dt_cpu_zero(struct dt_device *dev, struct dt_tensor *x)
{
    int64_t blocks = (x->columns + BLOCK - 1) / BLOCK;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows * blocks; i++) {
        int64_t column = i % blocks * BLOCK, left = x->columns - column;
        memset(dt_cpu_at(x, i / blocks, column), 0,
               (size_t)(left < BLOCK ? left : BLOCK) * dt_dtype_size(x->dtype));
    }
}
