/* SPDX-License-Identifier: MIT */
/*
 * The norms of queries and keys before RoPE: of each head, or of all heads of a row (OLMo 2).
 *
 * A TP rank has the columns of its heads. Norms of all heads have those of all ranks: each rank
 * computes them whole, with the bits of one rank, and keeps its own columns.
 */
#ifndef DT_MODEL_QK_NORM_H
#define DT_MODEL_QK_NORM_H

#include "model/block.h"

/* Columns of dt_block.qk_stats. */
int64_t dt_qk_norm_statistics(const struct dt_model *model);

/* The scratch buffers of rows rows that a block has for columns of other ranks. */
void dt_qk_norm_layout(struct dt_block *block, struct dt_arena *arena, const struct dt_model *model,
                       int64_t rows);

/* Queries and keys from block->qk, with norms into s. */
void dt_qk_norm_forward(const struct dt_model *model, int layer, struct dt_block *block,
                        struct dt_qkv *s);
/* Sets gradients of queries and keys to those before the norms, which are in scratch, as block->qk.
 */
void dt_qk_norm_backward(const struct dt_model *model, const struct dt_flat *gradients, int layer,
                         struct dt_qkv *gradients_of, const struct dt_block *block,
                         struct dt_tensor *scratch);

/* The columns of queries and keys in block->qk or a tensor like it. */
struct dt_qk {
    struct dt_tensor q, k;
};
struct dt_qk dt_qk_norm_split(const struct dt_model *model, const struct dt_tensor *qk);

#endif
