/* SPDX-License-Identifier: MIT */
/*
 * Intervals of logging, validation and checkpoints: in steps, tokens, samples, epochs or minutes of
 * training.
 *
 *     if (dt_interval_is_due(&s, &s.training.save_interval, samples, &before, &after))
 *         save();
 *
 * An interval is due after the step that reaches or passes a multiple of it, so that a resumed run
 * keeps the cadence.
 */
#ifndef DT_TRAIN_INTERVAL_H
#define DT_TRAIN_INTERVAL_H

#include <stdint.h>

#include "settings/settings.h"

/* How far a run is, before or after a step. */
struct dt_interval_position {
    long step;
    uint64_t samples;
    double seconds; /* of training */
};

/* Whether the step between the positions reaches a multiple of the interval; an interval of 0 is
 * never due. samples: of an epoch. */
bool dt_interval_is_due(const struct dt_settings *settings, const struct dt_config_amount *interval,
                        uint64_t samples, const struct dt_interval_position *before,
                        const struct dt_interval_position *after);

#endif
