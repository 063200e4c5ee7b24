/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

void dt_cpu_activate(float *y, const float *from, int64_t n, enum dt_activation activation)
{
#define FORWARD(NAME, name, fused, value, derivative)                                              \
    case DT_ACTIVATION_##NAME:                                                                     \
        _Pragma("omp simd") for (int64_t j = 0; j < n; j++)                                        \
        {                                                                                          \
            float x = from[j];                                                                     \
            y[j] = value;                                                                          \
        }                                                                                          \
        break;
    switch (activation) {
        DT_ACTIVATION_LIST(FORWARD)
    }
}

void dt_cpu_activate_backward(float *restrict dy, const float *restrict from, int64_t n,
                              enum dt_activation activation)
{
#define BACKWARD(NAME, name, fused, value, derivative)                                             \
    case DT_ACTIVATION_##NAME:                                                                     \
        for (int64_t j = 0; j < n; j++) {                                                          \
            float x = from[j];                                                                     \
            (void)x; /* unused if the derivative is constant */                                    \
            dy[j] *= derivative;                                                                   \
        }                                                                                          \
        break;
    switch (activation) {
        DT_ACTIVATION_LIST(BACKWARD)
    }
}

void dt_cpu_activation_forward(struct dt_device *dev, struct dt_tensor *y,
                               const struct dt_tensor *x, enum dt_activation activation)
{
    int64_t n = y->columns;
    assert(x->rows == y->rows && x->columns == n);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < y->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)n);
        float *to = dt_cpu_output(y, i, 0, scratch);
        dt_cpu_activate(to, dt_cpu_load(x, i, 0, n, scratch), n, activation);
        dt_cpu_store(y, i, 0, n, to);
    }
}

void dt_cpu_activation_backward(struct dt_device *dev, struct dt_tensor *dx,
                                const struct dt_tensor *x, enum dt_activation activation)
{
    int64_t n = dx->columns;
    assert(x->rows == dx->rows && x->columns == n);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * (size_t)n);
        float *to = dt_cpu_output(dx, i, 0, scratch);
        dt_cpu_load(dx, i, 0, n, to);
        dt_cpu_activate_backward(to, dt_cpu_load(x, i, 0, n, scratch + n), n, activation);
        dt_cpu_store(dx, i, 0, n, to);
    }
}
