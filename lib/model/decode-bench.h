/* SPDX-License-Identifier: MIT */
/* Speed of generating: a random model, sequences that grow side by side. */
#ifndef DT_MODEL_DECODE_BENCH_H
#define DT_MODEL_DECODE_BENCH_H

#include "model/model.h"

struct dt_decode_speed {
    double step_s;  /* for a token of each stream: median */
    double least_s; /* the fastest step, which nothing disturbed */
    double bytes;   /* that a step reads: weights once, keys and values; the mean over the steps */
};

/* Behind a prompt of past tokens each stream grows by steps more. */
int dt_decode_bench(struct dt_model *model, int sequences, int64_t past, int steps,
                    struct dt_decode_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
