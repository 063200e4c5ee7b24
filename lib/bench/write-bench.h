/* SPDX-License-Identifier: MIT */
/* Throughput of writing shards, without a disk. */
#ifndef DT_BENCH_WRITE_BENCH_H
#define DT_BENCH_WRITE_BENCH_H

#include "shard/shard.h"

struct dt_write_speed {
    uint64_t tokens, documents, text_bytes; /* of the documents in memory */
    uint64_t shard_bytes;                   /* of the shards written */
    double seconds, processor_seconds;      /* of the fastest pass; processor time of all threads */
};

#define DT_WRITE_BENCH_TOKENS (1 << 26) /* limit of tokens in memory, approximately */

/* Writes the documents of a shard or token stream ("-": stdin) to /dev/null, compressed at level
 * on a thread pool, repeatedly for `seconds`, at least three passes. Writes rows as a list. */
int dt_write_bench(const char *path, int level, int threads, double seconds,
                   struct dt_write_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
