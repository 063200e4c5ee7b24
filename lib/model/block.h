/* SPDX-License-Identifier: MIT */
/*
 * Forward and backward of one transformer block, over buffers that the caller lays out; shared by
 * training, scoring and decoding. R = rows = B*T.
 *
 * The residual stream of a pre-norm block, with the buffers of struct dt_block in their order in
 * the activation arena; "add" is what the block before adds to the stream:
 *
 *       x, add
 *         | x + add
 *       input ----------------------------+          the next block gets x = middle
 *         | norm                          |          and add = out
 *       norm1                             |                              out
 *         | q, k, v maps; qk norm: qk     |                               ^ dropout
 *        qkv                              |                               | down
 *         | RoPE, attention               |                             active
 *     attention, lse                      |                               ^ activation or SwiGLU
 *         | projection, dropout           |                               | up, gate
 *        add ---------------------------> + --> middle ---> norm ---> norm2
 *
 * A post-norm block continues the stream from norm1 and norm2 instead of input and middle
 * (settings/families.h), as the first block does from norm1 after a norm of the embeddings. With
 * norms of outputs, the branches' outputs pass them before dropout; with a parallel residual, norm2
 * is of input.
 *
 * The activation arena of a workspace: what all blocks share, then what each keeps for backward.
 *
 *     | x, out, scratch, recomputed buffers | norm, head | block 0 | block 1 | ... | block L-1 |
 *
 * With training.recompute "selective" a block keeps input, qkv, attention, middle, gate and up,
 * with "full" input alone; the others are then in the shared part, and recomputed by backward.
 */
#ifndef DT_MODEL_BLOCK_H
#define DT_MODEL_BLOCK_H

#include "device/arena.h"
#include "model/context-attention.h"
#include "settings/choices.h"

/* A sequence with a KV cache: its slot, and the number of tokens cached. */
struct dt_cached_sequence {
    int64_t slot, past;
};

/* One forward or backward, the same for all blocks. */
struct dt_block_pass {
    int64_t rows;                               /* R */
    struct dt_attention attention;              /* of a chunk (context-parallel.h) */
    const struct dt_context_attention *context; /* scratch; borrowed */
    struct dt_tensor partial;                   /* R x C fp32: sums over TP ranks, with 16 bits */
    bool dropout;                               /* on, with the configuration's rates */
    uint64_t seed;                              /* of dropout */
    uint64_t sample;                            /* global index of the first sequence */
    const struct dt_cached_sequence *sequences; /* with caches: one per sequence of the batch */
};

#define DT_QK_NORM_BUFFERS 3

/* Activations that forward keeps for backward. A, K and I are this TP rank's columns of queries,
 * keys and the MLP, H its heads; S = R, or with sequence parallelism the rank's rows. */
struct dt_block {
    struct dt_tensor input;    /* S x C: the residual stream at the block's entry */
    struct dt_tensor norm1;    /* R x C, with norms of inputs, or S below R: all rows of input;
                                * and norm2 */
    struct dt_tensor stats1;   /* S x dt_layer_norm_statistics */
    struct dt_tensor qkv;      /* R x (A + 2 K): queries, keys, values */
    struct dt_tensor qk;       /* R x (A + K): queries and keys before their norm, with qk_norm */
    struct dt_tensor qk_stats; /* R x dt_qk_norm_statistics(): of these norms */
    struct dt_tensor qk_all[DT_QK_NORM_BUFFERS]; /* scratch of qk-norm.h, shared by all blocks */
    struct dt_tensor attention; /* R x A: concatenated heads, before the projection */
    struct dt_tensor lse;       /* R x H */
    struct dt_tensor middle;    /* S x C: the residual stream between attention and MLP */
    struct dt_tensor norm2;     /* R x C */
    struct dt_tensor stats2;    /* as stats1 */
    /* With norms of the outputs of attention and MLP: these before it, S x C, and its statistics */
    struct dt_tensor output[2], output_stats[2];
    struct dt_tensor gate;   /* R x I, with a gated MLP */
    struct dt_tensor up;     /* R x I: before activation or gate */
    struct dt_tensor active; /* R x I: after it */
};

/* Scratch gradients of one block's backward. */
struct dt_block_scratch {
    struct dt_tensor width; /* S x C */
    struct dt_tensor qkv;   /* R x (A + 2 K) */
    struct dt_tensor qk;    /* R x (A + K), with qk_norm */
    struct dt_tensor gate;  /* R x I, with a gated MLP */
    struct dt_tensor inner; /* R x I */
    struct dt_tensor added; /* S x C, with dropout or a scale: gradient of the addend */
    struct dt_tensor after; /* S x C, with a parallel residual: of the stream after the block */
    struct dt_tensor wide;  /* R x C, with tensor parallelism: gradient of all rows of the stream,
                             * or with fp32 a partial sum */
    struct dt_tensor heads; /* R x A: gradient of the output of attention, with tensor parallelism,
                             * norms of outputs, or A other than C */
};

/* KV cache of a sequence: dt_block_cache_rows x K each, of the tokens from first on. */
struct dt_cache {
    struct dt_tensor keys, values;
    int64_t first;
};

/* The most tokens of a sequence that a forward with a cache appends. */
#define DT_BLOCK_MOST_CACHED 512

/* Tokens of a layer's cache: capacity or, with a window, fewer, of which the oldest leave. */
int64_t dt_block_cache_rows(const struct dt_model *model, int layer, int64_t capacity);

/* The maximum of S for R = rows, and this rank's rows of x, which has all R. */
int64_t dt_block_hidden_rows_most(const struct dt_model *model, int64_t rows);
struct dt_tensor dt_block_hidden_rows(const struct dt_model *model, const struct dt_tensor *x);

/* Lays out the buffers of a model's blocks: first one call with shared NULL for the buffers that
 * are recomputed, which all blocks share; then one call per block for the buffers it keeps. */
void dt_block_layout(struct dt_block *block, struct dt_arena *arena, const struct dt_model *model,
                     int64_t rows, enum dt_recompute recompute, const struct dt_block *shared);
void dt_block_scratch_layout(struct dt_block_scratch *scratch, struct dt_arena *arena,
                             const struct dt_model *model, int64_t rows);

/* The block's input is x + add (S x C; add NULL: x); out (R x C, of which S rows are set) is added
 * to the residual stream, dt_block_output, by the next block. caches NULL: attention within the
 * rows; otherwise the keys and values are appended to caches[slot] of each sequence, and attended
 * to. */
void dt_block_forward(const struct dt_model *model, int layer, struct dt_block *block,
                      const struct dt_tensor *x, const struct dt_tensor *add, struct dt_tensor *out,
                      struct dt_cache *caches, const struct dt_block_pass *pass);

/* From which the entropies of attention's weights follow, before dropout: that of a query is
 * lse - scale q k, with its mean key k under these weights, if scores have no softcap. */
struct dt_mean_keys {
    struct dt_tensor queries, means; /* R x A, R: pass->rows; means are in scratch->qkv */
    struct dt_tensor lse;            /* R x H; minus infinity: a query without keys */
    double scale;
};
/* Attention again, with the keys as values, after dt_block_forward. */
struct dt_mean_keys dt_block_mean_keys(const struct dt_model *model, int layer,
                                       const struct dt_block *block,
                                       const struct dt_block_scratch *scratch,
                                       const struct dt_block_pass *pass);

/* The residual stream after attention, to which the MLP's output is added: middle or, with
 * post-norm, its norm. */
struct dt_tensor dt_block_output(const struct dt_model *model, const struct dt_block *block,
                                 int64_t rows);

/* stream (S x C): the gradient of the residual stream, of the block's output on entry and of its
 * input on return. Adds to gradients, a flat arena. */
void dt_block_backward(const struct dt_model *model, int layer, struct dt_block *block,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch,
                       const struct dt_flat *gradients, enum dt_recompute recompute,
                       const struct dt_block_pass *pass);

/* Dropout of rows of hidden states at a site of a layer: of the embeddings (layer -1; with
 * post-norm by the first block, after their norm), of attention's weights, of the projection's and
 * of the MLP's output. */
enum dt_dropout_site {
    DT_DROPOUT_SITE_EMBEDDING,
    DT_DROPOUT_SITE_ATTENTION,
    DT_DROPOUT_SITE_PROJECTION,
    DT_DROPOUT_SITE_MLP
};
/* Whether the block applies the dropout of the embeddings, after their norm. */
bool dt_block_drops_embedding(const struct dt_model *model, int layer);
void dt_block_dropout(const struct dt_model *model, int layer, enum dt_dropout_site site,
                      struct dt_tensor *x, const struct dt_block_pass *pass);

#endif
