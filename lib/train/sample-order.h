/* SPDX-License-Identifier: MIT */
#ifndef DT_TRAIN_SAMPLE_ORDER_H
#define DT_TRAIN_SAMPLE_ORDER_H

#include "settings/settings.h"
#include "shard/dataset.h"

/* The order of the training samples: of training.seed, data.shuffle, data.shuffle_block and
 * data.shuffle_window. */
struct dt_sample_order dt_sample_order_get(const struct dt_settings *settings);

#endif
