/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cpu/cpu.h"

void dt_cpu_copy(struct dt_device *dev, struct dt_tensor *to, const struct dt_tensor *from)
{
    assert(to->rows == from->rows && to->columns == from->columns);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < to->rows; i++)
        memcpy(dt_cpu_row(to, i), dt_cpu_row(from, i), (size_t)to->columns * sizeof(float));
}

void dt_cpu_zero(struct dt_device *dev, struct dt_tensor *x)
{
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++)
        memset(dt_cpu_row(x, i), 0, (size_t)x->columns * sizeof(float));
}
