/* SPDX-License-Identifier: MIT */
/* How fast a tokenizer encodes. */
#ifndef DT_TOKEN_ENCODE_BENCH_H
#define DT_TOKEN_ENCODE_BENCH_H

#include "base/error.h"
#include "token/tokenizer.h"

struct dt_encode_speed {
    uint64_t bytes, tokens;            /* of the text */
    double seconds, processor_seconds; /* of the fastest pass; the second of all threads */
};

/* Encodes text, in documents of 1 MB cut where no pattern notices, again and
 * again on so many threads until seconds are over, at least three times. */
int dt_encode_bench(const struct dt_tokenizer *t, const char *text, size_t size, int threads,
                    double seconds, struct dt_encode_speed *speed,
                    struct dt_error *err) DT_MUST_CHECK;

#endif
