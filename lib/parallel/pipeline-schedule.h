/* SPDX-License-Identifier: MIT */
/*
 * Schedules of pipeline parallelism, as data: what a stage does in a step, in order.
 *
 *     struct dt_pipeline pipeline = {DT_PIPELINE_SCHEDULE_1F1B, stages, 1};
 *     struct dt_action action;
 *     for (int64_t place = 0; dt_pipeline_next(&pipeline, stage, batches, &place, &action);)
 *         ...
 *
 * The layers are cut into stages * chunks runs; run r is held by stage r mod stages.
 * Micro-batches of a run are passed forward in their order, and backward in the same
 * order, whatever the schedule: so gradients are added in one order, and every schedule
 * gives the same bits.
 *
 *     afab            all forward, then all backward (GPipe; Huang et al. 2019)
 *     1f1b            after min(m, p - 1 - i) forward passes, stage i does one forward and
 *                     one backward by turns, so that p - i micro-batches are under way at
 *                     most (PipeDream-flush; Narayanan et al. 2021, section 2.2)
 *     interleaved     the same over several chunks of layers a stage (ibid.)
 *     model_parallel  one micro-batch after the other: one stage computes at a time
 */
#ifndef DT_PARALLEL_PIPELINE_SCHEDULE_H
#define DT_PARALLEL_PIPELINE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "settings/choices.h"

struct dt_pipeline {
    enum dt_pipeline_schedule schedule;
    int stages;
    int chunks; /* runs of layers that a stage holds; 1 unless interleaved */
};

enum dt_action_kind {
    DT_ACTION_RECEIVE_INPUT, /* from the run before */
    DT_ACTION_FORWARD,
    DT_ACTION_SEND_OUTPUT,      /* to the run behind */
    DT_ACTION_RECEIVE_GRADIENT, /* from the run behind */
    DT_ACTION_BACKWARD,
    DT_ACTION_SEND_GRADIENT /* to the run before */
};

struct dt_action {
    enum dt_action_kind kind;
    int run;       /* of all stages' */
    int64_t batch; /* micro-batch, 0 .. batches - 1 */
};

/* DT_EINVALID, saying why, if the schedule cannot pass so many micro-batches. */
int dt_pipeline_check(const struct dt_pipeline *pipeline, int64_t batches,
                      struct dt_error *err) DT_MUST_CHECK;
/* The action at *place, or the first behind it, of a stage in a step of so many micro-batches;
 * then *place is the one behind that. Places count from 0. False at the end of the step. */
bool dt_pipeline_next(const struct dt_pipeline *pipeline, int stage, int64_t batches,
                      int64_t *place, struct dt_action *action);
/* Micro-batches whose activations a run of that stage must hold at a time. */
int64_t dt_pipeline_under_way(const struct dt_pipeline *pipeline, int stage, int64_t batches,
                              int run);

/* Between its warm-up and its end a stage does the same again and again, in rounds: with other
 * micro-batches, at other places. */
struct dt_pipeline_round {
    int64_t places;     /* of a round */
    int64_t first, end; /* of whole rounds, none of which has the last micro-batch */
};
struct dt_pipeline_round dt_pipeline_round(const struct dt_pipeline *pipeline, int stage,
                                           int64_t batches);

#endif
