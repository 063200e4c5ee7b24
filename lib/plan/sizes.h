/* SPDX-License-Identifier: MIT */
/*
 * Memory and traffic of a rank in a layout.
 *
 * Memory comes from the functions that training allocates by (dt_model_plan, dt_train_state_plan,
 * dt_passes_plan), so predicted and allocated bytes are equal.
 */
#ifndef DT_PLAN_SIZES_H
#define DT_PLAN_SIZES_H

#include "plan/layout.h"

/* Parameter counts by part of the model. */
struct dt_part_sizes {
    double embedding, attention, mlp, norm, head, total;
};

/* Bytes of one rank. */
struct dt_rank_sizes {
    double parameters;  /* fp32 master copy */
    double weights;     /* 16-bit copy, all-gathered layers, RoPE tables */
    double gradients;   /* fp32, with the buckets in reduction */
    double moments;     /* of the optimizer */
    double average;     /* moving average of the parameters */
    double scratch;     /* of the optimizer */
    double activations; /* of all micro-batches in flight */
    double sampler;     /* of completions, and the reference model: objective grpo */
    double total;       /* device memory: the sum of the above */
    double snapshot;    /* host memory of the checkpoint snapshot */
};

/* Bytes sent by a rank per step, by the formulas of dt-plan(1). */
struct dt_traffic {
    double data, context, tensor, pipeline, total;
};

struct dt_stage_base {
    double elements;    /* parameters of a rank before ZeRO, padding included */
    double activations; /* bytes, of all micro-batches in flight */
    double factors;     /* elements of PowerSGD's gradient messages */
    long layers;
};

/* A model partitioned by pp, cp, tp and virtual stages, with micro-batch and recompute of a layout.
 * Layouts that differ only in ZeRO share it. */
struct dt_base {
    struct dt_part_sizes parts;
    double element;               /* bytes of a weight, and of an activation */
    double moments;               /* optimizer bytes per element */
    double state;                 /* bytes of a checkpoint: parameters, moments, average */
    double tied;                  /* elements of a rank's token embedding */
    double *chunk_elements;       /* of a rank, per model chunk; owned */
    struct dt_stage_base *stages; /* owned */
};

/* settings: resolved, with the layout's micro-batch and recompute (dt_plan_settings). */
int dt_base_init(struct dt_base *base, const struct dt_settings *settings,
                 const struct dt_plan_layout *layout, struct dt_error *err) DT_MUST_CHECK;
void dt_base_release(struct dt_base *base);

/* Bytes that a data-parallel rank of a pipeline stage holds. Ranks differ by a block of each
 * bucket, and with distributed.invariant by arrays of the tree of gradients. settings: as
 * dt_base_init. */
int dt_sizes_stage(struct dt_rank_sizes *sizes, const struct dt_base *base,
                   const struct dt_settings *settings, const struct dt_plan_layout *layout,
                   long stage, long rank, struct dt_error *err) DT_MUST_CHECK;
struct dt_traffic dt_sizes_stage_traffic(const struct dt_base *base,
                                         const struct dt_settings *settings,
                                         const struct dt_plan_layout *layout, long stage);
/* Bytes that context parallelism sends per layer and micro-batch: keys and values, and in backward
 * their gradients. */
double dt_sizes_context_bytes(const struct dt_base *base, const struct dt_settings *settings,
                              const struct dt_plan_layout *layout, bool backward);
/* Bytes of a gradient in a reduction over the data-parallel ranks. */
double dt_sizes_sent_gradient(const struct dt_settings *settings);
/* Reductions of gradients over the data-parallel ranks per step. */
long dt_sizes_reductions(const struct dt_settings *settings, const struct dt_plan_layout *layout);

#endif
