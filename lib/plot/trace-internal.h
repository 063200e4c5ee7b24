/* SPDX-License-Identifier: MIT */
/* A trace in memory, shared by drawing one and comparing two. */
#ifndef DT_PLOT_TRACE_INTERNAL_H
#define DT_PLOT_TRACE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define DT_TRACE_LANES 512

struct dt_trace_box {
    int lane, kind;
    double begin, end; /* microseconds */
    char *name;
    /* Of the spans that dt-train records; all of a plan are phases. */
    bool is_step, is_phase, is_operation;
    double flops, bytes; /* of an operation */
};

struct dt_trace_lane {
    long process, thread;
    char *name;
};

struct dt_trace {
    struct dt_trace_box *boxes;
    size_t count, capacity;
    struct dt_trace_lane lanes[DT_TRACE_LANES];
    int lane_count;
    char **kinds; /* first words of names; the rarer ones are one */
    int kind_count, kind_capacity;
    double end;
    /* What a plan assumes of a device, per second; and seconds of an operation. 0: unknown. */
    double gemm_rate, attention_rate, memory_rate, launch;
};

/* timeline.c. *trace is zeroed before; free it with dt_trace_free, also after a failure. */
int dt_trace_read(struct dt_trace *trace, const char *path, struct dt_error *err) DT_MUST_CHECK;
void dt_trace_free(struct dt_trace *trace);

#endif
