/* SPDX-License-Identifier: MIT */
/* The timeline of steps: which phase, layer and operation ran from when to when, as trace events of
 * Chrome and Perfetto. Recording waits for each operation of a device with separate memory. */
#ifndef DT_TRAIN_STEP_TIMELINE_H
#define DT_TRAIN_STEP_TIMELINE_H

#include "device/device.h"
#include "device/time-spans.h"

struct dt_step_timeline {
    long first, last; /* steps, from 1; last 0: none */
    struct dt_device *device;
    struct dt_time_spans spans;
    double begin; /* of the step that is recorded; 0: none is */
};

/* text: "A:B" or "A" or "" (training.timeline_steps). */
int dt_step_timeline_init(struct dt_step_timeline *timeline, const char *text,
                          struct dt_device *device, struct dt_error *err) DT_MUST_CHECK;
void dt_step_timeline_release(struct dt_step_timeline *timeline);
/* Around each step, on its thread. */
void dt_step_timeline_begin(struct dt_step_timeline *timeline, long step);
void dt_step_timeline_end(struct dt_step_timeline *timeline, long step);
/* Writes the recorded steps of a rank to RUN/timeline-RANK.json. */
int dt_step_timeline_write(const struct dt_step_timeline *timeline, const char *run, int rank,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
