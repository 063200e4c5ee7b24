/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "device/cpu/cpu.h"

static inline float sigmoid(float x)
{
    return 1.0f / (1.0f + dt_cpu_exp(-x));
}

static void forward_row(float *restrict y, const float *restrict gate, const float *restrict up,
                        int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        y[j] = gate[j] * sigmoid(gate[j]) * up[j];
}

static void backward_row(float *restrict dgate, float *restrict dy, const float *restrict gate,
                         const float *restrict up, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        float s = sigmoid(gate[j]), dout = dy[j];
        dgate[j] = dout * up[j] * s * (1.0f + gate[j] * (1.0f - s));
        dy[j] = dout * gate[j] * s;
    }
}

void dt_cpu_swiglu_forward(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *gate,
                           const struct dt_tensor *up)
{
    assert(gate->columns == y->columns && up->columns == y->columns);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < y->rows; i++)
        forward_row(dt_cpu_row(y, i), dt_cpu_row(gate, i), dt_cpu_row(up, i), y->columns);
}

void dt_cpu_swiglu_backward(struct dt_device *dev, struct dt_tensor *dgate, struct dt_tensor *dy,
                            const struct dt_tensor *gate, const struct dt_tensor *up)
{
    assert(gate->columns == dy->columns && up->columns == dy->columns);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < dy->rows; i++)
        backward_row(dt_cpu_row(dgate, i), dt_cpu_row(dy, i), dt_cpu_row(gate, i),
                     dt_cpu_row(up, i), dy->columns);
}
