/* SPDX-License-Identifier: MIT */
/* Speed of attention by itself, on random values. */
#ifndef DT_DEVICE_ATTENTION_BENCH_H
#define DT_DEVICE_ATTENTION_BENCH_H

#include "device/device.h"

struct dt_attention_size {
    int64_t batch, length, width; /* width: of all heads together */
    int64_t heads, kv_heads;
    enum dt_dtype type;
    bool bidirectional;
};

struct dt_attention_speed {
    double forward, backward;             /* seconds of a pass, the fastest of all times */
    double forward_flops, backward_flops; /* of one; causal attention counts half */
    double bytes;                         /* that forward reads and writes at the least */
};

/* Repeats both for that many seconds, and three times at least. */
int dt_attention_bench(struct dt_device *dev, const struct dt_attention_size *size, double seconds,
                       struct dt_attention_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
