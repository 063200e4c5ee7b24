/* SPDX-License-Identifier: MIT */
/*
 * Tensor parallelism (Shoeybi et al. 2019): the shard of each tensor that a TP rank holds.
 *
 * A block's linear maps are split in pairs: the first along its outputs (column-parallel), so that
 * each rank has some heads of attention or some channels of the MLP; the second along its inputs
 * (row-parallel), and its products are summed over the ranks. The vocabulary is split likewise.
 * With two ranks, of matrices given as input x output:
 *
 *             column-parallel                      row-parallel
 *             q, k, v, gate, up                    attention projection, down
 *           outputs: heads or channels               outputs: C
 *           +---------+---------+                  +-------------------+
 *           |         |         |          inputs: |      rank 0       |
 *     in: C | rank 0  | rank 1  |          heads   +-------------------+   y = sum over ranks of
 *           |         |         |          or      |      rank 1       |       x_rank W_rank
 *           +---------+---------+          channels+-------------------+   (all-reduce)
 *
 * Queries are on the rank of the head of keys and values that serves them (GQA). If there are fewer
 * such heads than ranks, several ranks hold the same one, and split its queries:
 *
 *     8 query heads, 2 KV heads, 4 ranks    rank       0     1     2     3
 *                                           queries   0-1   2-3   4-5   6-7
 *                                           KV head    0     0     1     1
 *
 * Sums over split channels are made in parts, whatever the number of ranks (dt-arithmetic(7)): up
 * to 8, a power of two that divides the heads of keys and values or the channels of the MLP; and 8
 * of the vocabulary. With a number of ranks that divides them, each rank has whole parts, and the
 * ranks' sums are nodes of the parts' binary tree: the bits are those of one rank.
 *
 *     struct dt_tensor_partition p = dt_tensor_partition_of(&config, part.tp_rank, part.tp_size);
 */
#ifndef DT_MODEL_TENSOR_PARTITION_H
#define DT_MODEL_TENSOR_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/range.h"
#include "settings/model-config.h"

#define DT_TENSOR_PARALLEL_MOST 256
#define DT_TENSOR_PARTS         8 /* parts of a sum, at most */

/* Of one TP rank. */
struct dt_tensor_partition {
    struct dt_range heads, kv_heads, inner, tokens;
    struct dt_range key_holders;              /* TP ranks with the same heads of keys and values */
    int head_parts, inner_parts, token_parts; /* in this rank's ranges; 1: not divided */
    int64_t token_ends[DT_TENSOR_PARTS];      /* where those of tokens end, from tokens.first */
};

struct dt_tensor_partition dt_tensor_partition_of(const struct dt_model_config *config, int tp_rank,
                                                  int tp_size);

/* DT_EINVALID if a rank would have an empty shard of a split tensor. */
int dt_tensor_partition_check(const struct dt_model_config *config, long tp_size,
                              const char *subject, struct dt_error *err) DT_MUST_CHECK;
/* The largest number of ranks whose bits are those of one rank: a power of two, as are the others,
 * all below it. */
int dt_tensor_partition_most_invariant(const struct dt_model_config *config);

#endif
