/* SPDX-License-Identifier: MIT */
/*
 * Cost model of a step on a cluster: seconds of compute, bytes of transfers.
 *
 * A matrix product takes the longer of its arithmetic and of reading its operands (Williams et
 * al. 2009, "Roofline"), plus the time to write its result. All other operations are bound by
 * memory bandwidth. The constants belong to the cluster and are the same for all models.
 */
#ifndef DT_PLAN_COSTS_H
#define DT_PLAN_COSTS_H

#include "plan/sizes.h"

/* One transfer of one device. Links inside and between nodes are used at the same time. */
struct dt_transfer_cost {
    double inside, between; /* bytes inside a node, and between nodes */
    double latency;         /* seconds */
};

/* Forward and backward of one micro-batch through one model chunk, on each of its cp x tp ranks. */
struct dt_chunk_costs {
    double forward, backward; /* seconds of compute, recomputation included */
    /* Seconds of tensor-parallel collectives and of context-parallel ones. */
    double forward_tensor, backward_tensor;
    long layers;
    /* Of one layer, over the data-parallel ranks: all-gather of its weights, reduction of its
     * gradients in the last micro-batch, and in an earlier one. */
    struct dt_transfer_cost gather, reduce, reduce_earlier;
};

struct dt_costs {
    struct dt_chunk_costs *chunks;         /* pp * virtual stages, in model order */
    double send;                           /* bytes of a micro-batch's activations, or gradients */
    struct dt_transfer_cost weight_gather; /* ZeRO-1 and 2: updated weights, largest stage */
    long reductions; /* micro-batches of a step after which gradients are reduced */
    double update;   /* seconds, of the largest stage */
    double flops;    /* of a step, over all ranks */
    double tokens;   /* of a step */
};

/* Arithmetic and memory traffic of operations on one rank. seconds: with the cluster's
 * efficiencies; least: at its peaks, the sum over operations of the longer of arithmetic and
 * memory. */
struct dt_work {
    double flops, bytes, launches, seconds, least;
};

enum dt_work_part {
    DT_WORK_PRODUCTS, /* of layers */
    DT_WORK_ATTENTION,
    DT_WORK_NORMS,
    DT_WORK_ELEMENTS, /* activations, rotations, biases */
    DT_WORK_EMBEDDING,
    DT_WORK_HEAD,
    DT_WORK_LOSS,
    DT_WORK_PARTS
};
extern const char *const dt_work_names[]; /* of each; NULL-terminated */

/* Of a step, without its transfers. */
struct dt_step_work {
    struct dt_work forward[DT_WORK_PARTS], backward[DT_WORK_PARTS], update;
};

/* layout: of one device. */
void dt_costs_step_work(struct dt_step_work *work, const struct dt_base *base,
                        const struct dt_settings *settings, const struct dt_plan_layout *layout,
                        const struct dt_cluster *cluster);

/* Correction factors from a measurement on one device. */
struct dt_measured {
    double passes, update; /* measured seconds / predicted seconds; 1: no correction */
};

void dt_costs_init(struct dt_costs *costs, const struct dt_base *base,
                   const struct dt_settings *settings, const struct dt_plan_layout *layout,
                   const struct dt_cluster *cluster, const struct dt_measured *measured);
void dt_costs_release(struct dt_costs *costs);

/* Seconds of a transfer on otherwise idle links. */
double dt_transfer_cost_seconds(const struct dt_transfer_cost *transfer,
                                const struct dt_cluster *cluster);

/* Reads what `dt-bench --json step` measured with the same settings on one device (layout alone).
 * DT_EINVALID if its parameters or tokens differ. */
int dt_measured_read(struct dt_measured *measured, const char *path, const struct dt_base *base,
                     const struct dt_settings *settings, const struct dt_plan_layout *alone,
                     const struct dt_cluster *cluster, struct dt_error *err) DT_MUST_CHECK;

#endif
