/* SPDX-License-Identifier: MIT */
/* The progress of a run, without its tensors, and its file trainer/state.json (dt-checkpoint(5)).
 */
#ifndef DT_CHECKPOINT_PROGRESS_STATE_H
#define DT_CHECKPOINT_PROGRESS_STATE_H

#include <stdint.h>

#include "base/error.h"
#include "optim/loss-scale.h"
#include "optim/loss-statistics.h"
#include "settings/settings.h"

/* With parameters, optimizer state and EMA: the whole state of a run. */
struct dt_progress_state {
    long step;         /* optimizer steps done, skipped ones included */
    uint64_t samples;  /* sequences consumed: the position in the shuffled data */
    double seconds;    /* of training so far */
    double timed;      /* seconds up to which intervals in minutes have been considered */
    long logged_lines; /* lines with a step in metrics.jsonl; 0: unknown */
    struct {
        long step;
        double loss;
    } best[DT_BEST_MOST]; /* the lowest validation losses so far, ascending; equal ones by step */
    int best_count;
    long validations_since_best;
    long skipped; /* updates skipped, because loss or gradient were not finite or a loss spike */
    long skipped_in_row;
    long residual_ranks; /* ranks with an error feedback residual in the checkpoint; 0: none */
    struct dt_loss_scale loss_scale;
    struct dt_loss_statistics losses;
};

/* data: fingerprint of the training split; parameters: hash of the weights. */
int dt_progress_state_write(const struct dt_progress_state *progress, uint64_t data,
                            uint64_t parameters, const char *path,
                            struct dt_error *err) DT_MUST_CHECK;
/* *data: the fingerprint in the file. Members that the file lacks keep their values. */
int dt_progress_state_read(struct dt_progress_state *progress, uint64_t *data, const char *path,
                           struct dt_error *err) DT_MUST_CHECK;
/* The hash of the weights in such a file. */
int dt_progress_state_hash(const char *path, uint64_t *parameters,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
