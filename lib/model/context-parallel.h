/* SPDX-License-Identifier: MIT */
/*
 * Chunks of sequences, and context parallelism (Liu et al. 2023): the ranks of a context-parallel
 * (CP) group share the tokens of every sequence.
 *
 * A sequence of T tokens is divided into P chunks (distributed.sequence_parts). The rows of a batch
 * are chunk 0 of each sequence, then chunk P - 1 of each, then chunks 1, P - 2, and so on. A rank
 * of n holds P / n neighbours in this order, P being a multiple of 2 n. So all ranks attend to the
 * same number of pairs of query and key, also with causal attention (Brandon et al. 2023;
 * Grattafiori et al. 2024). With P = 4 and n = 2:
 *
 *     tokens of a sequence   | chunk 0 | chunk 1 | chunk 2 | chunk 3 |
 *     CP rank                |    0    |    1    |    1    |    0    |
 *     order of the rows         first     third     fourth    second
 *
 * A sum over all rows of a batch is therefore a sum over chunks of rows that are contiguous on
 * every rank; with P a power of two, the binary tree of their sums is the same for every n.
 *
 *     for (int i = 0; i < dt_context_parallel_chunks(&part); i++) {
 *         struct dt_tensor rows = dt_context_parallel_chunk_rows(&part, &x, i);
 *         int64_t position = dt_context_parallel_chunk_start(&part, length, i); of its first token
 *     }
 */
#ifndef DT_MODEL_CONTEXT_PARALLEL_H
#define DT_MODEL_CONTEXT_PARALLEL_H

#include "device/device.h"
#include "model/batch.h"
#include "model/model-part.h"

/* P: chunks of a sequence, those of all ranks; and those that this rank holds. */
int dt_context_parallel_all_chunks(const struct dt_model_part *part);
int dt_context_parallel_chunks(const struct dt_model_part *part);
/* Tokens of a chunk of a sequence of length tokens. */
int64_t dt_context_parallel_chunk_length(const struct dt_model_part *part, int64_t length);
/* Position of the first token of chunk i of this rank, or of another CP rank. */
int64_t dt_context_parallel_chunk_start(const struct dt_model_part *part, int64_t length, int i);
int64_t dt_context_parallel_chunk_start_of(const struct dt_model_part *part, int cp_rank,
                                           int64_t length, int i);
/* The rows of chunk i in x, which has all rows of the rank. */
struct dt_tensor dt_context_parallel_chunk_rows(const struct dt_model_part *part,
                                                const struct dt_tensor *x, int i);

/* Rows of a batch that the rank holds, and the index in the batch of its row i. */
int64_t dt_context_parallel_rows(const struct dt_model_part *part, int64_t count, int64_t length);
int64_t dt_context_parallel_row(const struct dt_model_part *part, const struct dt_batch *batch,
                                int64_t i);
/* The number of those rows that have a target. */
int64_t dt_context_parallel_targets(const struct dt_model_part *part, const struct dt_batch *batch);

/* The rows of a micro-batch are DT_ROW_PARTS contiguous parts, whose sums are added in a binary
 * tree: gradients of norms. The parts of this rank, which has all of its CP rank's rows, or with
 * sharded its share of them with sequence parallelism; 1 where the ranks do not divide
 * DT_ROW_PARTS. */
#define DT_ROW_PARTS 16
int dt_context_parallel_row_parts(const struct dt_model_part *part, bool sharded);

/* Copies the rank's rows of batch to own, which has memory for them. spans: memory for twice as
 * many numbers, own->begins and own->ends, which are positions in the whole sequence. */
void dt_context_parallel_select(struct dt_batch *own, int32_t *spans,
                                const struct dt_model_part *part, const struct dt_batch *batch);

#endif
