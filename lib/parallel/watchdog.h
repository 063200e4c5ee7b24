/* SPDX-License-Identifier: MIT */
/* Detects ranks whose parameters have diverged, and stragglers. */
#ifndef DT_PARALLEL_WATCHDOG_H
#define DT_PARALLEL_WATCHDOG_H

#include "parallel/train-state.h"

/* Compares hashes of what data-parallel ranks replicate: parameters (zero_stage 0), weights (1, 2),
 * or the shards of sharding groups (3). DT_EINVALID names the first tensor that differs and its
 * rank. Collective. */
int dt_watchdog_compare_parameters(struct dt_train_state *state,
                                   struct dt_error *err) DT_MUST_CHECK;

struct dt_straggler {
    int rank;      /* the slowest */
    double factor; /* its seconds for a micro-batch over the median of all ranks; 1: equal */
};
/* busy: this rank's seconds of computing since the last call, without waiting, for that number of
 * micro-batches. Collective. */
int dt_watchdog_find_straggler(struct dt_comm *comm, double busy, int64_t batches,
                               struct dt_straggler *straggler, struct dt_error *err) DT_MUST_CHECK;

#endif
