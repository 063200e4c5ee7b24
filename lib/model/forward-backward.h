/* SPDX-License-Identifier: MIT */
/*
 * Forward and backward passes of a model over a batch.
 *
 *     struct dt_workspace *work;
 *     DT_TRY(dt_workspace_new(&work, model, &(struct dt_workspace_shape){B, T, true}, err));
 *     dt_batch_next_token(&batch, ids, B, T);
 *     double loss = dt_model_backward(model, work, &batch, gradients, &how);
 *
 * Or in parts, of a model whose layers lie on several ranks: every run of layers has
 * workspaces of its own, one for each batch that is under way.
 *
 *     dt_pass_begin(work, &batch, &how);
 *     receive into dt_pass_input(work)
 *     dt_pass_forward(work);                         send dt_pass_output(work)
 *     receive into dt_pass_gradient(work)
 *     dt_pass_backward(work, gradients, loss);       send dt_pass_gradient(work)
 *
 * Where several ranks share out the tokens (context-parallel.h), each is given the whole batch.
 * Gradients and losses are then those of its own tokens: sums over the ranks are those of the
 * batch.
 */
#ifndef DT_MODEL_FORWARD_BACKWARD_H
#define DT_MODEL_FORWARD_BACKWARD_H

#include "model/batch.h"
#include "model/block.h"
#include "model/model.h"

struct dt_workspace;

struct dt_workspace_shape {
    int64_t batch, length;       /* up to batch x length tokens */
    bool training;               /* every layer keeps its activations; otherwise they share one's */
    enum dt_recompute recompute; /* what layers do not keep, when training */
    struct dt_range run;         /* the layers that it passes, of those the model has; 0, 0: all */
    int64_t head_rows;           /* whose logits exist at a time; 0: what 256 MiB hold */
    /* A workspace of the same model and of at least this size, which lends what is needed only
     * while a pass computes; or NULL. Borrowed. */
    const struct dt_workspace *lender;
};

/* The activations of a pass. A workspace without memory yet: dt_workspace_bytes says how much
 * it will take. */
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

/* Forward and backward of a whole model. Adds scale * d(sum of token losses)/d(parameters)
 * to gradients, an arena on the device, and returns the sum of the losses in nats. Needs a
 * training workspace. */
double dt_model_backward(const struct dt_model *model, struct dt_workspace *work,
                         const struct dt_batch *batch, const struct dt_flat *gradients,
                         const struct dt_pass *how);
/* Forward only: writes the token losses (nats; 0 without a target) to host memory,
 * and to hits, unless it is NULL, 1 where the target was the likeliest token,
 * otherwise 0. Arrays of batch->count x batch->length, 0 at tokens of other contexts. */
void dt_model_score(const struct dt_model *model, struct dt_workspace *work,
                    const struct dt_batch *batch, float *losses, float *hits);

/* Takes over a batch. how NULL: it is only scored. */
void dt_pass_begin(struct dt_workspace *work, const struct dt_batch *batch,
                   const struct dt_pass *how);
/* Through the run's layers, and the final norm behind the last. */
void dt_pass_forward(struct dt_workspace *work);
/* Through the head, behind the last layer, and back. Puts the sum of the losses at loss, on the
 * device, without waiting, unless the run ends before the last layer. */
void dt_pass_backward(struct dt_workspace *work, const struct dt_flat *gradients, double *loss);
/* Through the head behind dt_pass_forward; losses and hits as in dt_model_score. */
void dt_pass_score(struct dt_workspace *work, const struct dt_batch *batch, float *losses,
                   float *hits);

/* The residual stream, S x C (block.h) in the compute type, where it comes into a run that does not
 * begin with the first layer, and where it leaves one that does not end with the last. */
struct dt_tensor dt_pass_input(const struct dt_workspace *work);
struct dt_tensor dt_pass_output(const struct dt_workspace *work);
/* Its gradient: that of the output before dt_pass_backward, that of the input behind it. The
 * lender's. */
struct dt_tensor dt_pass_gradient(const struct dt_workspace *work);

#endif
