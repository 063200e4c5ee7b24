/* SPDX-License-Identifier: MIT */
/*
 * Discrete-event simulation of a training step.
 *
 * An actor is one pipeline stage of one data-parallel rank. Its cp x tp devices run in lockstep and
 * are simulated as one device, as slow as the slowest. An actor executes the actions of
 * parallel/pipeline-schedule.h in order, the same list that training executes, and with ZeRO-3
 * waits for the all-gather of each layer. Where ranks share devices, a stage waits for a free
 * device, first come, first served. Transfers overlap with compute. Each device has two links,
 * inside and between nodes; on each link collectives queue in order of time, and share its
 * bandwidth with messages between stages.
 *
 *     actor (dp 0, stage 0)  F0 F1 F2 B0 ...    compute
 *                               \ send / all-gather / reduce-scatter on the links
 *     actor (dp 0, stage 1)     F0 F1 B0 B1 ...
 *
 * Without stragglers all data-parallel ranks behave alike and one is simulated: thousands of ranks
 * cost as much as one pipeline. With stragglers every one is simulated, and collectives wait for
 * the last. Repeated rounds are simulated once (simulation-internal.h), so the cost does not grow
 * with the number of micro-batches, except for a timeline, which records all of them.
 */
#ifndef DT_PLAN_SIMULATION_H
#define DT_PLAN_SIMULATION_H

#include <stdint.h>

#include "base/progress.h"
#include "plan/costs.h"
#include "plan/timeline.h"

struct dt_simulation_options {
    double spread; /* of the devices' slowdown, as in struct dt_cluster */
    uint64_t seed;
    struct dt_timeline *timeline; /* of data-parallel rank 0; or NULL */
    struct dt_progress *progress; /* shown in long simulations; or NULL */
};

struct dt_step_simulation {
    double seconds; /* of the step */
    /* Seconds of an average device. */
    double computing, tensor, update; /* forward and backward; transfers in layers; optimizer */
    double pipeline_wait;             /* for other stages: the bubble */
    double data_wait;                 /* for exposed all-gathers and reductions */
    double bubble;                    /* pipeline_wait / (computing + tensor) */
    long in_flight;                   /* largest number of micro-batches that a stage held */
    double events;                    /* simulated or skipped */
    double known;                     /* of these, skipped */
};

/* Slowdown of the slowest of devices [first, first + devices): at least 1. */
double dt_simulation_slowness(const struct dt_simulation_options *options, long first,
                              long devices);

void dt_simulation_run(struct dt_step_simulation *result, const struct dt_costs *costs,
                       const struct dt_plan_layout *layout, const struct dt_cluster *cluster,
                       const struct dt_simulation_options *options);

#endif
