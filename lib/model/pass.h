/* SPDX-License-Identifier: MIT */
/*
 * Forward and backward passes of a model over a batch.
 *
 *     struct dt_workspace *work;
 *     DT_TRY(dt_workspace_new(&work, model, &(struct dt_workspace_shape){B, T, true}, err));
 *     dt_batch_next_token(&batch, ids, B, T);
 *     double loss = dt_model_backward(model, work, &batch, gradients, &how);
 */
#ifndef DT_MODEL_PASS_H
#define DT_MODEL_PASS_H

#include "model/batch.h"
#include "model/block.h"
#include "model/model.h"

struct dt_workspace_shape {
    int64_t batch, length;       /* up to batch x length tokens */
    bool training;               /* every layer keeps its activations; otherwise they share one's */
    enum dt_recompute recompute; /* what layers do not keep, when training */
};

/* The activations of a pass. */
struct dt_workspace;
/* A workspace without memory yet: dt_workspace_bytes says how much it will take. */
struct dt_workspace *dt_workspace_plan(const struct dt_model *model,
                                       const struct dt_workspace_shape *shape);
int dt_workspace_allocate(struct dt_workspace *work, struct dt_error *err) DT_MUST_CHECK;
/* Both at once. */
int dt_workspace_new(struct dt_workspace **work, const struct dt_model *model,
                     const struct dt_workspace_shape *shape, struct dt_error *err) DT_MUST_CHECK;
size_t dt_workspace_bytes(const struct dt_workspace *work);
void dt_workspace_free(struct dt_workspace *work); /* NULL is fine */

/* What a training pass is to do. */
struct dt_pass {
    float scale;                   /* of the gradients; loss scaling included */
    float label_smoothing, z_loss; /* as in struct dt_cross_entropy */
    uint64_t seed;                 /* of dropout */
};

/* Forward and backward. Adds scale * d(sum of token losses)/d(parameters) to
 * gradients, a flat arena on the device, and returns the sum of the losses in
 * nats. Needs a training workspace. */
double dt_model_backward(const struct dt_model *model, struct dt_workspace *work,
                         const struct dt_batch *batch, float *gradients, const struct dt_pass *how);
/* Forward only: writes the token losses (nats; 0 without a target) to host memory,
 * and to hits, unless it is NULL, 1 where the target was the likeliest token,
 * otherwise 0. Arrays of batch->count x batch->length. */
void dt_model_score(const struct dt_model *model, struct dt_workspace *work,
                    const struct dt_batch *batch, float *losses, float *hits);

#endif
