/* SPDX-License-Identifier: MIT */
/*
 * Failures and checkpoints: how much of the time of a long run is progress.
 *
 * Failures come as a Poisson process, at the rate of one device times their number. One
 * costs the time to start again and what was done since the last checkpoint; a checkpoint
 * costs the time to write it. The best interval between checkpoints is that of Young
 * (1974), refined by Daly (2006); the expected share is Daly's complete model.
 */
#ifndef DT_PLAN_GOODPUT_H
#define DT_PLAN_GOODPUT_H

#include <stdint.h>

#include "plan/sizes.h"

struct dt_goodput {
    double mtbf;        /* seconds between failures of the whole; 0: none */
    double checkpoint;  /* seconds to write one */
    double restart;     /* seconds */
    double young, daly; /* best intervals between checkpoints, by each: seconds */
    double share;       /* of the time that is progress, with Daly's interval */
};

struct dt_goodput dt_goodput(const struct dt_base *base, const struct dt_plan_layout *layout,
                             const struct dt_cluster *cluster);
/* What share of the time is progress with that interval, where there are failures: expected, and
 * drawn by seed for a run of so many seconds of progress, or up to its millionth failure. */
double dt_goodput_expected(const struct dt_goodput *goodput, double interval);
double dt_goodput_simulated(const struct dt_goodput *goodput, double interval, double progress,
                            uint64_t seed);

#endif
