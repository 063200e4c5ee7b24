/* SPDX-License-Identifier: MIT */
/* The memory of a run in bytes, computed before anything is allocated. */
#ifndef DT_TRAIN_MEMORY_PLAN_H
#define DT_TRAIN_MEMORY_PLAN_H

#include "checkpoint/snapshot.h"
#include "parallel/train-state.h"

struct dt_memory_plan { /* bytes */
    size_t parameters;  /* fp32 */
    size_t weights;     /* 16-bit copy, gathered weights, and RoPE tables */
    size_t gradients;   /* fp32 */
    size_t moments;     /* optimizer state */
    size_t average;     /* EMA of the parameters */
    size_t scratch;     /* of the optimizer and the gradient norm */
    size_t activations; /* saved by forward for backward, and their gradients */
    size_t sampler;     /* of completions, and the reference model: objective grpo */
    size_t device;      /* the sum of those above: allocated on the device */
    size_t snapshot;    /* host memory of checkpoints */
    size_t copies;      /* host memory: of the state in an elastic run; of parameters and gradients
                         * with asynchronous updates */
    size_t total;
    size_t file; /* on disk: optimizer state with optimizer.offload file */
};

/* activations: dt_pipeline_executor_bytes. sampler: dt_groups_bytes, or 0. */
struct dt_memory_plan dt_memory_plan(const struct dt_model *model,
                                     const struct dt_train_state *state, size_t activations,
                                     size_t sampler, const struct dt_snapshot *snapshot);

void dt_memory_plan_add_copies(struct dt_memory_plan *plan, size_t bytes);

/* DT_ENOMEM with the numbers, if free memory is too small for that number of ranks on this machine.
 * Snapshot and copies count too, since the device's memory is the host's. */
int dt_memory_plan_check(const struct dt_memory_plan *plan, const struct dt_model *model, int ranks,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
