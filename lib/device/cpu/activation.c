/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <omp.h>

#include "device/cpu/cpu.h"

/* GELU, tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel 2016). */
static inline float gelu_inner(float x)
{
    return 0.7978845608f * (x + 0.044715f * x * x * x);
}

static inline float gelu_tanh(float x)
{
    return 0.5f * x * (1.0f + dt_cpu_tanh(gelu_inner(x)));
}

static inline float gelu_tanh_slope(float x)
{
    float t = dt_cpu_tanh(gelu_inner(x));
    float inner_slope = 0.7978845608f * (1.0f + 3.0f * 0.044715f * x * x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner_slope;
}

/* Its exact form: x times the normal distribution's function, whose slope is the density. */
static inline float normal_distribution(float x)
{
    return 0.5f + 0.5f * dt_cpu_erf(0.7071067812f * x);
}

static inline float gelu_erf(float x)
{
    return x * normal_distribution(x);
}

static inline float gelu_erf_slope(float x)
{
    return normal_distribution(x) + 0.3989422804f * x * dt_cpu_exp(-0.5f * x * x);
}

void dt_cpu_activate(float *y, const float *x, int64_t n, enum dt_activation activation)
{
    switch (activation) {
    case DT_ACTIVATION_NONE:
        memmove(y, x, (size_t)n * sizeof *y);
        break;
    case DT_ACTIVATION_GELU_TANH:
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = gelu_tanh(x[j]);
        break;
    case DT_ACTIVATION_GELU_ERF:
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            y[j] = gelu_erf(x[j]);
        break;
    }
}

void dt_cpu_activate_backward(float *restrict dy, const float *restrict x, int64_t n,
                              enum dt_activation activation)
{
    if (activation == DT_ACTIVATION_GELU_TANH)
        for (int64_t j = 0; j < n; j++)
            dy[j] *= gelu_tanh_slope(x[j]);
    else if (activation == DT_ACTIVATION_GELU_ERF)
        for (int64_t j = 0; j < n; j++)
            dy[j] *= gelu_erf_slope(x[j]);
}

void dt_cpu_activation_forward(struct dt_device *dev, struct dt_tensor *y,
                               const struct dt_tensor *x, enum dt_activation activation)
{
    int64_t n = y->columns;
    assert(x->rows == y->rows && x->columns == n);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < y->rows; i++) {
        float *room = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)n);
        float *to = dt_cpu_place(y, i, 0, room);
        dt_cpu_activate(to, dt_cpu_load(x, i, 0, n, room), n, activation);
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
        float *room = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * (size_t)n);
        float *to = dt_cpu_place(dx, i, 0, room);
        dt_cpu_load(dx, i, 0, n, to);
        dt_cpu_activate_backward(to, dt_cpu_load(x, i, 0, n, room + n), n, activation);
        dt_cpu_store(dx, i, 0, n, to);
    }
}
