/* SPDX-License-Identifier: MIT */
/* One transformer block, forward and backward, over buffers that the caller
 * lays out; shared by training, scoring and decoding. R = rows = B*T. */
#ifndef DT_MODEL_BLOCK_H
#define DT_MODEL_BLOCK_H

#include "device/arena.h"
#include "model/model.h"

/* What a block leaves for its backward pass. */
struct dt_block {
    struct dt_tensor input;     /* R x C: the residual stream as the block got it */
    struct dt_tensor norm1;     /* R x C */
    struct dt_tensor stats1;    /* R x dt_norm_statistics */
    struct dt_tensor qkv;       /* R x (C + 2 K): queries, keys, values; K = dt_model_kv_width */
    struct dt_tensor attention; /* R x C: heads side by side, before the projection */
    struct dt_tensor lse;       /* R x H */
    struct dt_tensor middle;    /* R x C: the residual stream between attention and MLP */
    struct dt_tensor norm2;     /* R x C */
    struct dt_tensor stats2;    /* as stats1 */
    struct dt_tensor gate;      /* R x intermediate, where the MLP has a gate */
    struct dt_tensor up;        /* R x intermediate: before activation or gate */
    struct dt_tensor active;    /* R x intermediate: behind it */
};

/* Gradients that live only inside one block's backward pass. */
struct dt_block_scratch {
    struct dt_tensor width; /* R x C */
    struct dt_tensor qkv;   /* R x (C + 2 K) */
    struct dt_tensor gate;  /* R x intermediate, where the MLP has a gate */
    struct dt_tensor inner; /* R x intermediate */
};

/* Keys and values of the tokens so far, when decoding: capacity x K each. */
struct dt_cache {
    struct dt_tensor keys, values;
};

void dt_block_layout(struct dt_block *block, struct dt_arena *arena, const struct dt_model *model,
                     int64_t rows);
void dt_block_scratch_layout(struct dt_block_scratch *scratch, struct dt_arena *arena,
                             const struct dt_model *model, int64_t rows);

/* The block's input is x + add (add NULL: x); out (R x C) is what the block adds
 * to its residual stream, block->middle, in the end. cache NULL: attention
 * inside the rows themselves. */
void dt_block_forward(const struct dt_model *model, int layer, struct dt_block *block,
                      const struct dt_tensor *x, const struct dt_tensor *add, struct dt_tensor *out,
                      struct dt_cache *cache, const struct dt_attention *how);

/* stream (R x C): the gradient of the residual stream behind the block on
 * entry, before the block on return. Adds to gradients, a flat arena. */
void dt_block_backward(const struct dt_model *model, int layer, const struct dt_block *block,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch, float *gradients,
                       const struct dt_attention *how);

#endif
