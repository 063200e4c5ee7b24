/* SPDX-License-Identifier: MIT */
/* Throughput of encoding. */
#ifndef DT_BENCH_ENCODE_BENCH_H
#define DT_BENCH_ENCODE_BENCH_H

#include "base/error.h"
#include "token/tokenizer.h"

struct dt_encode_speed {
    uint64_t bytes, tokens;            /* of one pass */
    double seconds, processor_seconds; /* of the fastest pass; processor time of all threads */
    double first_seconds, first_processor_seconds; /* of the first pass: caches are empty */
};

/* Encodes text, split into documents of 1 MB, repeatedly on `threads` threads for `seconds`,
 * at least three passes. */
int dt_encode_bench(const struct dt_tokenizer *t, const char *text, size_t size, int threads,
                    double seconds, struct dt_encode_speed *speed,
                    struct dt_error *err) DT_MUST_CHECK;

#endif
