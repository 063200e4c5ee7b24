/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

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
    int64_t size = turns->columns, n = x->columns;
    assert(size % 2 == 0 && n % size == 0 && past + length <= turns->rows);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t r = 0; r < x->rows; r++) {
        float *room = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(n + size));
        const float *angles = dt_cpu_load(turns, past + r % length, 0, size, room + n);
        float *row = dt_cpu_place(x, r, 0, room);
        dt_cpu_load(x, r, 0, n, row);
        for (int64_t j = 0; j < n; j += size)
            turn(row + j, angles, size / 2, inverse ? -1.0f : 1.0f);
        dt_cpu_store(x, r, 0, n, row);
    }
}
