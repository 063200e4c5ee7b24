/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules: a linear warm-up to the peak, then one of several
 * ways down. Each is a pure function of the settings and the step's number. */
#ifndef DT_OPTIM_LEARNING_RATE_H
#define DT_OPTIM_LEARNING_RATE_H

#include "settings/settings.h"

/* Learning rate of step 0, 1, ...: reaches the peak in the last step of the
 * warm-up, and never falls below min_learning_rate_ratio of it after that. */
double dt_learning_rate(const struct dt_settings *settings, long step);

#endif
