/* SPDX-License-Identifier: MIT */
/* Running mean and variance of the loss, to tell a spike: exact over the first 100
 * updates, exponentially weighted with 1/100 after them. */
#ifndef DT_OPTIM_LOSS_STATISTICS_H
#define DT_OPTIM_LOSS_STATISTICS_H

#include <stdbool.h>

struct dt_loss_statistics {
    double mean, variance;
    long updates;
};

void dt_loss_statistics_add(struct dt_loss_statistics *statistics, double loss);
/* Whether a loss is more than threshold standard deviations above the mean. Never
 * before 100 losses were noted. */
bool dt_loss_statistics_is_spike(const struct dt_loss_statistics *statistics, double loss,
                                 double threshold);

#endif
