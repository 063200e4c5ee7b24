/* SPDX-License-Identifier: MIT */
/* Benchmark of the attention ops on random values. */
#ifndef DT_BENCH_ATTENTION_BENCH_H
#define DT_BENCH_ATTENTION_BENCH_H

#include "device/device.h"

struct dt_attention_size {
    int64_t batch, length, width; /* width: channels of all heads */
    int64_t heads, kv_heads;
    enum dt_dtype type;
    bool bidirectional;
    int64_t window; /* as the next two, of struct dt_attention */
    float scale, softcap;
    double keys; /* that a query attends to, in the mean, as FLOPs are counted */
};

struct dt_attention_speed {
    double forward, backward;             /* seconds of one call, the minimum of all */
    double forward_flops, backward_flops; /* of one call */
    double bytes;                         /* the minimum that forward reads and writes */
};

/* Repeats forward and backward for this many seconds, at least three times. */
int dt_attention_bench(struct dt_device *dev, const struct dt_attention_size *size, double seconds,
                       struct dt_attention_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
