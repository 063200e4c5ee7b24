/* SPDX-License-Identifier: MIT */
/* Speed of what ranks tell each other. */
#ifndef DT_COMM_COLLECTIVE_BENCH_H
#define DT_COMM_COLLECTIVE_BENCH_H

#include "comm/comm.h"

enum dt_collective {
    DT_COLLECTIVE_REDUCE_SCATTER,
    DT_COLLECTIVE_ALL_GATHER,
    DT_COLLECTIVE_BROADCAST,
    DT_COLLECTIVE_COUNT
};
extern const char *const dt_collective_names[]; /* their names */

struct dt_collective_speed {
    double seconds; /* the fastest of all times */
    uint64_t sent;  /* bytes that this rank sends in one */
};

/* Of an array of so many floats, repeated as often as fits about 256 MiB, and three times at
 * least; every rank asks. */
int dt_collective_bench(struct dt_comm *comm, enum dt_collective what, size_t floats,
                        struct dt_collective_speed *speed, struct dt_error *err) DT_MUST_CHECK;

#endif
