/* SPDX-License-Identifier: MIT */
#include "train/interval.h"

#include <math.h>

#include "train/training-internal.h"

/* How many intervals a position has completed. */
static double completed(const struct dt_settings *s, const struct dt_config_amount *interval,
                        uint64_t samples, const struct dt_interval_position *at)
{
    switch ((enum dt_interval_unit)interval->unit) {
    case DT_INTERVAL_UNIT_STEPS:
        return floor((double)at->step / interval->count);
    case DT_INTERVAL_UNIT_TOKENS:
        return floor((double)at->samples * (double)dt_settings_sample_tokens(s) / interval->count);
    case DT_INTERVAL_UNIT_SAMPLES:
        return floor((double)at->samples / interval->count);
    case DT_INTERVAL_UNIT_EPOCHS:
        return floor((double)(at->samples - (uint64_t)s->branch.data_start) /
                     (interval->count * (double)samples));
    case DT_INTERVAL_UNIT_MINUTES:
        return floor(at->seconds / (60 * interval->count));
    }
    return 0;
}

bool dt_interval_is_due(const struct dt_settings *s, const struct dt_config_amount *interval,
                        uint64_t samples, const struct dt_interval_position *before,
                        const struct dt_interval_position *after)
{
    return interval->count > 0 &&
           completed(s, interval, samples, after) > completed(s, interval, samples, before);
}

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
