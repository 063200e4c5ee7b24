/* SPDX-License-Identifier: MIT */
/* The memory of a run, before any of it is taken: what plans of its parts add up to. */
#ifndef DT_TRAIN_MEMORY_PLAN_H
#define DT_TRAIN_MEMORY_PLAN_H

#include "checkpoint/snapshot.h"
#include "parallel/train-state.h"

struct dt_memory_plan { /* bytes */
    size_t parameters;  /* fp32 */
    size_t weights;     /* their copy in 16 bits, and tables of rotary positions */
    size_t gradients;   /* fp32 */
    size_t moments;     /* what the optimizer remembers */
    size_t average;     /* of the parameters */
    size_t scratch;     /* of the optimizer */
    size_t activations; /* what forward leaves for backward, and gradients of it */
    size_t device;      /* all of these: what is allocated on the device */
    size_t snapshot;    /* in host memory, for checkpoints being written */
    size_t total;
};

/* activations: dt_pipeline_executor_bytes of the run's passes. */
struct dt_memory_plan dt_memory_plan(const struct dt_model *model,
                                     const struct dt_train_state *state, size_t activations,
                                     const struct dt_snapshot *snapshot);

/* DT_ENOMEM, with the numbers, if the machine cannot give so much now to each of the
 * ranks on it. The snapshot counts: the device's memory is the host's. */
int dt_memory_plan_check(const struct dt_memory_plan *plan, const struct dt_model *model, int ranks,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
