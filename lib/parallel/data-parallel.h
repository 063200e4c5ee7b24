/* SPDX-License-Identifier: MIT */
/*
 * Data parallelism: which micro-batches of a step a rank computes, and the reduction of gradients
 * over the data-parallel group, bucket by bucket, overlapped with backward.
 *
 *     dt_data_parallel_begin_step(&dp, batches);
 *     for (int64_t i = 0; i < dp.rounds; i++) {
 *         dp.padding = dt_data_parallel_round_batch(&dp, i) < 0;
 *         backward into dp.gradients, which calls dt_data_parallel_enter_bucket and
 *         dt_data_parallel_leave_bucket around every bucket
 *     }
 *     DT_TRY(dt_data_parallel_wait(&dp, err));
 *
 * A bucket's reduce-scatter starts when the rank's last micro-batch leaves the bucket; with
 * zero_stage 0 an all-gather follows, which makes it an all-reduce. Micro-batches of a step are
 * assigned in contiguous runs, or round-robin with TREE_SHARD:
 *
 *     8 micro-batches, 3 ranks     contiguous   0 1 | 2 3 4 | 5 6 7
 *                                  round-robin  0 3 6 | 1 4 7 | 2 5 .    . : padding
 *
 * Gradient storage during the step:
 *
 *     FULL         one full arena; a rank accumulates its micro-batches in order, then the ranks
 *                  reduce
 *     TREE         distributed.invariant: a binary tree over micro-batches (comm/tree.h), the same
 *                  bits for any number of ranks; a few full arenas for its inner nodes
 *     SHARD        zero_stage 2 and 3 with one micro-batch a rank: a bucket is reduced as soon as
 *                  backward leaves it, and a rank stores its own shard
 *     TREE_SHARD   both: after each round of micro-batches, ranks reduce-scatter a bucket into
 * nodes of the tree, of which each rank stores its own shard
 *
 * Context-parallel ranks of the same dp rank compute the same micro-batches; they are members of
 * the reduction. With hybrid sharding (mesh.h) each sharding group reduces its own micro-batches,
 * then the replication groups reduce across, block by block.
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
    struct dt_data_group dp_group;
    struct dt_data_group device_group; /* the same groups, for device memory */
    struct dt_device *device;
    struct dt_host_staging staging; /* for blocking operations of the group */
    struct dt_sharding sharding;    /* among the ranks of a sharding group */
    int stage;                      /* zero_stage; 0 where a sharding group is one rank */
    bool invariant, overlap;        /* distributed.invariant, distributed.overlap */
    bool staged;                    /* messages go through host memory: no device communicator */
    bool local;                     /* no reduction here: local SGD or compression performs it */
    enum dt_gradient_storage storage;
    int64_t max_batches; /* micro-batches of any step, of all ranks */
    int64_t batches;     /* of this step */
    int64_t own_batches; /* of these, this rank's */
    int64_t rounds;      /* forward and backward passes of this rank; the same number on all ranks
                          * where each pass makes collective calls */
    bool padding;        /* the pass only takes part in collective calls; its gradients are
                          * dropped */
    void **gradients;    /* of each bucket: where backward accumulates */
    float **owned_gradients; /* of each bucket: the reduced gradients that this rank owns */
    struct dt_bucket_reduction *reductions; /* of each bucket */
    float **arenas;                         /* fp32 gradients: full, or shards */
    int arena_count;
    float *link_scratch; /* of the device communicator, for partial sums */
    size_t link_scratch_bytes;
    float *device_sums; /* TREE_SHARD through host memory: the result on the device; the arenas
                         * are in host memory then */
    struct dt_bucket_slots slots; /* SHARD, TREE_SHARD: buckets in backward */
    int64_t *first_leaves;        /* ranks + 1: each rank's first leaf of the tree */
    int64_t *group_first_leaves;  /* sharding groups + 1 */
    struct dt_gradient_norm norm;
    double *gathered;       /* values of micro-batches, in the order of the ranks */
    size_t *gathered_bytes; /* ranks + 1: where each rank's values begin */
    int failed;             /* code of the first failure of the step */
    struct dt_error error;
};

/* Values of a micro-batch in dt_data_parallel_gather_batch_values, at most. */
#define DT_BATCH_VALUES_MAX 8

/* Plans the work; memory does not grow with the number of ranks, so dt-plan calls this for large
 * clusters. Sets owners, groups and rooted of its copy of sharding. DT_EINVALID if a step has fewer
 * micro-batches than data-parallel ranks. */
int dt_data_parallel_init(struct dt_data_parallel *dp, const struct dt_data_group *dp_group,
                          struct dt_device *device, const struct dt_sharding *sharding,
                          const struct dt_settings *settings, struct dt_error *err) DT_MUST_CHECK;
/* Gradients; dt_gradient_norm_layout lays out what the norm needs. */
void dt_data_parallel_layout(struct dt_data_parallel *dp, struct dt_arena *arena);
void dt_data_parallel_release(struct dt_data_parallel *dp);

/* Begins a step of that number of micro-batches, over all ranks. */
void dt_data_parallel_begin_step(struct dt_data_parallel *dp, int64_t batches);
/* The micro-batch of this rank in a round, 0 .. batches - 1; -1: padding. */
int64_t dt_data_parallel_round_batch(const struct dt_data_parallel *dp, int64_t round);
/* Before backward uses a bucket: sets gradients[bucket]. After: accumulates or starts the
 * reduction. dt_data_parallel_wait reports failures. */
void dt_data_parallel_enter_bucket(struct dt_data_parallel *dp, int bucket);
void dt_data_parallel_leave_bucket(struct dt_data_parallel *dp, int bucket);
/* Waits for all reductions of the step. */
int dt_data_parallel_wait(struct dt_data_parallel *dp, struct dt_error *err) DT_MUST_CHECK;
/* squared_norms[b]: of bucket b, without elements that another tensor-parallel rank counts. The
 * same bits for any number of ranks. */
int dt_data_parallel_squared_norms(struct dt_data_parallel *dp, double *squared_norms,
                                   struct dt_error *err) DT_MUST_CHECK;

/* The elements of a bucket that this rank updates, and their reduced gradients. */
struct dt_range dt_data_parallel_shard(const struct dt_data_parallel *dp, int bucket);
float *dt_data_parallel_reduced(const struct dt_data_parallel *dp, int bucket);

/* The elements of a bucket that this rank alone writes to a checkpoint: replicated elements have
 * one owner. */
struct dt_range dt_data_parallel_owned(const struct dt_data_parallel *dp, int bucket);

/* Data-parallel ranks: context-parallel ranks count once. */
int dt_data_parallel_size(const struct dt_data_parallel *dp);

/* This rank's number of micro-batches in a step of `batches`, and the index of its i-th. */
int64_t dt_data_parallel_batch_count(const struct dt_data_parallel *dp, int64_t batches);
int64_t dt_data_parallel_batch(const struct dt_data_parallel *dp, int64_t batches, int64_t i);
/* All-gathers `each` values (at most DT_BATCH_VALUES_MAX) of every micro-batch: values has
 * batches * each, of which this rank sets those of its micro-batches. Context-parallel ranks pass
 * equal values. */
int dt_data_parallel_gather_batch_values(struct dt_data_parallel *dp, double *values,
                                         int64_t batches, int64_t each,
                                         struct dt_error *err) DT_MUST_CHECK;

/* This rank's contiguous part of count items. */
struct dt_range dt_data_parallel_part(const struct dt_data_parallel *dp, int64_t count);
/* All-gathers `each` values of every item of these parts. */
int dt_data_parallel_gather_values(struct dt_data_parallel *dp, double *values, int64_t count,
                                   int64_t each, struct dt_error *err) DT_MUST_CHECK;

#endif
