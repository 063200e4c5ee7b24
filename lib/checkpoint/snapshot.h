/* SPDX-License-Identifier: MIT */
/*
 * The data of a checkpoint: what this rank owns of a training state, copied to host memory.
 *
 * The state has parts (enum dt_snapshot_part): parameters, optimizer state, EMA and others. A
 * checkpoint has one file for each, with tensors of the whole model, so it is independent of the
 * parallel layout; only error feedback (error-feedback.h) depends on it. A piece is a run of
 * elements that are contiguous both on a rank's device and in the whole tensor, flattened row by
 * row. Each rank writes the pieces that it owns at their offsets; a resume reads the pieces that a
 * rank holds. With distributed.tp 2:
 *
 *     rank 0's shard    | q_proj, rows 0-31  | norm |
 *     rank 1's shard    | q_proj, rows 32-63 | norm |
 *     file              | q_proj, rows 0-31, rows 32-63 | norm |
 *
 *     piece of a tensor of 64 rows x C columns            writes it   reads it
 *         q_proj, first 0,      count 32 C                rank 0      rank 0
 *         q_proj, first 32 C,   count 32 C                rank 1      rank 1
 *         norm,   first 0,      count C                   rank 0      ranks 0 and 1
 *
 * A tensor that is split by columns has one piece for each row. Of the ranks that hold copies of an
 * element, one owns it.
 *
 *     full       Host memory for all parts. dt_snapshot_take copies them all at one step; a
 *                thread writes them while training continues (background checkpoints).
 *     not full   Host memory for the largest piece. Training waits while one piece after the other
 *                is copied and written.
 *
 * Nothing here communicates with other ranks.
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
    int64_t first, count; /* elements of the whole tensor, flattened row by row */
    float *device;        /* this rank's values, in device memory; NULL before allocation,
                           * and for moments in bf16 or int8 */
    bool accumulate;      /* whoever loads adds the file's values to those of earlier pieces: error
                           * feedback residuals of several ranks, where fewer ranks resume */
    const struct dt_segment *segment; /* of moments in bf16 or int8 (optim/moments.h), which files
                                       * have as fp32: what has them, */
    int slot;                         /* in which slot, */
    int64_t position;                 /* and the first element in the bucket */
};

/* Whether a training state has that part. */
bool dt_snapshot_has(const struct dt_train_state *state, enum dt_snapshot_part part);
/* Names and shapes of a part's tensors, of the whole model. Release the array with free. dp_size
 * matters only for error feedback, which has tensors for each rank: the number of dp x cp ranks
 * (struct dt_data_group) that wrote or write the checkpoint. */
struct dt_named_tensor *dt_snapshot_tensors(const struct dt_train_state *state,
                                            enum dt_snapshot_part part, long dp_size, int *count);
/* This rank's pieces of a part. replicated: all that the rank holds, for loading; otherwise those
 * that it owns, for writing. dp_size: as above. *count may be 0. Release the array with free. */
struct dt_snapshot_piece *dt_snapshot_pieces(const struct dt_train_state *state,
                                             enum dt_snapshot_part part, bool replicated,
                                             long dp_size, size_t *count);

/* Copies the values of a piece to host memory, and from there to the device. After the last upload
 * of parameters call dt_train_state_refresh_weights. */
void dt_snapshot_download(const struct dt_train_state *state, const struct dt_snapshot_piece *piece,
                          float *values);
void dt_snapshot_upload(const struct dt_train_state *state, const struct dt_snapshot_piece *piece,
                        const float *values);

struct dt_snapshot {
    const struct dt_train_state *state; /* borrowed */
    struct dt_progress_state progress;
    bool full;    /* a copy of all parts */
    char *memory; /* full: the owned pieces of all parts, in the order of the enum; otherwise the
                   * piece that was copied last */
};

/* Allocates nothing. */
void dt_snapshot_plan(struct dt_snapshot *snapshot, const struct dt_train_state *state, bool full);
size_t dt_snapshot_bytes(const struct dt_snapshot *snapshot); /* of host memory */
void dt_snapshot_allocate(struct dt_snapshot *snapshot);
void dt_snapshot_release(struct dt_snapshot *snapshot);

/* Copies progress and, if full, all parts to host memory. If not full, the state must not change
 * until the last dt_snapshot_host_piece. */
void dt_snapshot_take(struct dt_snapshot *snapshot, const struct dt_progress_state *progress);
/* The owned pieces of a part in host memory, one after the other, in the order of
 * dt_snapshot_pieces, until the next dt_snapshot_take; NULL if not full. */
const float *dt_snapshot_host_part(const struct dt_snapshot *snapshot, enum dt_snapshot_part part);
/* If not full: copies an owned piece now. Valid until the next call. */
const float *dt_snapshot_host_piece(struct dt_snapshot *snapshot,
                                    const struct dt_snapshot_piece *piece);

#endif
