/* SPDX-License-Identifier: MIT */
/* Cross-entropy of whole rows, and of the columns that a tensor-parallel rank has. Both compute
 * statistics of the parts of device/split-logits.h, and combine them in the same way. */
#include <assert.h>
#include <math.h>
#include <omp.h>

#include "base/range.h"
#include "device/cpu/cpu.h"
#include "device/cpu/lanes.h"
#include "device/logit-map.h"

/* A row of DT_LOGIT_SUMS. */
struct sums {
    float columns, highest, sum, below, target, is_first;
};

/* Logits of n values x: in to, which may be x, or x itself. */
static const float *logits_of(float *to, const float *x, int64_t n, struct dt_logit_map map)
{
    if (dt_logit_map_is_identity(map))
        return x;
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        to[j] = dt_logit_map_value(map, x[j]);
    return to;
}

/* From the gradient of logits to that of x. */
static void map_backward(float *restrict gradient, const float *restrict logits, int64_t n,
                         struct dt_logit_map map)
{
    if (dt_logit_map_is_identity(map))
        return;
    for (int64_t j = 0; j < n; j++)
        gradient[j] *= dt_logit_map_slope(map, logits[j]);
}

void dt_cpu_map_logits(struct dt_device *dev, struct dt_tensor *x, const struct dt_logit_map *map)
{
    int64_t n = x->columns;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)n);
        dt_cpu_store(
            x, i, 0, n,
            logits_of(dt_cpu_output(x, i, 0, scratch), dt_cpu_load(x, i, 0, n, scratch), n, *map));
    }
}

static float maximum(const float *x, int64_t n)
{
    float highest = -INFINITY;
#pragma omp simd reduction(max : highest)
    for (int64_t j = 0; j < n; j++)
        highest = x[j] > highest ? x[j] : highest;
    return highest;
}

static float is_first_maximum(const float *x, int64_t target, float highest)
{
    int32_t before = 0;
    for (int64_t j = 0; j < target; j++)
        before += x[j] == highest;
    return x[target] == highest && before == 0 ? 1.0f : 0.0f;
}

/* What powers of a part are relative to. */
static float zero_of(float highest)
{
    return highest == -INFINITY ? 0 : highest;
}

/* to = e^(x - zero); to may be x. */
static void exponentiate(float *to, const float *x, int64_t n, float zero)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        to[j] = dt_device_exp(x[j] - zero);
}

static inline void add_values(dt_cpu_vector *sums, const dt_cpu_vector *x, const float *none)
{
    (void)none;
    sums[0] += x[0];
}

static inline void add_below(dt_cpu_vector *sums, const dt_cpu_vector *x, const float *highest)
{
    sums[0] += highest[0] - x[0];
}

/* Part p of a row of n logits. */
static struct dt_range part_of(const struct dt_logit_parts *parts, int64_t p, int64_t n)
{
    int64_t from = p * parts->width, to = from + parts->width;
    return (struct dt_range){from < n ? from : n, to < n ? to : n};
}

/* Statistics of a part of n logits; powers, which may be x, becomes e^(x - highest).
 * smoothed: also the sum of highest - x. */
static struct sums sums_of_part(float *powers, const float *x, int64_t n, int64_t target,
                                bool smoothed)
{
    struct sums s = {.columns = (float)n, .highest = maximum(x, n), .target = -INFINITY};
    float zero = zero_of(s.highest);
    if (target >= 0 && target < n) {
        s.target = x[target];
        s.is_first = is_first_maximum(x, target, s.highest);
    }
    if (smoothed)
        s.below = dt_cpu_lanes_sum(add_below, &x, 1, &zero, n).sum[0];
    exponentiate(powers, x, n, zero);
    s.sum = dt_cpu_lanes_sum(add_values, (const float *[]){powers}, 1, NULL, n).sum[0];
    return s;
}

static float tree_sum(float *x, int64_t count)
{
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t i = 0; i + step < count; i += 2 * step)
            x[i] += x[i + step];
    return x[0];
}

/* All parts, in the order of their columns. */
static struct sums combine(const struct sums *parts, int64_t count)
{
    struct sums all = {.highest = -INFINITY, .target = -INFINITY};
    float sums[DT_LOGIT_PARTS_MOST], below[DT_LOGIT_PARTS_MOST];
    for (int64_t p = 0; p < count; p++) {
        if (parts[p].highest > all.highest) {
            all.highest = parts[p].highest;
            all.is_first = parts[p].is_first;
        }
        all.target = parts[p].target > all.target ? parts[p].target : all.target;
        all.columns += parts[p].columns;
    }
    for (int64_t p = 0; p < count; p++) {
        float distance = all.highest - zero_of(parts[p].highest);
        sums[p] = parts[p].sum * dt_device_exp(parts[p].highest - all.highest);
        below[p] = DT_FMA(parts[p].columns, distance, parts[p].below);
    }
    all.sum = tree_sum(sums, count);
    all.below = tree_sum(below, count);
    return all;
}

/* With p = softmax(x), L = log(sum exp x), label smoothing s and z-loss z:
 *
 *     loss = L - (1 - s) x[target] - s mean(x) + z L^2
 *     dloss/dx[j] = p[j] (1 + 2 z L) - s/n - (1 - s) [j is the target]
 */
static float loss_of(const struct sums *s, const struct dt_cross_entropy *how)
{
    float smoothing = how->label_smoothing, log = dt_device_log(s->sum), log_sum = log + s->highest;
    float below = (1.0f - smoothing) * (s->highest - s->target);
    if (smoothing != 0)
        below = DT_FMA(smoothing, s->below / s->columns, below);
    return DT_FMA(how->z_loss * log_sum, log_sum, log + below);
}

/* The gradient of n logits, whose powers x holds; own: the statistics of their parts. */
static void set_gradient(float *x, int64_t n, const struct dt_logit_parts *parts,
                         const struct sums *own, const struct sums *all, int64_t target,
                         const struct dt_cross_entropy *how)
{
    float log_sum = dt_device_log(all->sum) + all->highest;
    float factor = how->scale * DT_FMA(2.0f * how->z_loss, log_sum, 1.0f) / all->sum;
    float spread = how->scale * how->label_smoothing / all->columns;
    for (int64_t p = 0; p < parts->count; p++) {
        struct dt_range of = part_of(parts, p, n);
        float of_part = factor * dt_device_exp(own[p].highest - all->highest);
        for (int64_t j = of.first; j < of.end; j++)
            x[j] = DT_FMA(x[j], of_part, -spread);
    }
    if (target >= 0 && target < n)
        x[target] -= how->scale * (1.0f - how->label_smoothing);
}

/* A whole row of x. scratch: n floats, for logits that are not x, and without a gradient for
 * powers: of one part after the other, or of all, over those logits. */
static float cross_entropy_of_row(float *x, int64_t n, int32_t target, float *hit, float *scratch,
                                  const struct dt_cross_entropy *how)
{
    const struct dt_logit_parts parts = dt_logit_parts_of(n, n, 0, 1);
    struct sums own[DT_LOGIT_PARTS];
    const float *logits = logits_of(scratch, x, n, how->map);
    for (int64_t p = 0; p < parts.count; p++) {
        struct dt_range of = part_of(&parts, p, n);
        float *powers = how->scale != 0 ? x + of.first : scratch + (logits == x ? 0 : of.first);
        own[p] = sums_of_part(powers, logits + of.first, of.end - of.first, target - of.first,
                              how->label_smoothing != 0);
    }
    struct sums all = combine(own, parts.count);
    if (how->scale != 0) {
        set_gradient(x, n, &parts, own, &all, target, how);
        map_backward(x, logits, n, how->map);
    }
    *hit = all.is_first;
    return loss_of(&all, how);
}

void dt_cpu_cross_entropy(struct dt_device *dev, float *losses, float *hits, struct dt_tensor *x,
                          const int32_t *targets, const struct dt_cross_entropy *how)
{
    int64_t n = x->columns;
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < x->rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * (size_t)n), hit = 0;
        float *row = dt_cpu_output(x, i, 0, scratch + n);
        assert(targets[i] < n);
        dt_cpu_load(x, i, 0, n, row);
        losses[i] =
            targets[i] < 0 ? 0 : cross_entropy_of_row(row, n, targets[i], &hit, scratch, how);
        if (hits)
            hits[i] = hit;
        if (targets[i] < 0 && how->scale != 0)
            memset(row, 0, (size_t)n * sizeof *row);
        if (how->scale != 0)
            dt_cpu_store(x, i, 0, n, row);
    }
}

void dt_cpu_logit_sums(struct dt_device *dev, struct dt_tensor *sums, const struct dt_tensor *x,
                       const int32_t *targets, const struct dt_logit_parts *parts,
                       const struct dt_logit_map *map)
{
    int64_t n = x->columns, rows = x->rows;
    assert(sums->columns == DT_LOGIT_SUMS && sums->rows == parts->count * rows);
    assert(n > 0 && n <= parts->count * parts->width);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * (size_t)n);
        const float *row = logits_of(scratch + n, dt_cpu_load(x, i, 0, n, scratch + n), n, *map);
        for (int64_t p = 0; p < parts->count; p++) {
            struct dt_range of = part_of(parts, p, n);
            struct sums s = sums_of_part(scratch, row + of.first, of.end - of.first,
                                         targets[i] - of.first, true);
            memcpy(dt_cpu_row(sums, p * rows + i), &s, sizeof s);
        }
    }
}

/* As whole rows, from the statistics of all parts. scratch: n floats. */
static float cross_entropy_of_parts(float *x, int64_t n, const struct sums *all_parts,
                                    int64_t count, const struct dt_logit_parts *parts,
                                    int32_t target, float *hit, float *scratch,
                                    const struct dt_cross_entropy *how)
{
    struct sums all = combine(all_parts, count);
    const struct sums *own = all_parts + parts->first;
    if (how->scale != 0) {
        const float *logits = logits_of(scratch, x, n, how->map);
        for (int64_t p = 0; p < parts->count; p++) {
            struct dt_range of = part_of(parts, p, n);
            exponentiate(x + of.first, logits + of.first, of.end - of.first,
                         zero_of(own[p].highest));
        }
        set_gradient(x, n, parts, own, &all, target, how);
        map_backward(x, logits, n, how->map);
    }
    *hit = all.is_first;
    return loss_of(&all, how);
}

void dt_cpu_cross_entropy_of_sums(struct dt_device *dev, float *losses, float *hits,
                                  struct dt_tensor *x, const struct dt_tensor *sums,
                                  const int32_t *targets, const struct dt_logit_parts *parts,
                                  const struct dt_cross_entropy *how)
{
    int64_t n = x->columns, rows = x->rows, count = rows > 0 ? sums->rows / rows : 0;
    assert(sums->columns == DT_LOGIT_SUMS && sums->rows == count * rows);
    assert(parts->first + parts->count <= count && count <= DT_LOGIT_PARTS_MOST);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), 2 * (size_t)n), hit;
        float *row = dt_cpu_output(x, i, 0, scratch + n);
        struct sums all_parts[DT_LOGIT_PARTS_MOST];
        for (int64_t p = 0; p < count; p++)
            memcpy(&all_parts[p], dt_cpu_row(sums, p * rows + i), sizeof *all_parts);
        if (how->scale != 0)
            dt_cpu_load(x, i, 0, n, row);
        losses[i] =
            cross_entropy_of_parts(row, n, all_parts, count, parts, targets[i], &hit, scratch, how);
        if (hits)
            hits[i] = hit;
        if (how->scale != 0)
            dt_cpu_store(x, i, 0, n, row);
    }
}
