/* SPDX-License-Identifier: MIT */
/* Norms of each tensor of a step: of parameters, gradients and updates. They are measured from what
 * each rank owns, for any parallel layout, and equal between layouts up to rounding. */
#ifndef DT_TRAIN_TENSOR_NORMS_H
#define DT_TRAIN_TENSOR_NORMS_H

#include "checkpoint/state-hash.h"

struct dt_tensor_norm {
    double parameter, gradient, update; /* L2 norms; parameter: after the update */
};

struct dt_tensor_norms {
    const struct dt_state_hash *owned; /* the parameters that this rank owns; borrowed */
    float *before;                     /* host memory: these, before the update */
    double *squares;                   /* parameter, gradient and update of each tensor */
    struct dt_tensor_norm *norms;      /* of each tensor of owned */
};

void dt_tensor_norms_init(struct dt_tensor_norms *norms, const struct dt_state_hash *owned);
void dt_tensor_norms_release(struct dt_tensor_norms *norms);
/* Before the update: squares of the gradients, which are factor times those of the mean loss; and a
 * copy of the parameters. */
void dt_tensor_norms_before(struct dt_tensor_norms *norms, double factor);
/* After it: sets norms. Collective: all ranks of comm. */
int dt_tensor_norms_after(struct dt_tensor_norms *norms, struct dt_comm *comm,
                          struct dt_error *err) DT_MUST_CHECK;

#endif
