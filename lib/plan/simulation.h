/* SPDX-License-Identifier: MIT */
/*
 * A step of training as a simulation of discrete events.
 *
 * An actor is a stage of a replica: the cp x tp devices of it move in step, so that one
 * stands for all, as slow as the slowest. It does the actions of parallel/pipeline-schedule.h in
 * their order, those that training itself does, and with ZeRO-3 waits for each layer's weights.
 * Where ranks share devices, a stage waits for one before it computes; who comes first goes first.
 * Transfers run beside the computing. Each device has two links, inside and between
 * nodes; on each, collectives queue in the order of time, and messages between stages
 * share it with them.
 *
 * Where all devices are equally fast, all replicas do the same at the same time, and one
 * stands for all of them: thousands of ranks cost as much as one pipeline. With
 * stragglers every replica is simulated, and collectives wait for the last. Rounds of a
 * schedule that come again are simulated once (simulation-internal.h), so that neither do many
 * micro-batches cost more than a few; but for those of a timeline, which has them all.
 */
#ifndef DT_PLAN_SIMULATION_H
#define DT_PLAN_SIMULATION_H

#include <stdint.h>

#include "base/progress.h"
#include "plan/costs.h"
#include "plan/timeline.h"

struct dt_simulation_options {
    double spread; /* of the devices' slowness, as in struct dt_cluster */
    uint64_t seed;
    struct dt_timeline *timeline; /* of the first replica; or NULL */
    struct dt_progress *progress; /* shown where it takes long; or NULL */
};

struct dt_step_simulation {
    double seconds; /* of the step */
    /* What an average device does in it: seconds. */
    double computing, tensor, update; /* passes; transfers inside layers; optimizer */
    double pipeline_wait;             /* for other stages: the bubble */
    double data_wait;                 /* for gathers and reductions that nothing hides */
    double bubble;                    /* pipeline_wait over computing and tensor */
    long in_flight;                   /* most passes whose activations a stage held */
    double events;                    /* of all that was simulated, or known without it */
    double known;                     /* of these, events of rounds that came again */
};

/* How much slower than a device of full speed the slowest of some is: at least 1. */
double dt_simulation_slowness(const struct dt_simulation_options *options, long first,
                              long devices);

void dt_simulation_run(struct dt_step_simulation *result, const struct dt_costs *costs,
                       const struct dt_plan_layout *layout, const struct dt_cluster *cluster,
                       const struct dt_simulation_options *options);

#endif
