/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "device/cpu/cpu.h"

static float row_maximum(const float *x, int64_t n)
{
    float highest = x[0];
#pragma omp simd reduction(max : highest)
    for (int64_t j = 0; j < n; j++)
        highest = x[j] > highest ? x[j] : highest;
    return highest;
}

static float is_first_maximum(const float *x, int32_t target, float highest)
{
    int32_t before = 0;
    for (int32_t j = 0; j < target; j++)
        before += x[j] == highest;
    return x[target] == highest && before == 0 ? 1.0f : 0.0f;
}

static float exp_sum(const float *x, int64_t n, float highest)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++)
        sum += dt_device_exp(x[j] - highest);
    return sum;
}

/* The sum of highest - x. */
static float sum_below(const float *x, int64_t n, float highest)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++)
        sum += highest - x[j];
    return sum;
}

/* Turns x into e^(x - highest) and returns their sum. */
static float exponentiate(float *x, int64_t n, float highest)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) {
        x[j] = dt_device_exp(x[j] - highest);
        sum += x[j];
    }
    return sum;
}

/* The loss of one row, whose highest logit is highest; if scale is not 0, x becomes its gradient.
 * With p = softmax(x), L = log(sum exp x), label smoothing s and z-loss z:
 *
 *     loss = L - (1 - s) x[target] - s mean(x) + z L^2
 *     dloss/dx[j] = p[j] (1 + 2 z L) - s/n - (1 - s) [j is the target]
 */
static float row_loss(float *x, int64_t n, int32_t target, float highest,
                      const struct dt_cross_entropy *how)
{
    float smoothing = how->label_smoothing;
    float below = (1.0f - smoothing) * (highest - x[target]);
    if (smoothing != 0)
        below += smoothing * (sum_below(x, n, highest) / (float)n);
    float sum = how->scale == 0 ? exp_sum(x, n, highest) : exponentiate(x, n, highest);
    float log_sum = dt_device_log(sum) + highest;
    if (how->scale != 0) {
        float factor = how->scale * (1.0f + 2.0f * how->z_loss * log_sum) / sum;
        float spread = how->scale * smoothing / (float)n;
        for (int64_t j = 0; j < n; j++)
            x[j] = x[j] * factor - spread;
        x[target] -= how->scale * (1.0f - smoothing);
    }
    return dt_device_log(sum) + below + how->z_loss * log_sum * log_sum;
}

void dt_cpu_cross_entropy(struct dt_device *dev, float *losses, float *hits,
                          struct dt_tensor *logits, const int32_t *targets,
                          const struct dt_cross_entropy *how)
{
    int64_t n = logits->columns;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < logits->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)n);
        float *row = dt_cpu_output(logits, i, 0, scratch);
        int32_t target = targets[i];
        assert(target < n);
        dt_cpu_load(logits, i, 0, n, row);
        float highest = row_maximum(row, n);
        if (hits)
            hits[i] = target < 0 ? 0 : is_first_maximum(row, target, highest);
        losses[i] = target < 0 ? 0 : row_loss(row, n, target, highest, how);
        if (target < 0 && how->scale != 0)
            memset(row, 0, (size_t)n * sizeof *row);
        if (how->scale != 0)
            dt_cpu_store(logits, i, 0, n, row);
    }
}

/* A row of DT_LOGIT_SUMS. */
struct sums {
    float columns, highest, sum, below, target, is_first;
};

static struct sums row_sums(const float *x, int64_t n, int32_t target)
{
    float highest = row_maximum(x, n);
    bool there = target >= 0 && target < n;
    return (struct sums){.columns = (float)n,
                         .highest = highest,
                         .sum = exp_sum(x, n, highest),
                         .below = sum_below(x, n, highest),
                         .target = there ? x[target] : -INFINITY,
                         .is_first = there ? is_first_maximum(x, target, highest) : 0};
}

void dt_cpu_logit_sums(struct dt_device *dev, struct dt_tensor *sums,
                       const struct dt_tensor *logits, const int32_t *targets)
{
    int64_t n = logits->columns;
    assert(sums->columns == DT_LOGIT_SUMS && sums->rows == logits->rows && n > 0);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < logits->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)n);
        struct sums s = row_sums(dt_cpu_load(logits, i, 0, n, scratch), n, targets[i]);
        memcpy(dt_cpu_row(sums, i), &s, sizeof s);
    }
}

/* Row i of all tensor-parallel parts, combined in the order of their columns. */
static struct sums combine_parts(const struct dt_tensor *parts, int64_t i, int64_t rows)
{
    struct sums all = {.highest = -INFINITY, .target = -INFINITY}, part;
    for (int64_t r = i; r < parts->rows; r += rows) {
        memcpy(&part, dt_cpu_row(parts, r), sizeof part);
        if (part.highest > all.highest) {
            all.highest = part.highest;
            all.is_first = part.is_first;
        }
        all.target = part.target > all.target ? part.target : all.target;
    }
    for (int64_t r = i; r < parts->rows; r += rows) {
        memcpy(&part, dt_cpu_row(parts, r), sizeof part);
        all.columns += part.columns;
        all.sum += part.sum * dt_device_exp(part.highest - all.highest);
        all.below += part.below + part.columns * (all.highest - part.highest);
    }
    return all;
}

/* As row_loss, for vocabulary-parallel logits: x is a rank's part of the row. */
static float loss_of_sums(const struct sums *s, float *x, int64_t n, int32_t target,
                          const struct dt_cross_entropy *how)
{
    float smoothing = how->label_smoothing, log_sum = dt_device_log(s->sum) + s->highest;
    float below = (1.0f - smoothing) * (s->highest - s->target);
    if (smoothing != 0)
        below += smoothing * (s->below / s->columns);
    if (how->scale != 0) {
        float factor = how->scale * (1.0f + 2.0f * how->z_loss * log_sum) / s->sum;
        float spread = how->scale * smoothing / s->columns;
        for (int64_t j = 0; j < n; j++)
            x[j] = dt_device_exp(x[j] - s->highest) * factor - spread;
        if (target >= 0 && target < n)
            x[target] -= how->scale * (1.0f - smoothing);
    }
    return dt_device_log(s->sum) + below + how->z_loss * log_sum * log_sum;
}

void dt_cpu_cross_entropy_of_sums(struct dt_device *dev, float *losses, float *hits,
                                  struct dt_tensor *logits, const struct dt_tensor *sums,
                                  const int32_t *targets, const struct dt_cross_entropy *how)
{
    int64_t n = logits->columns, rows = logits->rows;
    assert(sums->columns == DT_LOGIT_SUMS && rows > 0 && sums->rows % rows == 0);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)n);
        float *row = dt_cpu_output(logits, i, 0, scratch);
        struct sums all = combine_parts(sums, i, rows);
        if (how->scale != 0)
            dt_cpu_load(logits, i, 0, n, row);
        losses[i] = loss_of_sums(&all, row, n, targets[i], how);
        if (hits)
            hits[i] = all.is_first;
        if (how->scale != 0)
            dt_cpu_store(logits, i, 0, n, row);
    }
}
