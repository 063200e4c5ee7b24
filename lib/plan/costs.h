/* SPDX-License-Identifier: MIT */
/*
 * What the parts of a step cost on a cluster: seconds of computing, and transfers.
 *
 * A matrix product takes as long as its arithmetic or the reading of its operands,
 * whichever is longer (Williams et al. 2009, "Roofline"), and the writing of its result;
 * everything else as long as its bytes. The constants are the cluster's, the same for all models.
 */
#ifndef DT_PLAN_COSTS_H
#define DT_PLAN_COSTS_H

#include "plan/sizes.h"

/* Bytes over the links of one device, both at a time. */
struct dt_transfer_cost {
    double inside, between; /* bytes */
    double latency;         /* seconds */
};

/* Of one pass of a micro-batch through one chunk, on each of its cp x tp devices. */
struct dt_chunk_costs {
    double forward, backward;               /* seconds of computing, recomputation included */
    double forward_tensor, backward_tensor; /* seconds in collectives of tensor parallelism, and
                                             * in what rings of contexts do not hide */
    long layers;
    /* Of one layer's share of the chunk, over the replicas; round: what is reduced of a micro-batch
     * before the last one. */
    struct dt_transfer_cost gather, reduce, round;
};

struct dt_costs {
    struct dt_chunk_costs *chunks; /* pp * chunks, in the order of the model */
    double send;                   /* bytes of a micro-batch's activations, or gradients */
    struct dt_transfer_cost share; /* ZeRO-1 and 2: updated weights, of the largest stage */
    long reductions;               /* passes of a step behind which gradients are reduced */
    double update;                 /* seconds, of the largest stage */
    double flops;                  /* of a step, over all ranks */
    double tokens;                 /* of a step */
};

/* What a run measured on one device, to be put in the place of what is predicted for it. */
struct dt_measured {
    double passes, update; /* seconds measured over seconds predicted; 1: as predicted */
};

void dt_costs_init(struct dt_costs *costs, const struct dt_base *base,
                   const struct dt_settings *settings, const struct dt_plan_layout *layout,
                   const struct dt_cluster *cluster, const struct dt_measured *measured);
void dt_costs_release(struct dt_costs *costs);

/* Seconds that a device's transfer takes if it has its links to itself. */
double dt_transfer_cost_seconds(const struct dt_transfer_cost *transfer,
                                const struct dt_cluster *cluster);

/* Scales predictions to what `dt-bench --json step` has measured with the same settings
 * on one device, the layout alone. DT_EINVALID if they are not the same. */
int dt_measured_read(struct dt_measured *measured, const char *path, const struct dt_base *base,
                     const struct dt_settings *settings, const struct dt_plan_layout *alone,
                     const struct dt_cluster *cluster, struct dt_error *err) DT_MUST_CHECK;

#endif
