/* SPDX-License-Identifier: MIT */
/*
 * The number of micro-batches of training.batch_size samples that a step accumulates. With a ramp
 * it grows linearly over the first training.batch_ramp_tokens tokens (Brown et al. 2020, appendix
 * B); without, it is training.gradient_accumulation_steps from the first step on. A pure function
 * of the samples used so far, so that a resumed run has the same steps.
 */
#ifndef DT_SETTINGS_BATCH_RAMP_H
#define DT_SETTINGS_BATCH_RAMP_H

#include <stdint.h>

#include "settings/settings.h"

/* Micro-batches of the step that begins after a number of samples. */
long dt_batch_passes(const struct dt_settings *settings, uint64_t samples);
/* Samples that the first steps use; rounded where they exceed 2^53. */
double dt_batch_samples(const struct dt_settings *settings, long steps);
/* Steps until at least a number of samples were used; at most max_steps. */
long dt_batch_steps(const struct dt_settings *settings, double samples, long max_steps);

#endif
