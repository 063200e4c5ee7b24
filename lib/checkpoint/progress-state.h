/* SPDX-License-Identifier: MIT */
/* Where a run is, besides its tensors; and as a JSON file. */
#ifndef DT_CHECKPOINT_PROGRESS_STATE_H
#define DT_CHECKPOINT_PROGRESS_STATE_H

#include <stdint.h>

#include "base/error.h"
#include "optim/loss-scale.h"
#include "optim/loss-statistics.h"

/* With parameters, moments and average, everything. */
struct dt_progress_state {
    long step;         /* updates done */
    uint64_t samples;  /* sequences used: the state of the data */
    double seconds;    /* of training so far */
    long logged_lines; /* with a step in metrics.jsonl; 0: not known */
    long best_step;    /* of the lowest validation loss so far; 0: none */
    double best_loss;
    long validations_since_best;
    long skipped; /* updates, and in a row without one: for a loss or gradient that was not */
    long skipped_in_row; /* finite, or a spike */
    long error_replicas; /* whose compression has left something out, each its own; 0: none */
    struct dt_loss_scale loss_scale;
    struct dt_loss_statistics losses;
};

/* data: fingerprint of the training split; parameters: their hash. */
int dt_progress_state_write(const struct dt_progress_state *state, uint64_t data,
                            uint64_t parameters, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if the file tells of other data. What it does not mention stays. */
int dt_progress_state_read(struct dt_progress_state *state, uint64_t data, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;
/* The hash of the parameters that such a file names. */
int dt_progress_state_hash(const char *path, uint64_t *parameters,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
