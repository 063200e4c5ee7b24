/* SPDX-License-Identifier: MIT */
/*
 * Goodput: the fraction of a long run's time that is progress, given failures and checkpoints.
 *
 * Failures are a Poisson process whose rate grows with the number of devices. A failure costs the
 * restart and the work since the last checkpoint; a checkpoint costs the time to write it. The
 * optimal checkpoint interval is that of Young (1974), refined by Daly (2006); the expected
 * goodput is Daly's complete model.
 */
#ifndef DT_PLAN_GOODPUT_H
#define DT_PLAN_GOODPUT_H

#include <stdint.h>

#include "plan/sizes.h"

struct dt_goodput {
    double mtbf;        /* seconds between failures of the job; 0: no failures */
    double checkpoint;  /* seconds to write one */
    double restart;     /* seconds */
    double young, daly; /* optimal checkpoint intervals, seconds */
    double share;       /* fraction of time that is progress, at Daly's interval */
};

struct dt_goodput dt_goodput(const struct dt_base *base, const struct dt_plan_layout *layout,
                             const struct dt_cluster *cluster);
/* Goodput at a checkpoint interval, mtbf > 0: its expectation, and that of one simulated run of
 * progress seconds of work, or of a million failures if those come first. */
double dt_goodput_expected(const struct dt_goodput *goodput, double interval);
double dt_goodput_simulated(const struct dt_goodput *goodput, double interval, double progress,
                            uint64_t seed);

#endif
