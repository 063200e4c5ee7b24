/* SPDX-License-Identifier: MIT */
#include "train/sample-order.h"

struct dt_sample_order dt_sample_order_get(const struct dt_settings *settings)
{
    return (struct dt_sample_order){.seed = (uint64_t)settings->training.seed,
                                    .shuffle = settings->data.shuffle,
                                    .block = (uint64_t)settings->data.shuffle_block,
                                    .window = (uint64_t)settings->data.shuffle_window};
}
