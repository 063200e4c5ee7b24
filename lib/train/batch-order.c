/* SPDX-License-Identifier: MIT */
#include "settings/batch-ramp.h"
#include "train/training-internal.h"

void dt_batch_order_begin(struct dt_batch_order *r, const struct dt_settings *settings,
                          const struct dt_data_parallel *parallel, uint64_t samples)
{
    *r = (struct dt_batch_order){.settings = settings, .parallel = parallel, .samples = samples};
    r->passes = dt_batch_passes(settings, samples);
    r->end = dt_data_parallel_own_batches(parallel, r->passes);
}

uint64_t dt_batch_order_next(void *reading)
{
    struct dt_batch_order *r = reading;
    uint64_t batch = (uint64_t)r->settings->training.batch_size;
    if (r->pass == r->end) {
        uint64_t samples = r->samples + (uint64_t)r->passes * batch;
        dt_batch_order_begin(r, r->settings, r->parallel, samples);
    }
    return r->samples + (uint64_t)dt_data_parallel_batch(r->parallel, r->passes, r->pass++) * batch;
}
