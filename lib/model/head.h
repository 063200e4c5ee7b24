/* SPDX-License-Identifier: MIT */
/*
 * The output head: from the final norm to the losses, for the rows that have a target
 * only (a masked model predicts one token in seven).
 *
 * Rows are processed in chunks, and with gradients each chunk goes through backward before the next
 * goes through forward, so that the logits of all rows never exist at once. The gradient of the
 * logits overwrites them. The size of a chunk follows from R, V and the element type alone, and so
 * does the order in which the head's gradient is accumulated.
 *
 * With distributed.invariant, the rows of each chunk of the sequences (context-parallel.h) are
 * processed separately, and R above is their number: the head's gradients are a binary tree over
 * these parts, the same for every number of context-parallel ranks.
 * R = rows, V = vocab_size, n = rows of a chunk.
 */
#ifndef DT_MODEL_HEAD_H
#define DT_MODEL_HEAD_H

#include "model/batch.h"
#include "model/model.h"

#define DT_HEAD_LEVELS 8 /* of the tree over parts: 2^7 of them at most */

/* Scratch buffers of dt_head_run, for one chunk. */
struct dt_head_work {
    struct dt_tensor picked; /* n x C: rows of the final norm with a target */
    /* Of a head transform, n x C each: before and after its activation, and after its norm, if it
     * has one (stats: n x dt_layer_norm_statistics). */
    struct dt_tensor dense, active, normed, stats;
    struct dt_tensor logits; /* before their map, n x V or the vocabulary shard of the TP rank */
    struct dt_tensor sums;   /* of the parts of all TP ranks, n x DT_LOGIT_SUMS each */
    /* Gradients of picked, normed and active; training only. */
    struct dt_tensor dpicked, dnormed, dactive;
    struct dt_tensor partial; /* n x C fp32: of the gradient of normed, with 16 bits and TP */
    /* Gradients of the head, in the order of its buckets: nodes of the tree over parts. */
    float *nodes[DT_HEAD_LEVELS];
};

struct dt_head {
    int64_t rows, chunk; /* of all parts; n of all chunks but the last */
    int64_t count;       /* rows with a target in the current batch */
    int parts;
    int64_t part_ends[1 << (DT_HEAD_LEVELS - 1)]; /* where those of each part end */
    bool scattered;                               /* some rows are without target */
    int32_t *host;  /* 2 x R in host memory: indices of those rows, and their targets */
    float *weights; /* R in host memory: factors of the gradients of those rows; NULL: all are 1 */
    bool weighted;  /* the weights are set */
    int32_t *positions, *targets;
    float *losses, *hits;
    struct dt_head_work work; /* may be borrowed from another head */
};

/* Release with dt_head_release. chunk: maximum rows of a chunk; 0: logits of 256 MiB. */
void dt_head_init(struct dt_head *head, const struct dt_model *model, int64_t rows, int64_t chunk);
void dt_head_release(struct dt_head *head);
/* Takes device memory for a batch and for scratch; the latter is borrowed from scratch_owner unless
 * that is NULL. */
void dt_head_layout(struct dt_head *head, struct dt_arena *arena, const struct dt_model *model,
                    bool training, const struct dt_head *scratch_owner);

/* Uploads the targets of a batch. */
void dt_head_stage(struct dt_head *head, const struct dt_model *model,
                   const struct dt_batch *batch);
/* Weights the gradients of the tokens of the staged batch: B x T. Until the next batch. */
void dt_head_weigh(struct dt_head *head, const struct dt_batch *batch, const float *weights);
/* Replaces the losses of the staged batch: B x T. */
void dt_head_set_losses(struct dt_head *head, const struct dt_model *model,
                        const struct dt_batch *batch, const float *losses);
/* Losses, and hits if wanted, of the staged batch from norm (R x C). With gradients
 * (a flat arena; or NULL) adds to them and sets dnorm (R x C; with sequence parallelism the
 * rank's rows). */
void dt_head_run(struct dt_head *head, const struct dt_model *model, const struct dt_tensor *norm,
                 bool hits, const struct dt_flat *gradients, struct dt_tensor *dnorm,
                 const struct dt_cross_entropy *how);
/* From products with the head's weight to logits. */
struct dt_logit_map dt_head_logit_map(const struct dt_model *model);
/* logits (n x V) of rows norm (n x C) of the final norm, of a causal model that is not divided. */
void dt_head_forward(const struct dt_model *model, struct dt_tensor *logits,
                     const struct dt_tensor *norm);
/* Logits of the rows of the staged batch with a target, in fp32 to host memory, one after another:
 * V of each, or num_labels. The model computes in fp32 and is not divided. */
void dt_head_logits(const struct dt_head *head, const struct dt_model *model,
                    const struct dt_tensor *norm, float *host);
/* Copies head->losses or head->hits to the positions of the batch in host memory; 0 where there is
 * no target. */
void dt_head_download(const struct dt_head *head, const struct dt_model *model,
                      const struct dt_batch *batch, const float *values, float *host);

#endif
