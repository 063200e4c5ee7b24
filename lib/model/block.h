/* SPDX-License-Identifier: MIT */
/* One transformer block, forward and backward, over buffers that the caller
 * lays out; shared by training, scoring and decoding. R = rows = B*T. */
#ifndef DT_MODEL_BLOCK_H
#define DT_MODEL_BLOCK_H

#include "device/arena.h"
#include "model/ring-attention.h"
#include "settings/choices.h"

/* A sequence that grows: which of the caches is its own, and how many tokens that holds. */
struct dt_cached_sequence {
    int64_t slot, past;
};

/* What one pass does in every block. */
struct dt_block_pass {
    int64_t rows;                               /* R */
    struct dt_attention attention;              /* of a stretch (context-parallel.h) */
    const struct dt_ring *ring;                 /* borrowed */
    bool dropout;                               /* at the rates of the model's configuration */
    uint64_t seed;                              /* of dropout */
    uint64_t sample;                            /* global index of the first sequence */
    const struct dt_cached_sequence *sequences; /* with caches: one a sequence of the batch */
};

/* What a block leaves for its backward pass. C, H and intermediate are those of the model where
 * it is one slice, otherwise A, H, K and I are what the slice has of C, heads, keys and the
 * MLP's channels; S = R, or with sequence parallelism the slice's rows of these. */
struct dt_block {
    struct dt_tensor input;     /* S x C: the residual stream as the block got it */
    struct dt_tensor norm1;     /* R x C */
    struct dt_tensor stats1;    /* S x dt_layer_norm_statistics */
    struct dt_tensor qkv;       /* R x (A + 2 K): queries, keys, values */
    struct dt_tensor qk;        /* R x (A + K): queries and keys before their norm, with qk_norm */
    struct dt_tensor qk_stats;  /* R x (H + heads of keys): of these norms */
    struct dt_tensor attention; /* R x A: heads side by side, before the projection */
    struct dt_tensor lse;       /* R x H */
    struct dt_tensor middle;    /* S x C: the residual stream between attention and MLP */
    struct dt_tensor norm2;     /* R x C */
    struct dt_tensor stats2;    /* as stats1 */
    struct dt_tensor gate;      /* R x I, where the MLP has a gate */
    struct dt_tensor up;        /* R x I: before activation or gate */
    struct dt_tensor active;    /* R x I: behind it */
};

/* Gradients that live only inside one block's backward pass. */
struct dt_block_scratch {
    struct dt_tensor width; /* S x C */
    struct dt_tensor qkv;   /* R x (A + 2 K) */
    struct dt_tensor qk;    /* R x (A + K), with qk_norm */
    struct dt_tensor gate;  /* R x I, where the MLP has a gate */
    struct dt_tensor inner; /* R x I */
    struct dt_tensor added; /* S x C, of models with dropout: gradient of what was added */
    /* Where there are several slices: */
    struct dt_tensor wide;  /* R x C: the stream's gradient of all rows, or a part of a sum */
    struct dt_tensor heads; /* R x A: gradient of what attention gave */
};

/* Keys and values of the tokens so far, when decoding: capacity x K each. */
struct dt_cache {
    struct dt_tensor keys, values;
};

/* S at most where R is rows, and x's rows of the stream where it has all R. */
int64_t dt_block_hidden_rows_most(const struct dt_model *model, int64_t rows);
struct dt_tensor dt_block_hidden_rows(const struct dt_model *model, const struct dt_tensor *x);

/* Two calls lay out a model's blocks: one with shared NULL for what all of them
 * share, as each computes it again; then one a block, which gets what it keeps and
 * a view of the shared. */
void dt_block_layout(struct dt_block *block, struct dt_arena *arena, const struct dt_model *model,
                     int64_t rows, enum dt_recompute recompute, const struct dt_block *shared);
void dt_block_scratch_layout(struct dt_block_scratch *scratch, struct dt_arena *arena,
                             const struct dt_model *model, int64_t rows);

/* The block's input is x + add (S x C; add NULL: x); out (R x C; in the end its rows of the
 * stream) is what the block adds to its residual stream, dt_block_output. caches NULL: attention
 * inside the rows themselves; otherwise over what caches[slot] of each stream holds
 * and them, which are kept there. */
void dt_block_forward(const struct dt_model *model, int layer, struct dt_block *block,
                      const struct dt_tensor *x, const struct dt_tensor *add, struct dt_tensor *out,
                      struct dt_cache *caches, const struct dt_block_pass *pass);

/* The residual stream between attention and MLP, as it goes on behind the block:
 * the input of its norm, or with post-norm (families.h) the output. */
struct dt_tensor dt_block_output(const struct dt_model *model, const struct dt_block *block,
                                 int64_t rows);

/* stream (S x C): the gradient of the residual stream behind the block on
 * entry, before the block on return. Adds to gradients, a flat arena. */
void dt_block_backward(const struct dt_model *model, int layer, struct dt_block *block,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch,
                       const struct dt_flat *gradients, enum dt_recompute recompute,
                       const struct dt_block_pass *pass);

/* Dropout of rows of the stream at a place of a layer, as the pass says: of the embeddings
 * (layer -1; with post-norm the first block does it, behind their norm), of what a block adds
 * behind its attention, and behind its MLP. */
enum dt_dropout_site {
    DT_DROPOUT_SITE_EMBEDDING,
    DT_DROPOUT_SITE_ATTENTION,
    DT_DROPOUT_SITE_PROJECTION,
    DT_DROPOUT_SITE_MLP
};
/* Whether the block applies the dropout of the embeddings, after its norm of them. */
bool dt_block_drops_embedding(const struct dt_model *model, int layer);
void dt_block_dropout(const struct dt_model *model, int layer, enum dt_dropout_site place,
                      struct dt_tensor *x, const struct dt_block_pass *pass);

#endif
