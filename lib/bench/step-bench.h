/* SPDX-License-Identifier: MIT */
/* Measures a training step on random tokens, without data or files. */
#ifndef DT_BENCH_STEP_BENCH_H
#define DT_BENCH_STEP_BENCH_H

#include "device/device.h"
#include "settings/settings.h"

struct dt_step_times {
    double forward_backward, update; /* seconds, medians over the steps */
    double total;                    /* median of their sum */
    double processor;                /* seconds of all threads in one step, mean */
    double flops;                    /* of one step, by dt_model_flops_per_token */
    int64_t tokens, parameters;
    size_t memory; /* bytes of the device */
};

/* One warm-up step, then `steps` measured ones. settings: resolved (dt_settings_resolve). */
int dt_step_bench(struct dt_device *dev, const struct dt_settings *settings, int steps,
                  struct dt_step_times *times, struct dt_error *err) DT_MUST_CHECK;

#endif
