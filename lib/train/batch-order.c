/* SPDX-License-Identifier: MIT */
#include "settings/batch-ramp.h"
#include "train/training-internal.h"

void dt_reading_begin(struct dt_reading *r, const struct dt_settings *settings,
                      const struct dt_parallel *parallel, uint64_t samples)
{
    *r = (struct dt_reading){.settings = settings, .parallel = parallel, .samples = samples};
    r->passes = dt_batch_passes(settings, samples);
    r->end = dt_parallel_own(parallel, r->passes);
}

uint64_t dt_reading_next_place(void *reading)
{
    struct dt_reading *r = reading;
    uint64_t batch = (uint64_t)r->settings->training.batch_size;
    if (r->pass == r->end) {
        uint64_t samples = r->samples + (uint64_t)r->passes * batch;
        dt_reading_begin(r, r->settings, r->parallel, samples);
    }
    return r->samples + (uint64_t)dt_parallel_batch(r->parallel, r->passes, r->pass++) * batch;
}
