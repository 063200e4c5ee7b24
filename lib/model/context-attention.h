/* SPDX-License-Identifier: MIT */
/*
 * Attention over sequences that are split into chunks (context-parallel.h), with context
 * parallelism over all ranks of the group.
 *
 * The keys and values of a layer are all-gathered into the order of positions, and each chunk of
 * queries attends to them as the continuation of what precedes it (Grattafiori et al. 2024, section
 * 3.3.2). Backward gathers them again, computes the gradients of all keys and values from each
 * chunk of queries, and reduce-scatters their sum:
 *
 *     rank 0   keys of chunks 0, 3                       keys 0 1 2 3 <- queries 0, 3
 *                                   -- all-gather -->
 *     rank 1   keys of chunks 1, 2                       keys 0 1 2 3 <- queries 1, 2
 *
 * The outputs are those of an unsplit sequence, to the bit where ops->attention_forward's do not
 * depend on past (dt-arithmetic(7)). The gradients of keys and values are a binary tree over the
 * chunks of queries in the order of the rows, then over the ranks: with a power of two of both,
 * the bits depend on the number of chunks alone.
 *
 * A failed collective is reported by the next operation that returns errors, as in
 * tensor-parallel.h.
 */
#ifndef DT_MODEL_CONTEXT_ATTENTION_H
#define DT_MODEL_CONTEXT_ATTENTION_H

#include "device/arena.h"
#include "model/model.h"

/* Queries (R x A), keys and values (R x K each) of a rank's rows, or their gradients. A and K are
 * the columns of the rank's heads. */
struct dt_qkv {
    struct dt_tensor q, k, v;
};

/* Binary logarithm of the most chunks of a rank, and 1. */
#define DT_CONTEXT_ATTENTION_LEVELS 16

/* Scratch buffers, with several chunks only. S = R times the ranks of the group, the rows of all
 * of them. */
struct dt_context_attention {
    struct dt_tensor ordered; /* S x 2 K: keys and values of each sequence, in order */
    /* Training only, S x 2 K in fp32: gradients in order, one for each level of the tree. */
    struct dt_tensor sums[DT_CONTEXT_ATTENTION_LEVELS];
    /* S x 2 K: keys and values, or fp32 gradients, rank after rank; in training the memory of
     * sums[1], which is not in use at the same time. */
    struct dt_tensor packed;
};

void dt_context_attention_layout(struct dt_context_attention *scratch, struct dt_arena *arena,
                                 const struct dt_model *model, int64_t rows, bool training);

/* Sets y (R x A) and lse (R x heads), as ops->attention_forward. how describes one chunk, but its
 * spans are of all rows. */
void dt_context_attention_forward(const struct dt_model *model,
                                  const struct dt_context_attention *scratch, struct dt_tensor *y,
                                  struct dt_tensor *lse, const struct dt_qkv *s,
                                  const struct dt_attention *how);

/* Sets d, as ops->attention_backward. */
void dt_context_attention_backward(const struct dt_model *model,
                                   const struct dt_context_attention *scratch, struct dt_qkv *d,
                                   const struct dt_tensor *dy, const struct dt_tensor *y,
                                   const struct dt_tensor *lse, const struct dt_qkv *s,
                                   const struct dt_attention *how);

#endif
