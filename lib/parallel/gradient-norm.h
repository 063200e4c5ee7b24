/* SPDX-License-Identifier: MIT */
/*
 * Sums of squares of gradients, bucket by bucket, which the ranks of a group share as they share
 * the gradients (parallel/sharding.h): each adds up the blocks that it owns, and all add these in
 * their order. So the bits are the same for any number of ranks.
 */
#ifndef DT_PARALLEL_GRADIENT_NORM_H
#define DT_PARALLEL_GRADIENT_NORM_H

#include "comm/comm.h"
#include "device/arena.h"
#include "parallel/sharding.h"

struct dt_gradient_norm {
    const struct dt_sharding *sharding; /* borrowed, as are these */
    struct dt_comm *group;
    struct dt_device *device;
    struct dt_range *elsewhere; /* elements that other slices of the model count, in their
                                 * order; owned by this */
    int elsewhere_count;
    double *pieces;        /* on the device: of what is counted of this rank's blocks */
    double *fetched;       /* the same, on the host */
    double *partial;       /* of the blocks, rank by rank of a group */
    size_t *partial_bytes; /* of its ranks, and 1: where each one's begin */
    size_t *cursors;       /* of its ranks: into partial */
};

/* What is needed of the device; once that is there, of the host too. */
void dt_gradient_norm_layout(struct dt_gradient_norm *squares, struct dt_arena *arena);
void dt_gradient_norm_release(struct dt_gradient_norm *squares);

/* sums[b] = that of bucket b, as far as it is counted here. own: where the gradients lie that this
 * rank owns of each bucket. */
int dt_gradient_norm_sum(struct dt_gradient_norm *squares, float *const *own, double *sums,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
