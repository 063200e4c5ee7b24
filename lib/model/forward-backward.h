/* SPDX-License-Identifier: MIT */
/*
 * Forward and backward of a model over a batch.
 *
 *     struct dt_workspace *work;
 *     DT_TRY(dt_workspace_new(&work, model, &(struct dt_workspace_shape){B, T, true}, err));
 *     dt_batch_next_token(&batch, ids, B, T);
 *     double loss = dt_model_backward(model, work, &batch, gradients, &how);
 *
 * Or step by step, of a model whose layers are on several pipeline stages: each run of layers has
 * a workspace for each micro-batch in flight.
 *
 *     dt_pass_begin(work, &batch, &how);
 *     receive into dt_pass_input(work)
 *     dt_pass_forward(work);                         send dt_pass_output(work)
 *     receive into dt_pass_gradient(work)
 *     dt_pass_backward(work, gradients, loss);       send dt_pass_gradient(work)
 *
 * With context parallelism (context-parallel.h) each rank is given the whole batch, and computes
 * gradients and losses of its tokens: those of the batch are sums over the ranks.
 */
#ifndef DT_MODEL_FORWARD_BACKWARD_H
#define DT_MODEL_FORWARD_BACKWARD_H

#include "model/batch.h"
#include "model/block.h"
#include "model/model.h"

struct dt_workspace;

struct dt_workspace_shape {
    int64_t batch, length; /* up to batch x length tokens */
    bool training;         /* each layer keeps its activations; otherwise layers share buffers */
    enum dt_recompute recompute; /* activation checkpointing, when training */
    struct dt_range run;         /* the layers to compute; 0, 0: all of the model */
    int64_t head_rows;           /* rows of a chunk of the head; 0: logits of 256 MiB */
    /* A workspace of the same model and of at least this size whose scratch buffers are used
     * instead of separate ones; or NULL. Borrowed. */
    const struct dt_workspace *scratch_owner;
};

/* Activations and scratch buffers, before their memory is allocated; dt_workspace_bytes returns the
 * size. */
struct dt_workspace *dt_workspace_plan(const struct dt_model *model,
                                       const struct dt_workspace_shape *shape);
int dt_workspace_allocate(struct dt_workspace *work, struct dt_error *err) DT_MUST_CHECK;
/* Plans and allocates. */
int dt_workspace_new(struct dt_workspace **work, const struct dt_model *model,
                     const struct dt_workspace_shape *shape, struct dt_error *err) DT_MUST_CHECK;
size_t dt_workspace_bytes(const struct dt_workspace *work);
void dt_workspace_free(struct dt_workspace *work); /* NULL is fine */

/* An objective other than the mean of the token losses. */
struct dt_token_weights {
    void *context;
    /* losses: of the tokens of a batch (nats; 0 without a target), B x T. Sets the weights of their
     * gradients, and replaces the losses by those that dt_pass_backward sums. */
    void (*set)(void *context, const struct dt_batch *batch, float *losses, float *weights);
};

/* Options of training. */
struct dt_pass {
    float scale;                   /* of the gradients, including loss scaling */
    float label_smoothing, z_loss; /* as in struct dt_cross_entropy */
    uint64_t seed;                 /* of dropout */
    float temperature;             /* logits are divided by it; 0: 1 */
    /* NULL: each token has weight 1. Borrowed. The head then runs twice: for the losses, and with
     * their weights for the gradients. The batch stays until backward; the model is not divided. */
    const struct dt_token_weights *weights;
};

/* Forward and backward of a whole model. Adds scale * d(sum of token losses)/d(parameters)
 * to gradients, an arena on the device, and returns the sum of the losses in nats. Needs a
 * training workspace. */
double dt_model_backward(const struct dt_model *model, struct dt_workspace *work,
                         const struct dt_batch *batch, const struct dt_flat *gradients,
                         const struct dt_pass *how);
/* Forward only: writes the token losses (nats; 0 without a target) to host memory,
 * and to hits, unless it is NULL, 1 where the target was the likeliest token,
 * otherwise 0. Arrays of batch->count x batch->length, 0 at tokens of other CP ranks. */
void dt_model_score(const struct dt_model *model, struct dt_workspace *work,
                    const struct dt_batch *batch, float *losses, float *hits);
/* The losses with logits divided by a temperature, as struct dt_pass has one. */
void dt_model_score_at(const struct dt_model *model, struct dt_workspace *work,
                       const struct dt_batch *batch, float temperature, float *losses);

/* Forward only: writes the logits of the tokens that have a target (dt_head_logits). */
void dt_model_logits(const struct dt_model *model, struct dt_workspace *work,
                     const struct dt_batch *batch, float *logits);

/* Uploads a batch. how NULL: forward only. */
void dt_pass_begin(struct dt_workspace *work, const struct dt_batch *batch,
                   const struct dt_pass *how);
/* Forward of the run's layers, and of the final norm after the last layer. */
void dt_pass_forward(struct dt_workspace *work);
/* Forward and backward of the head, if the run has the last layer, and backward of the layers.
 * Adds the losses to *loss, on the device, asynchronously; only if the run has the last layer. */
void dt_pass_backward(struct dt_workspace *work, const struct dt_flat *gradients,
                      struct dt_exact_sum *loss);
/* Forward of the head, after dt_pass_forward; losses and hits as in dt_model_score. */
void dt_pass_score(struct dt_workspace *work, const struct dt_batch *batch, float *losses,
                   float *hits);

/* Hidden states, S x C (block.h) in the compute type: the input of a run that does not begin with
 * the first layer, and the output of one that does not end with the last. */
struct dt_tensor dt_pass_input(const struct dt_workspace *work);
struct dt_tensor dt_pass_output(const struct dt_workspace *work);
/* Their gradient: of the output before dt_pass_backward, of the input after it. A scratch buffer.
 */
struct dt_tensor dt_pass_gradient(const struct dt_workspace *work);

/* For a hook that sees the middle of a layer in forward: the inputs of the activation of the MLP or
 * of its gate, R x I of this TP rank, */
struct dt_tensor dt_pass_units(const struct dt_workspace *work, int layer);
/* and what the keys are on average (block.h). Collective: context-parallel ranks. */
struct dt_mean_keys dt_pass_mean_keys(const struct dt_workspace *work, int layer);

/* The token of row i of hidden states (S x C), for struct dt_trace_hook: its index in the samples
 * of all steps, sample x T + position. */
uint64_t dt_pass_token(const struct dt_workspace *work, int64_t i);

#endif
