/* SPDX-License-Identifier: MIT */
/*
 * The data of a checkpoint: what this rank owns of a run's state, in host memory, as pieces of
 * tensors.
 *
 * A checkpoint is independent of the parallel layout. Its files hold the tensors of the whole
 * model; each rank writes the elements that it owns into place, and a resume reads those that it
 * needs:
 *
 *     rank's arena   | .. q_proj, rows 0-31 .. | norm | ..       one tensor-parallel shard
 *                          |                      |
 *                          v first, count         v              pieces
 *     file           | q_proj ................... | norm | ...   whole tensors
 *
 * Elements that several ranks replicate are written by one of them. A full snapshot (background
 * checkpoints) copies everything at one step and is written while training continues. Otherwise the
 * snapshot has a buffer for the largest part, and training waits.
 */
#ifndef DT_CHECKPOINT_SNAPSHOT_H
#define DT_CHECKPOINT_SNAPSHOT_H

#include "checkpoint/progress-state.h"
#include "formats/safetensors.h"
#include "parallel/train-state.h"

enum dt_snapshot_part {
    DT_SNAPSHOT_PARAMETERS,
    DT_SNAPSHOT_MOMENTS, /* optimizer state */
    DT_SNAPSHOT_EMA,
    DT_SNAPSHOT_OUTER,          /* momentum of DiLoCo's outer step (parallel/local-sgd.h) */
    DT_SNAPSHOT_ERROR_FEEDBACK, /* state of gradient compression (checkpoint/error-feedback.h) */
    DT_SNAPSHOT_PARTS
};

/* Contiguous elements of one tensor of a part. */
struct dt_snapshot_piece {
    int tensor;           /* index in dt_snapshot_tensors */
    int64_t first, count; /* elements of the whole tensor */
    float *device;        /* this rank's values */
    bool accumulate;      /* on loading, add to what an earlier piece loaded there */
};

/* Whether a run with these settings has that part. */
bool dt_snapshot_has(const struct dt_train_state *state, enum dt_snapshot_part part);
/* Names and shapes of a part's tensors of the whole model; owned by the caller (free). dp_size:
 * ranks of the data group that wrote the part, for error feedback. */
struct dt_named_tensor *dt_snapshot_tensors(const struct dt_train_state *state,
                                            enum dt_snapshot_part part, long dp_size, int *count);
/* This rank's pieces of a part: with replicated all elements that it holds, for loading; without
 * only those that it owns, for writing. *count may be 0. Owned by the caller (free). */
struct dt_snapshot_piece *dt_snapshot_pieces(const struct dt_train_state *state,
                                             enum dt_snapshot_part part, bool replicated,
                                             long dp_size, size_t *count);

struct dt_snapshot {
    const struct dt_train_state *state; /* borrowed */
    struct dt_progress_state progress;
    bool full; /* a copy of all parts */
    char *memory;
};

/* Allocates nothing. */
void dt_snapshot_plan(struct dt_snapshot *snapshot, const struct dt_train_state *state, bool full);
size_t dt_snapshot_bytes(const struct dt_snapshot *snapshot); /* of host memory */
void dt_snapshot_allocate(struct dt_snapshot *snapshot);
void dt_snapshot_release(struct dt_snapshot *snapshot);

void dt_snapshot_take(struct dt_snapshot *snapshot, const struct dt_progress_state *progress);
/* The owned pieces of a part, one after the other, in host memory; valid until the next call. */
const float *dt_snapshot_host_part(struct dt_snapshot *snapshot, enum dt_snapshot_part part);

#endif
