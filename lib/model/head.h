/* SPDX-License-Identifier: MIT */
/*
 * The head: from the final norm to the losses, for the rows that have a target
 * and no others (a masked model predicts one token in seven).
 *
 * It works in chunks of rows, and where there are gradients takes each chunk
 * back before the next, so that the logits of all rows never exist together: product,
 * loss, gradient in the logits' place, and its two products, by any engine's ops. A
 * chunk's rows follow from R, V, the element type and the slices alone, and with them
 * the order in which the head's gradient is added up: so do the bits.
 * R = rows, V = vocab_size, n = rows of a chunk.
 */
#ifndef DT_MODEL_HEAD_H
#define DT_MODEL_HEAD_H

#include "model/batch.h"
#include "model/model.h"

/* What a chunk needs while dt_head_run computes, and nobody behind it. */
struct dt_head_work {
    struct dt_tensor picked; /* n x C: rows of the final norm */
    /* Of models that have a dense layer here, n x C each: before and behind its activation,
     * and normed (stats: n x dt_layer_norm_statistics). */
    struct dt_tensor dense, active, normed, stats;
    struct dt_tensor logits; /* n x V, or the columns of the slice's tokens */
    struct dt_tensor sums;   /* of all slices, n x DT_LOGIT_SUMS each, where there are several */
    /* Gradients, of training only: of picked, of normed and of active. */
    struct dt_tensor dpicked, dnormed, dactive;
};

struct dt_head {
    int64_t rows, chunk; /* R; the most that n can be, and is but in the last */
    int64_t count;       /* rows with a target in the batch at hand */
    bool scattered;      /* not all of its rows are */
    int32_t *host;       /* 2 x R in host memory: those rows, and their targets */
    int32_t *positions, *targets;
    float *losses, *hits;
    struct dt_head_work work; /* perhaps another head's */
};

/* Host memory; release with dt_head_release. chunk: rows of one, at most; 0: as many as 256 MiB
 * of logits hold. */
void dt_head_init(struct dt_head *head, const struct dt_model *model, int64_t rows, int64_t chunk);
void dt_head_release(struct dt_head *head);
/* Device memory: what a batch has until its backward pass, and the work, laid out anew or
 * borrowed from another head. */
void dt_head_layout(struct dt_head *head, struct dt_arena *arena, const struct dt_model *model,
                    bool training, const struct dt_head *lender);

/* Takes over what a batch predicts. */
void dt_head_stage(struct dt_head *head, const struct dt_model *model,
                   const struct dt_batch *batch);
/* Losses, and hits if wanted, of the staged batch from norm (R x C). With gradients
 * (a flat arena; or NULL) adds to them and sets dnorm (R x C; its rows of the stream). */
void dt_head_run(struct dt_head *head, const struct dt_model *model, const struct dt_tensor *norm,
                 bool hits, const struct dt_flat *gradients, struct dt_tensor *dnorm,
                 const struct dt_cross_entropy *how);
/* Losses or hits, as head->losses or head->hits, at the places of the batch in host
 * memory; 0 where nothing was predicted. */
void dt_head_download(const struct dt_head *head, const struct dt_model *model,
                      const struct dt_batch *batch, const float *values, float *host);

#endif
