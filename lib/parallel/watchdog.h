/* SPDX-License-Identifier: MIT */
/* What tells of ranks that have come apart, or hold the others up. */
#ifndef DT_PARALLEL_WATCHDOG_H
#define DT_PARALLEL_WATCHDOG_H

#include "parallel/train-state.h"

/* Replicas compare hashes of what they all hold: parameters, or weights where parameters are
 * shared out, and at stage 3 what groups of replicas have alike. DT_EINVALID names the first rank
 * and tensor that differ from the first rank's. */
int dt_watchdog_parameters(struct dt_train_state *store, struct dt_error *err) DT_MUST_CHECK;

/* A rank that computes longer than the others, who wait for it. */
struct dt_pace {
    int slowest;   /* rank */
    double factor; /* its time for a pass over the median of all; near 1: all are alike */
};
/* busy: this rank's seconds of computing lately, in so many passes of micro-batches, of which not
 * all ranks have as many; every rank of the group asks. */
int dt_watchdog_pace(struct dt_comm *comm, double busy, int64_t passes, struct dt_pace *pace,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
