/* SPDX-License-Identifier: MIT */
/*
 * Data parallelism: which micro-batches of a step a rank computes, and the reduction of gradients
 * over the data-parallel group, bucket by bucket, overlapped with backward.
 *
 *     dt_data_parallel_begin_step(&dp, batches);
 *     for (int64_t i = 0; i < dp.rounds; i++) {
 *         dp.padding = dt_data_parallel_round_batch(&dp, i) < 0;
 *         backward adds to dp.gradients, and calls dt_data_parallel_enter_bucket and
 *         dt_data_parallel_leave_bucket around every bucket
 *     }
 *     DT_TRY(dt_data_parallel_wait(&dp, err));
 *
 * Reduced gradients are the SUM over all micro-batches and ranks: nothing is divided here. Backward
 * scales token losses by loss scale / positions of the step, so the sum is that of a mean loss; the
 * optimizer divides by what remains (factor in dt_train_state_update).
 *
 * The group (mesh.h) has dp x cp ranks, which all take part in the reduction. cp neighbours compute
 * the same micro-batches and are one data-parallel rank. Of n, rank r computes micro-batches from
 * batches * r / n (rounded down) to below batches * (r + 1) / n; with TREE_SHARD, ranks take turns.
 * 8 micro-batches, 3 data-parallel ranks:
 *
 *     contiguous    0 1 | 2 3 4 | 5 6 7
 *     round-robin   0 3 6 | 1 4 7 | 2 5 .     . padding: only takes part in collective calls
 *
 * A bucket's reduce-scatter starts when the rank's last micro-batch leaves the bucket, with
 * TREE_SHARD when each does; with zero_stage 0 an all-gather follows, which makes it an all-reduce.
 * Storage of gradients:
 *
 *     FULL         zero_stage 0 and 1; also 2 and 3, if a step has more micro-batches than
 *                  data-parallel ranks. One full array: a rank accumulates its micro-batches in
 *                  order, then the ranks' sums are reduced.
 *     SHARD        zero_stage 2 and 3 with one micro-batch for each data-parallel rank. Backward
 *                  uses a temporary buffer for a bucket; a rank stores its shard.
 *     TREE         distributed.invariant, zero_stage 0 and 1, cp 1. The order of the sum is a
 *                  binary tree over micro-batches, its leaves (comm/tree.h): the same bits for any
 *                  number of ranks. A rank stores a few full arrays, for nodes of the tree.
 *     TREE_SHARD   distributed.invariant with zero_stage 2 or 3, or with cp above 1. After every
 *                  round a bucket is reduce-scattered into nodes of the tree, of which a rank
 *                  stores its shards. Each micro-batch has cp leaves: leaf l is that of
 *                  micro-batch l / cp and context-parallel rank l mod cp.
 *
 * Hybrid sharding (mesh.h): a sharding group reduces its micro-batches as above, then the ranks of
 * all sharding groups that own the same blocks (sharding.h) all-reduce these.
 */
#ifndef DT_PARALLEL_DATA_PARALLEL_H
#define DT_PARALLEL_DATA_PARALLEL_H

#include "device/arena.h"
#include "parallel/gradient-norm.h"
#include "parallel/host-staging.h"
#include "parallel/mesh.h"
#include "parallel/sharding.h"

enum dt_gradient_storage {
    DT_GRADIENT_STORAGE_FULL,
    DT_GRADIENT_STORAGE_TREE,
    DT_GRADIENT_STORAGE_SHARD,
    DT_GRADIENT_STORAGE_TREE_SHARD
};

struct dt_bucket_reduction; /* of one bucket, in the step */

struct dt_data_parallel {
    struct dt_data_group dp_group;     /* communicators for host memory */
    struct dt_data_group device_group; /* the same group's, for device memory */
    struct dt_device *device;
    struct dt_host_staging staging;  /* blocking collectives of compression and local SGD */
    struct dt_sharding sharding;     /* over the ranks of a sharding group */
    int zero_stage;                  /* as set; 0 where a sharding group is one rank; at least 1
                                      * with a parameter server, and with context parallelism if
                                      * invariant */
    bool invariant, overlap;         /* distributed.invariant, distributed.overlap */
    enum dt_collectives collectives; /* distributed.collectives; of one rank: ordered */
    bool staged;   /* messages are copied to host memory: no device communicator */
    bool local;    /* starts no reduction, and dt_data_parallel_reduced has the
                    * rank's own sums: compression (gradient-compression.h) reduces
                    * them after dt_data_parallel_wait; with local SGD they stay so */
    bool separate; /* local SGD: ranks update by their own gradients */
    enum dt_gradient_storage storage;
    int64_t max_batches; /* micro-batches of any step, of all ranks */
    int64_t batches;     /* of this step */
    int64_t own_batches; /* of these, this rank's */
    int64_t rounds;      /* forward and backward passes of this rank, padding included; equal on all
                          * ranks with zero_stage 3 and TREE_SHARD, whose passes communicate */
    bool padding;        /* set by the caller before each pass: the pass only takes part in
                          * collective calls, its gradients are dropped */
    void **gradients;    /* of each bucket: where backward accumulates, fp32 (void as in dt_flat).
                          * Set by dt_data_parallel_enter_bucket: a part of an arena, or with
                          * SHARD and TREE_SHARD a temporary buffer. */
    struct dt_bucket_reduction *reductions; /* of each bucket */
    float **arenas;                         /* flat fp32 arrays: full (FULL, TREE), or shards */
    int arena_count;
    float *link_scratch; /* receive buffer of the device communicator's reductions */
    size_t link_scratch_bytes;
    float *device_sums; /* TREE_SHARD and staged: the result, on the device; arenas are in host
                         * memory */
    struct dt_bucket_slots slots; /* SHARD, TREE_SHARD: temporary buffers of buckets in backward */
    struct dt_bucket_slots rounded; /* NCCL_BF16: buckets in bf16, which are reduced */
    int64_t *first_leaves;       /* ranks + 1: each rank's first leaf of the sum's tree. Leaves are
                                  * micro-batches with distributed.invariant, otherwise ranks. */
    int64_t *group_first_leaves; /* sharding groups + 1 */
    struct dt_gradient_norm norm;
    bool sums_first; /* set by the caller: norm.sum becomes the squares of the gradients of this
                      * rank's first micro-batch of the step */
    int failed;      /* code of the first failure of the step */
    struct dt_error error;
};

/* Plans the work. Allocates no array that grows with the number of ranks, so dt-plan calls this for
 * large clusters; dt_data_parallel_layout allocates these. sharding: buckets; copied, and completed
 * with owners and groups from dp_group, and root_owns_all (distributed.sync parameter_server).
 * DT_EINVALID if a step has fewer micro-batches than data-parallel ranks. */
int dt_data_parallel_init(struct dt_data_parallel *dp, const struct dt_data_group *dp_group,
                          struct dt_device *device, const struct dt_sharding *sharding,
                          const struct dt_settings *settings, struct dt_error *err) DT_MUST_CHECK;
/* Lays out gradients and their buffers; for the norm's buffers call dt_gradient_norm_layout. */
void dt_data_parallel_layout(struct dt_data_parallel *dp, struct dt_arena *arena);
void dt_data_parallel_release(struct dt_data_parallel *dp);

/* Begins a step of that number of micro-batches, over all ranks. Does not touch gradients. */
void dt_data_parallel_begin_step(struct dt_data_parallel *dp, int64_t batches);
/* The micro-batch of this rank in a round, 0 .. batches - 1; -1: padding. */
int64_t dt_data_parallel_round_batch(const struct dt_data_parallel *dp, int64_t round);
/* Before backward uses a bucket: sets gradients[bucket], and zeroes it, with FULL only for the
 * step's first micro-batch. After: accumulates, or starts the reduction; without
 * distributed.overlap waits for it. All ranks make these calls in the same order of buckets;
 * dt_data_parallel_wait reports failures. */
void dt_data_parallel_enter_bucket(struct dt_data_parallel *dp, int bucket);
void dt_data_parallel_leave_bucket(struct dt_data_parallel *dp, int bucket);
/* Waits for all reductions of the step; returns the step's first failure. */
int dt_data_parallel_wait(struct dt_data_parallel *dp, struct dt_error *err) DT_MUST_CHECK;
/* *sum: the squares of the reduced gradients of the first buckets, without elements that another
 * tensor-parallel rank counts; the same on all ranks of the group. With local SGD the squares of
 * this rank's gradients, infinite if those of any rank are not finite. Collective: sharding group;
 * with local SGD the group. */
int dt_data_parallel_squares(struct dt_data_parallel *dp, int buckets, struct dt_exact_sum *sum,
                             struct dt_error *err) DT_MUST_CHECK;

/* The elements of a bucket that this rank updates, and their reduced gradients, after
 * dt_data_parallel_wait: the whole bucket with zero_stage 0, otherwise the shard. */
struct dt_range dt_data_parallel_shard(const struct dt_data_parallel *dp, int bucket);
float *dt_data_parallel_reduced(const struct dt_data_parallel *dp, int bucket);

/* The elements of a bucket that this rank writes to a checkpoint: of the group's ranks exactly one
 * owns each element, also with zero_stage 0 and hybrid sharding, where several ranks hold it. */
struct dt_range dt_data_parallel_owned(const struct dt_data_parallel *dp, int bucket);

/* The number of data-parallel ranks: ranks of the group / cp. */
int dt_data_parallel_size(const struct dt_data_parallel *dp);

/* This rank's number of micro-batches in a step of `batches`, and the index of its i-th. */
int64_t dt_data_parallel_batch_count(const struct dt_data_parallel *dp, int64_t batches);
int64_t dt_data_parallel_batch(const struct dt_data_parallel *dp, int64_t batches, int64_t i);

/* This data-parallel rank's contiguous part of count items. */
struct dt_range dt_data_parallel_part(const struct dt_data_parallel *dp, int64_t count);

#endif
