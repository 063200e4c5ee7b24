/* SPDX-License-Identifier: MIT */
/* Throughput of a loader without a consumer. */
#ifndef DT_BENCH_LOAD_BENCH_H
#define DT_BENCH_LOAD_BENCH_H

#include "shard/loader.h"

struct dt_load_speed {
    uint64_t tokens;  /* read: rows x length */
    uint64_t targets; /* that carry loss */
    double seconds, processor_seconds;
    size_t memory; /* dt_loader_memory */
};

/* Reads for `seconds` of processor time, after a warm-up of half of it. dataset is borrowed. */
int dt_load_bench(struct dt_dataset *dataset, const struct dt_loader_options *options,
                  double seconds, struct dt_load_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
