/* SPDX-License-Identifier: MIT */
/*
 * All-gather of sharded parameters (zero_stage 1 to 3) into the weights that forward and backward
 * read. A rank holds the fp32 master parameters of its shards; a bucket's weights, in the
 * compute type, are gathered from all ranks of the sharding group.
 *
 *     zero_stage 1, 2   After an update all buckets are gathered, one by one, into a full arena.
 *                       Forward waits for a bucket when it enters it.
 *     zero_stage 3      A bucket is gathered into a slot when forward or backward enters it, and
 * the next layer is prefetched meanwhile. It stays until another needs the slot.
 *
 *     forward           | layer 0 | layer 1 | layer 2 |
 *     all-gather     | 0 |   1   |    2    |    3    |          distributed.overlap
 */
#ifndef DT_PARALLEL_PARAMETER_GATHER_H
#define DT_PARALLEL_PARAMETER_GATHER_H

#include "model/model.h"
#include "parallel/data-parallel.h"

struct dt_bucket_gather; /* of one bucket */

struct dt_parameter_gather {
    struct dt_model *model; /* borrowed, as are these */
    const struct dt_data_parallel *dp;
    const struct dt_range *shards; /* of each bucket: this rank's elements */
    float **parameters;            /* of each bucket: the shard of the master parameters */
    struct dt_bucket_gather *buckets;
    void *weights;                /* zero_stage 1 and 2: the full arena, in the compute type */
    struct dt_bucket_slots slots; /* zero_stage 3 */
    int failed;                   /* code of the first failure */
    struct dt_error error;
};

void dt_parameter_gather_init(struct dt_parameter_gather *gather, struct dt_model *model,
                              const struct dt_data_parallel *dp, const struct dt_range *shards,
                              float **parameters);
void dt_parameter_gather_layout(struct dt_parameter_gather *gather, struct dt_arena *arena);
void dt_parameter_gather_release(struct dt_parameter_gather *gather);

/* Call when parameters have changed: starts to gather all weights, or with zero_stage 3 marks them
 * as stale. */
void dt_parameter_gather_refresh(struct dt_parameter_gather *gather);
/* Call before a bucket's weights are read: waits for them. With zero_stage 3 prefetches the next
 * layer, or in backward the previous one. dt_parameter_gather_wait reports failures. */
void dt_parameter_gather_enter(struct dt_parameter_gather *gather, int bucket, bool backward);
/* Waits for all gathers in flight, and reports the first failure. */
int dt_parameter_gather_wait(struct dt_parameter_gather *gather,
                             struct dt_error *err) DT_MUST_CHECK;

#endif
