/* SPDX-License-Identifier: MIT */
/* Speed of decoding with a random model and several sequences at a time. */
#ifndef DT_BENCH_DECODE_BENCH_H
#define DT_BENCH_DECODE_BENCH_H

#include "model/model.h"

struct dt_decode_speed {
    double step_s;    /* one token of each sequence: median */
    double least_s;   /* the fastest step */
    double bytes;     /* read by a step: weights and KV cache; mean over the steps */
    double prefill_s; /* of a prompt of half of the model's positions, at most DT_DECODE_PROMPT */
    int64_t prompt;   /* its tokens */
};

#define DT_DECODE_PROMPT 512

/* Decodes steps tokens of each sequence after a prompt of past tokens, and measures prefill: the
 * median of as many runs as steps, but no more than 3. */
int dt_decode_bench(struct dt_model *model, int sequences, int64_t past, int steps,
                    struct dt_decode_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
