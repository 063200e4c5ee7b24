/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cpu/cpu.h"

/* One head of one row: half points of the plane. */
static void turn(float *restrict x, const float *restrict turns, int64_t half, float direction)
{
    for (int64_t j = 0; j < half; j++) {
        float a = x[j], b = x[half + j];
        float cosine = turns[j], sine = direction * turns[half + j];
        x[j] = a * cosine - b * sine;
        x[half + j] = b * cosine + a * sine;
    }
}

void dt_cpu_rope(struct dt_device *dev, struct dt_tensor *x, const struct dt_tensor *turns,
                 int64_t length, int64_t past, bool inverse)
{
    int64_t size = turns->columns;
    assert(size % 2 == 0 && x->columns % size == 0 && past + length <= turns->rows);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < x->rows; r++) {
        float *row = dt_cpu_row(x, r);
        for (int64_t j = 0; j < x->columns; j += size)
            turn(row + j, dt_cpu_row(turns, past + r % length), size / 2, inverse ? -1.0f : 1.0f);
    }
}
