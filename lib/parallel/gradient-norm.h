/* SPDX-License-Identifier: MIT */
/*
 * Squared L2 norms of the gradients, for clipping and logs. Each rank of a sharding group squares
 * the blocks that it owns (sharding.h) and all-gathers one partial sum for each block; every rank
 * then adds these in the order of the blocks, so that the bits do not depend on the number of
 * ranks.
 *
 *     rank 0        rank 1        rank 2
 *     |b0 |b1 |b2 | |b3 |b4 |b5 | |b6 |b7 |      squares of a block: a double
 *           \            |            /
 *            b0 + b1 + b2 + ... + b7             on every rank, in this order
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
    struct dt_range *excluded; /* elements of the arena that another tensor-parallel rank counts, in
                                * order; owned */
    int excluded_count;
    double *pieces;  /* on the device: sums of this rank's blocks, which excluded elements cut */
    double *fetched; /* the same, on the host */
    double *partial; /* of each block, in the order of the group's ranks */
    size_t *partial_bytes; /* ranks + 1: where each rank's begin */
    size_t *cursors;       /* ranks: into partial */
};

/* Takes device memory from the arena, and host memory once the arena has its own. */
void dt_gradient_norm_layout(struct dt_gradient_norm *norm, struct dt_arena *arena);
void dt_gradient_norm_release(struct dt_gradient_norm *norm);

/* squares[b]: sum of the squared gradients of bucket b, without excluded elements. owned[b]: this
 * rank's gradients of the bucket, on the device. Collective. */
int dt_gradient_norm_squares(struct dt_gradient_norm *norm, float *const *owned, double *squares,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
