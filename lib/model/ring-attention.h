/* SPDX-License-Identifier: MIT */
/*
 * Attention over sequences that several ranks share out (context-parallel.h): ring attention (Liu
 * et al. 2023).
 *
 * Each rank's keys and values, its block, go round the ring of ranks while each attends to the
 * block at hand: the softmax goes on from block to block (ops->attention_forward). Backward they
 * go round once more, and gradients of each block behind it, to which every rank adds its own
 * until they come home. A message is under way while the block before it is worked on.
 *
 * Sums are made in the order in which blocks come by, so that bits depend on the number of
 * contexts and on nothing else. One context alone has no ring, and calls the op.
 *
 * What goes wrong with messages is reported by the next operation that can, as in
 * tensor-parallel.h.
 */
#ifndef DT_MODEL_RING_ATTENTION_H
#define DT_MODEL_RING_ATTENTION_H

#include "device/arena.h"
#include "model/model.h"

/* Queries, keys and values of a context's rows, or their gradients: R x A and twice R x K, what
 * the rank has of their columns. */
struct dt_qkv {
    struct dt_tensor q, k, v;
};

/* Where there are several contexts: what attention needs while it computes. */
struct dt_ring {
    struct dt_tensor blocks[2]; /* R x 2 K: at hand, and on its way here */
    struct dt_tensor softmax;   /* R x 2 heads (device.h) */
    struct dt_tensor output;    /* R x A fp32, with 16 bits: rounded once, in the end */
    /* fp32, training only: */
    struct dt_tensor gradients; /* R x (A + 2 K), with 16 bits: of what is this rank's own */
    struct dt_tensor added[2];  /* R x 2 K: of the block at hand, and of the one before */
    struct dt_tensor arriving;  /* R x 2 K: of the block at hand, by those who had it before */
};

/* Bytes of the largest message, of gradients of keys and values, for so many rows. */
size_t dt_ring_message(const struct dt_model_config *model, int64_t rows);

void dt_ring_layout(struct dt_ring *ring, struct dt_arena *arena, const struct dt_model *model,
                    int64_t rows, bool training);

/* y (R x A) and lse (R x heads), as ops->attention_forward; how is of one stretch, with
 * spans of all rows. */
void dt_ring_forward(const struct dt_model *model, const struct dt_ring *ring, struct dt_tensor *y,
                     struct dt_tensor *lse, const struct dt_qkv *s, const struct dt_attention *how);
/* Sets d, as ops->attention_backward. */
void dt_ring_backward(const struct dt_model *model, const struct dt_ring *ring, struct dt_qkv *d,
                      const struct dt_tensor *dy, const struct dt_tensor *y,
                      const struct dt_tensor *lse, const struct dt_qkv *s,
                      const struct dt_attention *how);

#endif
