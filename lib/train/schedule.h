/* SPDX-License-Identifier: MIT */
/* Learning-rate schedules: a linear warm-up to the peak, then one of several
 * ways down. Each is a pure function of the settings and the step's number. */
#ifndef DT_TRAIN_SCHEDULE_H
#define DT_TRAIN_SCHEDULE_H

#include "train/settings.h"

enum dt_schedule {
    DT_SCHEDULE_CONSTANT,
    DT_SCHEDULE_LINEAR,
    DT_SCHEDULE_COSINE,      /* half a period (Loshchilov and Hutter 2017) */
    DT_SCHEDULE_WSD,         /* warm-up, stable, decay (Hu and others 2024) */
    DT_SCHEDULE_INVERSE_SQRT /* of the step (Vaswani and others 2017) */
};

/* Their names in the order of the enum, ended by NULL. */
extern const char *const dt_schedules[];

/* Learning rate of step 0, 1, ...: reaches the peak in the last step of the
 * warm-up, and never falls below min_learning_rate_ratio of it after that. */
double dt_learning_rate(const struct dt_settings *settings, long step);

#endif
