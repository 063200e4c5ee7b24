/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules: linear warm-up to the peak, then decay. Each is a pure function of the
 * settings and the step. */
#ifndef DT_OPTIM_LEARNING_RATE_H
#define DT_OPTIM_LEARNING_RATE_H

#include "settings/settings.h"

/* Learning rate of a step, which counts from 0. The last step of the warm-up has the peak rate;
 * after it the rate is at least min_learning_rate_ratio times the peak. */
double dt_learning_rate(const struct dt_settings *settings, long step);

#endif
