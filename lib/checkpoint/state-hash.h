/* SPDX-License-Identifier: MIT */
/*
 * Hashes (hash/sum-hash.h) of the tensors of a training state that do not depend on the parallel
 * layout: each rank hashes the elements that it owns, with their indices in the whole tensor, and
 * the ranks' hashes are added.
 *
 *     struct dt_state_hash h;
 *     dt_state_hash_init(&h, &state, DT_SNAPSHOT_PARAMETERS);
 *     DT_TRY(dt_state_hash_total(&h, world, &hash, err));
 *     dt_state_hash_release(&h);
 */
#ifndef DT_CHECKPOINT_STATE_HASH_H
#define DT_CHECKPOINT_STATE_HASH_H

#include "checkpoint/snapshot.h"
#include "comm/comm.h"
#include "hash/sum-hash.h"

/* Rows of a tensor, of equal length and distance: such pieces (snapshot.h) of a shard as one. */
struct dt_hashed_block {
    int tensor;
    int64_t rows, columns;
    int64_t first, step;            /* index of the first element; from one row to the next */
    const float *device;            /* the first row's values */
    int64_t pitch;                  /* from one row to the next */
    struct dt_snapshot_piece coded; /* of a block without values on the device */
};

struct dt_state_hash {
    const struct dt_train_state *state; /* borrowed */
    enum dt_snapshot_part part;
    struct dt_hashed_block *blocks; /* that this rank owns */
    size_t block_count;
    struct dt_named_tensor *tensors; /* names and shapes, of the whole model */
    int count;
    uint64_t *seeds;            /* of each tensor */
    int *buckets;               /* of each tensor of the parameters */
    struct dt_sum_hash *hashes; /* of each tensor, as the last call has set them */
};

/* part: any but error feedback. Call it when the state is allocated. */
void dt_state_hash_init(struct dt_state_hash *hash, const struct dt_train_state *state,
                        enum dt_snapshot_part part);
void dt_state_hash_release(struct dt_state_hash *hash);

/* The hash of all tensors: the sum of theirs. Collective: all ranks of comm. */
int dt_state_hash_total(struct dt_state_hash *hash, struct dt_comm *comm, struct dt_sum_hash *total,
                        struct dt_error *err) DT_MUST_CHECK;
/* Sets hashes. gradients: of the reduced gradients, before an update, instead of the parameters.
 * Collective: all ranks of comm. */
int dt_state_hash_tensors(struct dt_state_hash *hash, struct dt_comm *comm, bool gradients,
                          struct dt_error *err) DT_MUST_CHECK;

/* The reduced gradients of a block of parameters, before an update; on the device. */
const float *dt_state_hash_gradients(const struct dt_state_hash *hash,
                                     const struct dt_hashed_block *block);

/* Adds each of count hashes over all ranks. Collective. */
int dt_state_hash_sum(struct dt_comm *comm, struct dt_sum_hash *hashes, size_t count,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
