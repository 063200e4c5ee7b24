/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of a model in a layout: what a rank holds, and what it sends.
 *
 * The memory of a rank is what training's own plans say, of its part of the model, of
 * the store and of the passes under way, so that predicted and allocated bytes are the
 * same number.
 */
#ifndef DT_PLAN_SIZES_H
#define DT_PLAN_SIZES_H

#include "plan/layout.h"

/* Numbers of parameters by part. */
struct dt_part_sizes {
    double embedding, attention, mlp, norm, head, total;
};

/* Bytes of one rank. */
struct dt_rank_sizes {
    double parameters;  /* fp32: the master copy */
    double weights;     /* their copy in 16 bits, layers gathered, tables of rotary positions */
    double gradients;   /* fp32; with those of layers that are being reduced */
    double moments;     /* of the optimizer */
    double average;     /* of the parameters */
    double scratch;     /* of the optimizer */
    double activations; /* of all micro-batches in flight */
    double total;       /* all of these: device memory */
    double snapshot;    /* in host memory */
};

/* Bytes that one rank sends in a step, by the formulas of dt-plan(1). */
struct dt_traffic {
    double data, context, tensor, pipeline, total;
};

struct dt_stage_base {
    double elements;    /* of parameters that a rank computes with, padding included */
    double activations; /* bytes, of all micro-batches under way */
    double factors;     /* elements of gradients as powersgd sends them */
    long layers;
};

/* A model cut up by pp, cp, tp and chunks, at a layout's micro-batches and recomputation: what
 * layouts start from that differ in ZeRO alone. */
struct dt_base {
    struct dt_part_sizes parts;
    double element; /* bytes of a weight, and of an activation */
    double moments; /* bytes of the optimizer for one element */
    double state;   /* bytes of all parameters, moments and averages: of a checkpoint */
    double tied;    /* elements of the token embedding on a rank */
    double *runs;   /* elements of each run on a rank; owned */
    struct dt_stage_base *stages; /* owned */
};

/* settings are resolved, with the layout's own micro-batch and recomputation. */
int dt_base_init(struct dt_base *base, const struct dt_settings *settings,
                 const struct dt_plan_layout *layout, struct dt_error *err) DT_MUST_CHECK;
void dt_base_release(struct dt_base *base);

/* Of the first rank of a stage: bytes that it holds, and that it sends in a step. settings are
 * the layout's own (dt_plan_settings). */
int dt_sizes_stage(struct dt_rank_sizes *sizes, const struct dt_base *base,
                   const struct dt_settings *settings, const struct dt_plan_layout *layout,
                   long stage, struct dt_error *err) DT_MUST_CHECK;
struct dt_traffic dt_sizes_stage_traffic(const struct dt_base *base,
                                         const struct dt_settings *settings,
                                         const struct dt_plan_layout *layout, long stage);
/* Of one layer and micro-batch: keys and values that a rank sends to the next context, and
 * gradients of them, forward or backward. */
double dt_ring_bytes(const struct dt_base *base, const struct dt_settings *settings,
                     const struct dt_plan_layout *layout, bool backward);
/* Passes of a step in which gradients are reduced over the replicas. */
long dt_sizes_reductions(const struct dt_settings *settings, const struct dt_plan_layout *layout);

#endif
