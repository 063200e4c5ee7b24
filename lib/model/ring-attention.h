/* SPDX-License-Identifier: MIT */
/*
 * Ring attention (Liu et al. 2023): attention over sequences whose tokens are sharded over a
 * context-parallel group (context-parallel.h).
 *
 * Each rank's block of keys and values is passed around the ring while every rank attends to
 * the block it holds; the softmax is accumulated from block to block (ops->attention_forward).
 * Backward passes the blocks around again, each followed by the gradients of its keys and values,
 * to which every rank adds. The next block is sent and received during the computation.
 *
 *     round      0          1          2          3
 *     rank 0   block 0    block 3    block 2    block 1
 *     rank 1   block 1    block 0    block 3    block 2     rank r receives from r - 1
 *     rank 2   block 2    block 1    block 0    block 3     and sends to r + 1
 *     rank 3   block 3    block 2    block 1    block 0
 *
 * Sums are made in the order of the rounds, so the bits depend on the size of the group only.
 * Without context parallelism the op is called directly.
 *
 * A failed message is reported by the next operation that returns errors, as in
 * tensor-parallel.h.
 */
#ifndef DT_MODEL_RING_ATTENTION_H
#define DT_MODEL_RING_ATTENTION_H

#include "device/arena.h"
#include "model/model.h"

/* Queries (R x A), keys and values (R x K each) of a rank's rows, or their gradients. A and K are
 * the columns of the rank's heads. */
struct dt_qkv {
    struct dt_tensor q, k, v;
};

/* Scratch buffers, with context parallelism only. */
struct dt_ring {
    struct dt_tensor blocks[2]; /* R x 2 K: the block in use, and the one being received */
    struct dt_tensor softmax;   /* R x 2 heads (device.h) */
    struct dt_tensor output;    /* R x A in fp32, with 16-bit types: rounded once, at the end */
    /* fp32, training only: */
    struct dt_tensor gradients; /* R x (A + 2 K), with 16-bit types: of this rank's q, k, v */
    struct dt_tensor added[2];  /* R x 2 K: of the block in use, and of the one before */
    struct dt_tensor arriving;  /* R x 2 K: of the block in use, summed by earlier ranks */
};

/* Bytes of the largest message, gradients of keys and values, for a number of rows. */
size_t dt_ring_message(const struct dt_model_config *model, int64_t rows);

void dt_ring_layout(struct dt_ring *ring, struct dt_arena *arena, const struct dt_model *model,
                    int64_t rows, bool training);

/* Sets y (R x A) and lse (R x heads), as ops->attention_forward. how describes one chunk, but its
 * spans are of all rows. */
void dt_ring_forward(const struct dt_model *model, const struct dt_ring *ring, struct dt_tensor *y,
                     struct dt_tensor *lse, const struct dt_qkv *s, const struct dt_attention *how);
/* Sets the gradients d, as ops->attention_backward. */
void dt_ring_backward(const struct dt_model *model, const struct dt_ring *ring, struct dt_qkv *d,
                      const struct dt_tensor *dy, const struct dt_tensor *y,
                      const struct dt_tensor *lse, const struct dt_qkv *s,
                      const struct dt_attention *how);

#endif
