/* SPDX-License-Identifier: MIT */
/*
 * The state of gradient compression (parallel/gradient-compression.h) as tensors of a checkpoint.
 *
 *     NAME.error.R    error feedback residual of tensor NAME on data-parallel rank R
 *     NAME.thin       PowerSGD's Q of a matrix: rank x columns
 *
 * A tied embedding's copy in the last pipeline stage is NAME.head. A resume needs the pipeline
 * stages that wrote the checkpoint. With another number n of data-parallel ranks, rank i loads the
 * sum of the residuals of i, i + n, i + 2 n ..., so that the sum over all ranks stays the same.
 */
#ifndef DT_CHECKPOINT_ERROR_FEEDBACK_H
#define DT_CHECKPOINT_ERROR_FEEDBACK_H

#include "checkpoint/snapshot.h"

/* As dt_snapshot_tensors and dt_snapshot_pieces. */
struct dt_named_tensor *dt_error_feedback_tensors(const struct dt_train_state *state, long dp_size,
                                                  int *count);
struct dt_snapshot_piece *dt_error_feedback_pieces(const struct dt_train_state *state,
                                                   bool replicated, long dp_size, size_t *count);

#endif
