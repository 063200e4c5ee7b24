/* SPDX-License-Identifier: MIT */
/* Speed of collectives. */
#ifndef DT_BENCH_COLLECTIVE_BENCH_H
#define DT_BENCH_COLLECTIVE_BENCH_H

#include "comm/comm.h"

enum dt_collective {
    DT_COLLECTIVE_REDUCE_SCATTER,
    DT_COLLECTIVE_ALL_GATHER,
    DT_COLLECTIVE_BROADCAST,
    DT_COLLECTIVE_COUNT
};
extern const char *const dt_collective_names[];

struct dt_collective_speed {
    double seconds; /* of the fastest run */
    uint64_t sent;  /* bytes that this rank sends per run */
};

/* Times a collective over an array of N floats. Runs it at least 3 times, and more often for small
 * arrays, up to about 256 MiB in total. Collective. */
int dt_collective_bench(struct dt_comm *comm, enum dt_collective what, size_t floats,
                        struct dt_collective_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
