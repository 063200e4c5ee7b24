/* SPDX-License-Identifier: MIT */
/*
 * Data parallelism: which micro-batches of a step a rank passes through the model,
 * and how the ranks' gradients become one sum, bucket by bucket.
 *
 *     dt_data_parallel_begin_step(&p, batches);
 *     for (int64_t i = 0; i < p.rounds; i++) {
 *         p.idle = dt_data_parallel_leaf(&p, i) < 0;
 *         a backward pass into p.gradients, with dt_data_parallel_enter_bucket and
 *         dt_data_parallel_leave_bucket around its use of every bucket
 *     }
 *     DT_TRY(dt_data_parallel_wait(&p, err));
 *
 * A bucket is cut into blocks that ranks own (parallel/sharding.h). Its sum begins when the
 * last micro-batch has left it, and goes on beside the rest of the backward pass. What is
 * kept meanwhile:
 *
 *     whole     one arena, in which a rank adds up its micro-batches in their order;
 *               the tree of the sum (comm/tree.h) is over the ranks
 *     tree      the leaves of the tree are the micro-batches of the step: the same bits
 *               for any number of ranks. A few arenas, for the nodes below
 *     pieces    a bucket is summed as soon as it is left, and a rank keeps its own blocks
 *               alone: where each has one micro-batch
 *     rounds    the same for the tree: micro-batches are dealt out one by one in turn, and
 *               each round of them is summed into nodes of the rank's own blocks
 *
 * Ranks keep the whole sum (zero_stage 0), or their own blocks of it. With contexts
 * the ranks of each pass the same micro-batches. Where they are several
 * groups (parallel/mesh.h) each group does so: it adds up its own leaves, and then groups add up
 * theirs, block by block. The tree is that of all leaves, whatever the groups.
 */
#ifndef DT_PARALLEL_DATA_PARALLEL_H
#define DT_PARALLEL_DATA_PARALLEL_H

#include "device/arena.h"
#include "parallel/gradient-norm.h"
#include "parallel/host-staging.h"
#include "parallel/mesh.h"
#include "parallel/sharding.h"

enum dt_gradient_storage {
    DT_GRADIENT_STORAGE_WHOLE,
    DT_GRADIENT_STORAGE_TREE,
    DT_GRADIENT_STORAGE_OWNED,
    DT_GRADIENT_STORAGE_ROUNDS
};

struct dt_bucket_sum; /* of one bucket, in the step */

struct dt_data_parallel {
    struct dt_data_group dp_group;
    struct dt_data_group near; /* the same groups, for what lies on the device */
    struct dt_device *device;
    struct dt_host_staging staging; /* for operations of all that are waited for at once */
    struct dt_sharding sharding;    /* among the ranks of a group */
    int stage;                      /* zero_stage; 0 where a group is one rank */
    bool invariant, overlap;
    bool staged; /* the device's memory is its own, and not linked: ranks exchange copies in the
                  * host's */
    bool apart;  /* sums are left as they are, this rank's own: somebody else sees to them */
    enum dt_gradient_storage keeping;
    int64_t most;     /* micro-batches of any step */
    int64_t batches;  /* of the step */
    int64_t own;      /* of them this rank's */
    int64_t rounds;   /* passes that each rank makes: where buckets are exchanged in every pass,
                       * the same number on all */
    bool idle;        /* the pass is for the others' sake, and its gradients go nowhere */
    void **gradients; /* of each bucket: where the backward pass adds */
    float **own_sums; /* of each bucket: what this rank owns of its sum, when it is squared */
    struct dt_bucket_sum *sums;
    float **arenas; /* of gradients: whole ones, or of this rank's blocks */
    int arena_count;
    float *link_scratch; /* to links, for parts of sums */
    size_t link_scratch_bytes;
    float *results; /* staged rounds: the sum on the device; the arenas are the host's then */
    struct dt_bucket_slots slots; /* of buckets that are not kept whole */
    int64_t *firsts;              /* of all ranks, and 1: each rank's first leaf */
    int64_t *group_firsts;        /* likewise of the groups */
    struct dt_gradient_norm squares;
    double *shared;       /* what ranks tell each other of micro-batches, rank by rank */
    size_t *shared_bytes; /* of all ranks, and 1 */
    int failed;           /* code of the first failure of the step */
    struct dt_error error;
};

/* What ranks tell each other of a micro-batch at most. */
#define DT_SHARED_MOST 8

/* Says how the work is cut up, in little memory however many ranks there are. Of sharding, owners,
 * groups and rooted are set here. DT_EINVALID if a step has fewer micro-batches than there are
 * ranks. */
int dt_data_parallel_init(struct dt_data_parallel *parallel, const struct dt_data_group *dp_group,
                          struct dt_device *device, const struct dt_sharding *sharding,
                          const struct dt_settings *settings, struct dt_error *err) DT_MUST_CHECK;
/* Gradients; what sums of squares take besides is squares'. */
void dt_data_parallel_layout(struct dt_data_parallel *parallel, struct dt_arena *arena);
void dt_data_parallel_release(struct dt_data_parallel *parallel);

/* Begins a step of so many micro-batches. */
void dt_data_parallel_begin_step(struct dt_data_parallel *parallel, int64_t batches);
/* The micro-batch of a round of this rank's passes, of so many in all; -1: none. */
int64_t dt_data_parallel_leaf(const struct dt_data_parallel *parallel, int64_t round);
/* Around the use of a bucket in a backward pass. Failures are reported by dt_data_parallel_wait. */
void dt_data_parallel_enter_bucket(struct dt_data_parallel *parallel, int bucket);
void dt_data_parallel_leave_bucket(struct dt_data_parallel *parallel, int bucket);
/* Waits for all sums. */
int dt_data_parallel_wait(struct dt_data_parallel *parallel, struct dt_error *err) DT_MUST_CHECK;
/* Sums of squares of each bucket's sum, as far as it is counted here: the same bits for any
 * number of ranks. */
int dt_data_parallel_squares(struct dt_data_parallel *parallel, double *squares,
                             struct dt_error *err) DT_MUST_CHECK;

/* The elements of a bucket that this rank keeps and updates, and their gradients. */
struct dt_range dt_data_parallel_kept(const struct dt_data_parallel *parallel, int bucket);
float *dt_data_parallel_reduced(const struct dt_data_parallel *parallel, int bucket);

/* Those that this rank owns alone, of what it keeps and others keep too. */
struct dt_range dt_data_parallel_owned(const struct dt_data_parallel *parallel, int bucket);

/* Ranks, of one context each, that pass different micro-batches. */
int dt_data_parallel_size(const struct dt_data_parallel *parallel);

/* Micro-batches of this rank in a step of so many, and which they are. */
int64_t dt_data_parallel_own_batches(const struct dt_data_parallel *parallel, int64_t batches);
int64_t dt_data_parallel_batch(const struct dt_data_parallel *parallel, int64_t batches, int64_t i);
/* Every rank gives `each` values (DT_SHARED_MOST at most) for each of its micro-batches,
 * at their place in an array of batches * each, and gets those of the others. Contexts have
 * the same. */
int dt_data_parallel_share_batches(struct dt_data_parallel *parallel, double *values,
                                   int64_t batches, int64_t each,
                                   struct dt_error *err) DT_MUST_CHECK;

/* This rank's part of count things dealt out in their order. */
struct dt_range dt_data_parallel_part(const struct dt_data_parallel *parallel, int64_t count);
/* Likewise for each thing of these parts. */
int dt_data_parallel_share(struct dt_data_parallel *parallel, double *values, int64_t count,
                           int64_t each, struct dt_error *err) DT_MUST_CHECK;

#endif
