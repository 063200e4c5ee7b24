/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

static void forward_row(float *restrict y, const float *restrict gate, const float *restrict up,
                        int64_t n, enum dt_activation activation)
{
#define FORWARD(NAME, name, fused, value, derivative)                                              \
    case DT_ACTIVATION_##NAME:                                                                     \
        for (int64_t j = 0; j < n; j++) {                                                          \
            float x = gate[j];                                                                     \
            y[j] = (value)*up[j];                                                                  \
        }                                                                                          \
        break;
    switch (activation) {
        DT_ACTIVATION_LIST(FORWARD)
    }
}

static void backward_row(float *restrict dgate, float *restrict dy, const float *restrict gate,
                         const float *restrict up, int64_t n, enum dt_activation activation)
{
#define BACKWARD(NAME, name, fused, value, derivative)                                             \
    case DT_ACTIVATION_##NAME:                                                                     \
        for (int64_t j = 0; j < n; j++) {                                                          \
            float x = gate[j], dout = dy[j];                                                       \
            dgate[j] = dout * up[j] * (derivative);                                                \
            dy[j] = dout * (value);                                                                \
        }                                                                                          \
        break;
    switch (activation) {
        DT_ACTIVATION_LIST(BACKWARD)
    }
}

void dt_cpu_gated_forward(struct dt_device *dev, struct dt_tensor *y, const struct dt_tensor *gate,
                          const struct dt_tensor *up, enum dt_activation activation)
{
    int64_t n = y->columns;
    assert(gate->columns == n && up->columns == n);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < y->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 3 * (size_t)n);
        float *to = dt_cpu_output(y, i, 0, scratch);
        forward_row(to, dt_cpu_load(gate, i, 0, n, scratch + n),
                    dt_cpu_load(up, i, 0, n, scratch + 2 * n), n, activation);
        dt_cpu_store(y, i, 0, n, to);
    }
}

void dt_cpu_gated_backward(struct dt_device *dev, struct dt_tensor *dgate, struct dt_tensor *dy,
                           const struct dt_tensor *gate, const struct dt_tensor *up,
                           enum dt_activation activation)
{
    int64_t n = dy->columns;
    assert(gate->columns == n && up->columns == n && dgate->columns == n);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < dy->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 4 * (size_t)n);
        float *to_gate = dt_cpu_output(dgate, i, 0, scratch);
        float *to_up = dt_cpu_output(dy, i, 0, scratch + n);
        dt_cpu_load(dy, i, 0, n, to_up);
        backward_row(to_gate, to_up, dt_cpu_load(gate, i, 0, n, scratch + 2 * n),
                     dt_cpu_load(up, i, 0, n, scratch + 3 * n), n, activation);
        dt_cpu_store(dgate, i, 0, n, to_gate);
        dt_cpu_store(dy, i, 0, n, to_up);
    }
}
