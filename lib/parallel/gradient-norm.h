/* SPDX-License-Identifier: MIT */
/*
 * Squared L2 norms of the gradients, for clipping and logs. A rank adds the squares of the
 * gradients that it owns (sharding.h) exactly, and the ranks add their sums, which are integers
 * (math/exact-sum.h): the norm has the same bits for any layout. Each element is counted by one
 * rank.
 */
#ifndef DT_PARALLEL_GRADIENT_NORM_H
#define DT_PARALLEL_GRADIENT_NORM_H

#include "base/range.h"
#include "device/arena.h"

struct dt_gradient_norm {
    struct dt_range *excluded; /* elements of the arena that another tensor-parallel rank counts, in
                                * order; owned */
    int excluded_count;
    struct dt_exact_sum *sum; /* on the device */
};

/* Takes device memory from the arena. */
void dt_gradient_norm_layout(struct dt_gradient_norm *norm, struct dt_arena *arena);
void dt_gradient_norm_release(struct dt_gradient_norm *norm);

/* *sum: the squares of several runs of the arena's elements, without excluded ones.
 *
 *     dt_gradient_norm_begin(&norm, dev);
 *     dt_gradient_norm_add(&norm, dev, run, gradients);  gradients of that run, on the device
 *     dt_gradient_norm_end(&norm, dev, &sum);            waits for the device */
void dt_gradient_norm_begin(const struct dt_gradient_norm *norm, struct dt_device *dev);
void dt_gradient_norm_add(const struct dt_gradient_norm *norm, struct dt_device *dev,
                          struct dt_range run, const float *gradients);
void dt_gradient_norm_end(const struct dt_gradient_norm *norm, struct dt_device *dev,
                          struct dt_exact_sum *sum);

#endif
