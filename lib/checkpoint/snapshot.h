/* SPDX-License-Identifier: MIT */
/*
 * What a checkpoint is written from: a run's state in host memory, as far as this rank owns
 * it, in pieces of tensors.
 *
 * A whole snapshot is a copy of everything at one step, which stays while training
 * goes on. One that is not whole has room for the largest part alone, which it
 * fetches from the device when it is asked for: training must wait.
 */
#ifndef DT_CHECKPOINT_SNAPSHOT_H
#define DT_CHECKPOINT_SNAPSHOT_H

#include "checkpoint/progress-state.h"
#include "formats/safetensors.h"
#include "parallel/train-state.h"

enum dt_snapshot_part {
    DT_SNAPSHOT_PARAMETERS,
    DT_SNAPSHOT_MOMENTS,
    DT_SNAPSHOT_AVERAGE,
    DT_SNAPSHOT_OUTER,          /* momentum of replicas' outer steps (parallel/local-sgd.h) */
    DT_SNAPSHOT_ERROR_FEEDBACK, /* what compression remembers (checkpoint/error-feedback.h) */
    DT_SNAPSHOT_PARTS
};

/* Elements of one tensor of a part, side by side in the whole tensor. */
struct dt_snapshot_piece {
    int tensor; /* place in the part's list */
    int64_t first, count;
    float *device; /* where they are */
    bool adds;     /* when it is loaded: to what a piece before it has brought there */
};

/* Whether runs have that part; those of older versions and other settings may not. */
bool dt_snapshot_has(const struct dt_train_state *store, enum dt_snapshot_part part);
/* The tensors of a part of the whole model, of a run of so many replicas, without data; owned by
 * the caller (free). */
struct dt_named_tensor *dt_snapshot_tensors(const struct dt_train_state *store,
                                            enum dt_snapshot_part part, long dp_size, int *count);
/* What this rank owns of a part, or with kept all that it keeps of it: what others keep too,
 * one of them owns. *count may be 0. Owned by the caller (free). */
struct dt_snapshot_piece *dt_snapshot_pieces(const struct dt_train_state *store,
                                             enum dt_snapshot_part part, bool kept, long dp_size,
                                             size_t *count);

struct dt_snapshot {
    const struct dt_train_state *store; /* borrowed */
    struct dt_progress_state state;
    bool whole;
    char *memory;
};

/* Takes no memory yet. */
void dt_snapshot_plan(struct dt_snapshot *snapshot, const struct dt_train_state *store, bool whole);
size_t dt_snapshot_bytes(const struct dt_snapshot *snapshot); /* of host memory */
void dt_snapshot_allocate(struct dt_snapshot *snapshot);
void dt_snapshot_release(struct dt_snapshot *snapshot);

void dt_snapshot_take(struct dt_snapshot *snapshot, const struct dt_progress_state *state);
/* A part in host memory, valid until the next call: the owned pieces, one behind the other. */
const float *dt_snapshot_host_part(struct dt_snapshot *snapshot, enum dt_snapshot_part part);

#endif
