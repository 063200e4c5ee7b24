/* SPDX-License-Identifier: MIT */
/* A whole training state in host memory, independent of the parallel layout: all tensors of all
 * parts (snapshot.h), one after the other. It carries a state from one set of ranks to another. */
#ifndef DT_CHECKPOINT_STATE_COPY_H
#define DT_CHECKPOINT_STATE_COPY_H

#include "checkpoint/snapshot.h"

struct dt_state_copy {
    float *values; /* NULL: none */
    int64_t count;
};

/* Allocates the copy, unless it is. Release with dt_state_copy_release. */
void dt_state_copy_allocate(struct dt_state_copy *copy, const struct dt_train_state *state);
/* Its bytes. */
size_t dt_state_copy_bytes(const struct dt_train_state *state);
/* Copies what this rank holds: with zero_stage 0 everything. */
void dt_state_copy_take(struct dt_state_copy *copy, const struct dt_train_state *state);
/* Sets what this rank holds, and refreshes the weights. Collective: sharding group. */
void dt_state_copy_restore(const struct dt_state_copy *copy, struct dt_train_state *state);
void dt_state_copy_release(struct dt_state_copy *copy);

/* The values of a copy that one rank owns: of all ranks, each value has one owner. Or all values
 * that it holds. */
struct dt_state_shard {
    struct dt_state_run {
        int64_t first, count; /* in the copy */
        int64_t held;         /* where every rank has it in its weights; -1: not there */
    } * runs;
    int64_t run_count;
    int64_t count;    /* of values: sum of the runs */
    int64_t all_have; /* of these, the first: those that every rank has in its weights */
    struct dt_snapshot_piece *pieces; /* of each run, if the shard is of this rank; or NULL */
};

/* The shard of this rank; held: of all that it holds. Release with dt_state_shard_release. */
struct dt_state_shard dt_state_shard_of(const struct dt_train_state *state, bool held);
void dt_state_shard_release(struct dt_state_shard *shard);
/* Copies the values of this rank's shard, run after run. */
void dt_state_shard_take(const struct dt_state_shard *shard, float *values,
                         const struct dt_train_state *state);
/* Copies those values of a shard that every rank has, of another rank at the same pipeline stage
 * and tensor shard; call it when the weights are gathered. */
void dt_state_shard_take_held(const struct dt_state_shard *shard, float *values,
                              const struct dt_train_state *state);
/* Sets the shard's values in the copy. */
void dt_state_shard_put(const struct dt_state_shard *shard, const float *values,
                        struct dt_state_copy *copy);

#endif
