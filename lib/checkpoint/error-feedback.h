/* SPDX-License-Identifier: MIT */
/*
 * What compression remembers (parallel/gradient-compression.h), as tensors of a checkpoint.
 *
 *     NAME.error.R    what replica R has left out of the gradients of tensor NAME
 *     NAME.thin       with powersgd, a matrix's second factor: rank x columns
 *
 * An embedding that the last stage has as its head is NAME.head. The stages must be those that
 * wrote; with other replicas, number i of n takes on the errors of i, i + n, i + 2 n ..., so that
 * what is owed stays owed.
 */
#ifndef DT_CHECKPOINT_ERROR_FEEDBACK_H
#define DT_CHECKPOINT_ERROR_FEEDBACK_H

#include "checkpoint/snapshot.h"

/* As dt_snapshot_tensors and dt_snapshot_pieces, of so many replicas. */
struct dt_named_tensor *dt_error_feedback_tensors(const struct dt_train_state *store, long dp_size,
                                                  int *count);
struct dt_snapshot_piece *dt_error_feedback_pieces(const struct dt_train_state *store, bool kept,
                                                   long dp_size, size_t *count);

#endif
