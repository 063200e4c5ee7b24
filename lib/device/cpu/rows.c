/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cpu/cpu.h"

static char *row_of(const struct dt_tensor *x, int64_t row)
{
    return (char *)x->data + (size_t)(row * x->stride) * dt_dtype_size(x->dtype);
}

void dt_cpu_gather(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *x,
                   const int32_t *rows)
{
    size_t size = (size_t)y->columns * dt_dtype_size(y->dtype);
    assert(y->columns == x->columns && y->dtype == x->dtype);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < y->rows; r++) {
        assert(rows[r] >= 0 && rows[r] < x->rows);
        memcpy(row_of(y, r), row_of(x, rows[r]), size);
    }
}

void dt_cpu_scatter(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *x,
                    const int32_t *rows)
{
    size_t size = (size_t)y->columns * dt_dtype_size(y->dtype);
    assert(y->columns == x->columns && y->dtype == x->dtype);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < x->rows; r++) {
        assert(rows[r] >= 0 && rows[r] < y->rows);
        memcpy(row_of(y, rows[r]), row_of(x, r), size);
    }
}
