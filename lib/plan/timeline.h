/* SPDX-License-Identifier: MIT */
/* What happened when, for drawing: the trace event format of Chrome and Perfetto. */
#ifndef DT_PLAN_TIMELINE_H
#define DT_PLAN_TIMELINE_H

#include "base/error.h"

enum dt_lane { DT_LANE_COMPUTE, DT_LANE_DATA, DT_LANE_PIPELINE };

struct dt_timeline_span {
    const char *name; /* borrowed: a constant */
    int stage;
    enum dt_lane lane;
    long batch, chunk; /* micro-batch, or -1; part of the model */
    double start, end; /* seconds */
};

struct dt_timeline {
    struct dt_timeline_span *spans;
    long count, capacity;
};

void dt_timeline_add(struct dt_timeline *timeline,
                     const struct dt_timeline_span *span); /* NULL is fine */
/* Writes {"traceEvents": [...]}: a process is a stage, a thread one of its lanes, times are
 * microseconds. "-" is stdout. */
int dt_timeline_write(const struct dt_timeline *timeline, const char *path,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_timeline_release(struct dt_timeline *timeline);

#endif
