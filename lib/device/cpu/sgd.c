/* SPDX-License-Identifier: MIT */
#include "device/cpu/cpu.h"

#define BLOCK 16384

static void update(float *restrict p, float *restrict momentum, const float *restrict gradients,
                   int64_t n, const struct dt_sgd *how)
{
    const float rate = how->learning_rate, decay = how->momentum, scale = how->gradient_scale;
    const float keep = 1.0f - how->learning_rate * how->weight_decay;
    for (int64_t i = 0; i < n; i++) {
        momentum[i] = decay * momentum[i] + gradients[i] * scale;
        p[i] = p[i] * keep - rate * momentum[i];
    }
}

void dt_cpu_sgd(struct dt_device *dev, float *parameters, float *momentum, const float *gradients,
                int64_t n, const struct dt_sgd *how)
{
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t from = 0; from < n; from += BLOCK) {
        int64_t size = n - from < BLOCK ? n - from : BLOCK;
        update(parameters + from, momentum + from, gradients + from, size, how);
    }
}
