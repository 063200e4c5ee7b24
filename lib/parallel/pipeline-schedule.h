/* SPDX-License-Identifier: MIT */
/*
 * Pipeline schedules as data: the actions of one stage in a step, in order.
 *
 *     struct dt_pipeline pipeline = {DT_PIPELINE_SCHEDULE_1F1B, stages, 1};
 *     struct dt_action action;
 *     for (int64_t position = 0;
 *          dt_pipeline_next(&pipeline, stage, batches, &position, &action);)
 *         ...
 *
 * Layers are split into stages * chunks virtual stages; rank r of the pipeline holds virtual stages
 * r, r + stages, r + 2 stages ... (its model chunks). F3: forward of micro-batch 3; B3: backward;
 * p stages, m micro-batches.
 *
 *     afab            all forward, then all backward (GPipe; Huang et al. 2019). Holds the
 *                     activations of m micro-batches.
 *
 *         stage 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
 *         stage 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
 *         stage 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3
 *
 *     1f1b            stage i warms up with min(m, p - 1 - i) forwards, then alternates forward and
 *                     backward, and holds the activations of at most p - i micro-batches
 *                     (PipeDream-flush; Narayanan et al. 2021, section 2.2)
 *
 *         stage 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
 *         stage 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
 *         stage 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
 *
 *     interleaved     1f1b over several model chunks a stage (ibid.): a smaller bubble, more
 * messages. Micro-batches go in groups of p through one chunk, then the next. 2 stages with chunks
 * a and b, forward:
 *
 *         stage 0  Fa0 Fa1 Fb0 Fb1 Fa2 Fa3 Fb2 Fb3
 *         stage 1  .   Fa0 Fa1 Fb0 Fb1 Fa2 Fa3 Fb2 ...
 *
 *     model_parallel  one micro-batch after the other: only one stage computes at a time
 *
 * Every schedule runs the forwards of a virtual stage in the order of the micro-batches, and the
 * backwards in the same order. So gradients are accumulated in one order and all schedules have the
 * same bits.
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
    int chunks; /* model chunks of a stage; 1 unless interleaved */
};

enum dt_action_kind {
    DT_ACTION_RECEIVE_INPUT, /* from the previous virtual stage */
    DT_ACTION_FORWARD,
    DT_ACTION_SEND_OUTPUT,      /* to the next virtual stage */
    DT_ACTION_RECEIVE_GRADIENT, /* from the next virtual stage */
    DT_ACTION_BACKWARD,
    DT_ACTION_SEND_GRADIENT /* to the previous virtual stage */
};

struct dt_action {
    enum dt_action_kind kind;
    int virtual_stage; /* 0 .. stages * chunks - 1 */
    int64_t batch;     /* micro-batch, 0 .. batches - 1 */
};

/* DT_EINVALID with the reason, if the schedule does not fit that number of micro-batches. */
int dt_pipeline_check(const struct dt_pipeline *pipeline, int64_t batches,
                      struct dt_error *err) DT_MUST_CHECK;
/* The stage's first action at or after *position, in a step of that number of micro-batches; sets
 * *position to the one after it. Positions count from 0. False at the end of the step. */
bool dt_pipeline_next(const struct dt_pipeline *pipeline, int stage, int64_t batches,
                      int64_t *position, struct dt_action *action);
/* Micro-batches whose activations a stage holds at a time for one of its virtual stages. */
int64_t dt_pipeline_in_flight(const struct dt_pipeline *pipeline, int stage, int64_t batches,
                              int virtual_stage);

/* The steady state: between warm-up and cool-down a stage repeats a round of actions, with other
 * micro-batches. */
struct dt_pipeline_round {
    int64_t positions;  /* of one round */
    int64_t first, end; /* positions of whole rounds, without the last micro-batch */
};
struct dt_pipeline_round dt_pipeline_round(const struct dt_pipeline *pipeline, int stage,
                                           int64_t batches);

#endif
