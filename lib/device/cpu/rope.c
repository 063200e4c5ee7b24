/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

/* One head of one row: rotates pairs of channels j and half + j. */
static void rotate(float *restrict x, const float *restrict table, int64_t half, float direction)
{
    for (int64_t j = 0; j < half; j++) {
        float a = x[j], b = x[half + j];
        float cosine = table[j], sine = direction * table[half + j];
        x[j] = DT_FMA(a, cosine, -(b * sine));
        x[half + j] = DT_FMA(b, cosine, a * sine);
    }
}

void dt_cpu_rope(struct dt_device *dev, struct dt_tensor *x, const struct dt_tensor *table,
                 int64_t head_dim, int64_t length, int64_t past, bool inverse)
{
    int64_t size = table->columns, n = x->columns;
    assert(size % 2 == 0 && size <= head_dim && n % head_dim == 0 && past + length <= table->rows);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < x->rows; r++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(n + size));
        const float *angles = dt_cpu_load(table, past + r % length, 0, size, scratch + n);
        float *row = dt_cpu_output(x, r, 0, scratch);
        dt_cpu_load(x, r, 0, n, row);
        for (int64_t j = 0; j < n; j += head_dim)
            rotate(row + j, angles, size / 2, inverse ? -1.0f : 1.0f);
        dt_cpu_store(x, r, 0, n, row);
    }
}
