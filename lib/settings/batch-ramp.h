/* SPDX-License-Identifier: MIT */
/*
 * The size of a step's batch, in passes of training.batch_size samples whose
 * gradients are added up. With a ramp it grows linearly over the first
 * training.batch_ramp_tokens tokens (Brown et al. 2020, appendix B); without, it is
 * training.gradient_accumulation_steps from the first step on. A pure function of the
 * samples that were used, so that a resumed run has the same steps.
 */
#ifndef DT_SETTINGS_BATCH_RAMP_H
#define DT_SETTINGS_BATCH_RAMP_H

#include <stdint.h>

#include "settings/settings.h"

/* Passes of the step that begins when so many samples were used. */
long dt_batch_passes(const struct dt_settings *settings, uint64_t samples);
/* Samples that the first steps use. */
uint64_t dt_batch_samples(const struct dt_settings *settings, long steps);
/* Steps until so many samples were used, or more; at most max_steps. */
long dt_batch_steps(const struct dt_settings *settings, double samples, long max_steps);

#endif
