/* SPDX-License-Identifier: MIT */
/*
 * Squared L2 norms of the gradients, for clipping and logs. A rank adds the squares of the
 * gradients that it owns (sharding.h) exactly, and the ranks add their sums, which are integers
 * (base/exact-sum.h): the norm has the same bits for any layout. Each element is counted by one
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

/* *sum: the squares of several runs of the arena's elements, without excluded ones. x[i]: the
 * gradients of run i, on the device. Waits for the device. */
void dt_gradient_norm_squares(const struct dt_gradient_norm *norm, struct dt_device *dev,
                              const struct dt_range *runs, float *const *x, int count,
                              struct dt_exact_sum *sum);

#endif
