/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "device/cpu/cpu.h"

#define BLOCK 16384

static void update(float *restrict p, float *restrict m, float *restrict v,
                   const float *restrict gradients, int64_t n, const struct dt_adamw *how)
{
    const float b1 = how->beta1, b2 = how->beta2, scale = how->gradient_scale;
    const float rate = how->learning_rate / how->correction1;
    const float root = 1.0f / sqrtf(how->correction2);
    const float keep = 1.0f - how->learning_rate * how->weight_decay;
    const float epsilon = how->epsilon;
    for (int64_t i = 0; i < n; i++) {
        float g = gradients[i] * scale;
        m[i] = b1 * m[i] + (1.0f - b1) * g;
        v[i] = b2 * v[i] + (1.0f - b2) * g * g;
        p[i] = p[i] * keep - rate * m[i] / (sqrtf(v[i]) * root + epsilon);
    }
}

void dt_cpu_adamw(struct dt_device *dev, float *parameters, float *m, float *v,
                  const float *gradients, int64_t n, const struct dt_adamw *how)
{
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t from = 0; from < n; from += BLOCK) {
        int64_t size = n - from < BLOCK ? n - from : BLOCK;
        update(parameters + from, m + from, v + from, gradients + from, size, how);
    }
}
