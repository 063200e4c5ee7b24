/* SPDX-License-Identifier: MIT */
/* Running mean and variance of the loss, to detect spikes: exact over the first 100 updates, then
 * exponentially weighted with 1/100. */
#ifndef DT_OPTIM_LOSS_STATISTICS_H
#define DT_OPTIM_LOSS_STATISTICS_H

#include <stdbool.h>

struct dt_loss_statistics {
    double mean, variance;
    long updates;
};

void dt_loss_statistics_add(struct dt_loss_statistics *statistics, double loss);
/* Whether a loss is more than threshold standard deviations above the mean. Always false for the
 * first 100 losses. */
bool dt_loss_statistics_is_spike(const struct dt_loss_statistics *statistics, double loss,
                                 double threshold);

#endif
