/* SPDX-License-Identifier: MIT */
#include "train/training-internal.h"

unsigned dt_training_due(const struct dt_training *t, bool minutes,
                         const struct dt_interval_position *before,
                         const struct dt_interval_position *after)
{
    const struct dt_config_amount *intervals[] = {&t->settings.training.log_interval,
                                                  &t->settings.training.eval_interval,
                                                  &t->settings.training.save_interval};
    unsigned due = 0;
    for (int i = 0; i < 3; i++)
        if ((intervals[i]->unit == DT_INTERVAL_UNIT_MINUTES) == minutes &&
            dt_interval_is_due(&t->settings, intervals[i], t->samples, before, after))
            due |= 1U << i;
    return due;
}
