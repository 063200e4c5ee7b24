/* SPDX-License-Identifier: MIT */
/* How fast shards are written when no disk is waited for. */
#ifndef DT_SHARD_WRITE_BENCH_H
#define DT_SHARD_WRITE_BENCH_H

#include "shard/shard.h"

struct dt_write_speed {
    uint64_t tokens, documents, text_bytes; /* of the stream, as far as it was taken */
    uint64_t shard_bytes;                   /* what they become */
    double seconds, processor_seconds;      /* of the fastest pass; the second of all threads */
};

#define DT_WRITE_BENCH_TOKENS (1 << 26) /* no more than about so many are taken into memory */

/* Writes the documents of a shard or token stream ("-": stdin) to /dev/null, compressed at
 * that level on so many threads, again and again until seconds are over, at least three times.
 * Rows are written as a list. */
int dt_write_bench(const char *path, int level, int threads, double seconds,
                   struct dt_write_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
