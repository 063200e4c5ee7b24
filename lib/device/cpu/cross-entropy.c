/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>

#include "device/cpu/cpu.h"

static float row_maximum(const float *x, int64_t n)
{
    float most = x[0];
#pragma omp simd reduction(max : most)
    for (int64_t j = 0; j < n; j++)
        most = x[j] > most ? x[j] : most;
    return most;
}

/* One row: the loss; with a scale, the row becomes (softmax - onehot) * scale. */
static float row_loss(float *restrict x, int64_t n, int32_t target, float scale)
{
    float most = row_maximum(x, n), sum = 0;
    float at_target = x[target];
    if (scale == 0) {
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; j++)
            sum += dt_cpu_exp(x[j] - most);
    } else {
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < n; j++) {
            x[j] = dt_cpu_exp(x[j] - most);
            sum += x[j];
        }
        float factor = scale / sum;
        for (int64_t j = 0; j < n; j++)
            x[j] *= factor;
        x[target] -= scale;
    }
    return logf(sum) + (most - at_target);
}

void dt_cpu_cross_entropy(struct dt_device *dev, float *losses, float *hits,
                          struct dt_tensor *logits, const int32_t *targets,
                          const struct dt_cross_entropy *how)
{
    float scale = how->scale;
    assert(hits == NULL);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < logits->rows; i++) {
        float *row = dt_cpu_row(logits, i);
        assert(targets[i] < logits->columns);
        if (targets[i] >= 0) {
            losses[i] = row_loss(row, logits->columns, targets[i], scale);
        } else {
            losses[i] = 0;
            if (scale != 0)
                memset(row, 0, (size_t)logits->columns * sizeof *row);
        }
    }
}
