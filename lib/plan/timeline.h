/* SPDX-License-Identifier: MIT */
/* A timeline of spans, written in the trace event format of Chrome and Perfetto. */
#ifndef DT_PLAN_TIMELINE_H
#define DT_PLAN_TIMELINE_H

#include "base/error.h"

enum dt_lane { DT_LANE_COMPUTE, DT_LANE_DATA, DT_LANE_PIPELINE };

struct dt_timeline_span {
    const char *name; /* a constant, borrowed */
    int stage;
    enum dt_lane lane;
    long batch, chunk; /* micro-batch, or -1; model chunk */
    double start, end; /* seconds */
};

/* The rates that the plan assumes of a device, from which a reader of the timeline can predict
 * single operations; all 0: unknown. */
struct dt_timeline_rates {
    double gemm, attention, memory; /* FLOP/s, FLOP/s, bytes/s */
    double launch;                  /* seconds of an operation */
};

struct dt_timeline {
    struct dt_timeline_span *spans;
    long count, capacity;
    struct dt_timeline_rates rates;
};

void dt_timeline_add(struct dt_timeline *timeline,
                     const struct dt_timeline_span *span); /* may be NULL */
/* Writes {"traceEvents": [...], "otherData": {rates}}: a process per pipeline stage, a thread per
 * lane, times in microseconds. path: "-" for stdout. */
int dt_timeline_write(const struct dt_timeline *timeline, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_timeline_release(struct dt_timeline *timeline);

#endif
