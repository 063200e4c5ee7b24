/* SPDX-License-Identifier: MIT */
/* Speed of decoding with a random model and several sequences at a time. */
#ifndef DT_MODEL_DECODE_BENCH_H
#define DT_MODEL_DECODE_BENCH_H

#include "model/model.h"

struct dt_decode_speed {
    double step_s;  /* one token of each sequence: median */
    double least_s; /* the fastest step */
    double bytes;   /* read by a step: weights and KV cache; mean over the steps */
};

/* Decodes steps tokens of each sequence after a prompt of past tokens. */
int dt_decode_bench(struct dt_model *model, int sequences, int64_t past, int steps,
                    struct dt_decode_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
