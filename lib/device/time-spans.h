/* SPDX-License-Identifier: MIT */
/*
 * Spans of time: what a thread did from when to when. Code marks them; they are recorded only while
 * the thread has a list, and otherwise cost a comparison.
 *
 *     double begin = dt_time_spans_begin();
 *     work();
 *     dt_time_spans_end(DT_TIME_LANE_PHASE, "load", -1, begin);
 */
#ifndef DT_DEVICE_TIME_SPANS_H
#define DT_DEVICE_TIME_SPANS_H

#include <pthread.h>
#include <stddef.h>

#include "base/clock.h"

/* Spans of one lane follow one another; those of a step contain its phases, phases layers, and
 * layers operations. */
enum dt_time_lane {
    DT_TIME_LANE_STEP,
    DT_TIME_LANE_PHASE,
    DT_TIME_LANE_LAYER,
    DT_TIME_LANE_OPERATION,
    DT_TIME_LANE_TRANSFER, /* of the communication thread */
    DT_TIME_LANE_LANES
};

struct dt_time_span {
    enum dt_time_lane lane;
    const char *name;    /* a constant, borrowed */
    long number;         /* of the step or layer; -1: none */
    double begin, end;   /* of dt_clock_now */
    double flops, bytes; /* 0: unknown */
};

struct dt_time_spans {
    struct dt_time_span *items;
    size_t count, capacity;
    pthread_mutex_t lock; /* several threads may add to one list */
};

/* The list of this thread; NULL: nothing is recorded. */
extern _Thread_local struct dt_time_spans *dt_time_spans_of_thread;

void dt_time_spans_init(struct dt_time_spans *spans);
void dt_time_spans_release(struct dt_time_spans *spans);

/* The time; 0: nothing is recorded. */
static inline double dt_time_spans_begin(void)
{
    return dt_time_spans_of_thread ? dt_clock_now() : 0;
}

/* Adds a span that ends now; nothing if begin is 0. */
void dt_time_spans_end(enum dt_time_lane lane, const char *name, long number, double begin);
void dt_time_spans_end_work(enum dt_time_lane lane, const char *name, double begin, double flops,
                            double bytes);

#endif
