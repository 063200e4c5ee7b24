/* SPDX-License-Identifier: MIT */
#include "train/sample-order.h"

#include "settings/batch-ramp.h"
#include "train/training-internal.h"

struct dt_sample_order dt_sample_order_get(const struct dt_settings *settings)
{
    return (struct dt_sample_order){.seed = (uint64_t)settings->training.seed,
                                    .shuffle = settings->data.shuffle,
                                    .block = (uint64_t)settings->data.shuffle_block,
                                    .window = (uint64_t)settings->data.shuffle_window};
}

void dt_batch_order_begin(struct dt_batch_order *r, const struct dt_settings *settings,
                          const struct dt_data_parallel *dp, uint64_t samples)
{
    *r = (struct dt_batch_order){.settings = settings, .dp = dp, .samples = samples};
    r->batches = dt_batch_passes(settings, samples);
    r->end = dt_data_parallel_batch_count(dp, r->batches);
}

uint64_t dt_batch_order_next(void *order)
{
    struct dt_batch_order *r = order;
    uint64_t batch = (uint64_t)r->settings->training.batch_size;
    if (r->next == r->end) {
        uint64_t samples = r->samples + (uint64_t)r->batches * batch;
        dt_batch_order_begin(r, r->settings, r->dp, samples);
    }
    return r->samples - (uint64_t)r->settings->branch.data_start +
           (uint64_t)dt_data_parallel_batch(r->dp, r->batches, r->next++) * batch;
}
