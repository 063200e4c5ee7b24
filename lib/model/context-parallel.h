/* SPDX-License-Identifier: MIT */
/*
 * Which tokens of every sequence a rank has, where several share them out (context parallelism:
 * Liu et al. 2023).
 *
 * A sequence is cut into twice as many stretches as there are contexts. Context i has stretch
 * number i and, counted from the end, stretch number i: so all have as many pairs of a query and
 * a key that it sees, also of a causal model (Brandon et al. 2023; Grattafiori et al. 2024). Its
 * rows of a batch are the first stretch of each sequence, then the second of each. One context
 * alone has sequences as they are, in one stretch.
 *
 *     for (int i = 0; i < dt_context_parallel_chunks(&part); i++) {
 *         struct dt_tensor rows = dt_context_parallel_chunk_rows(&part, &x, i);
 *         place of the first token of each sequence: dt_context_parallel_chunk_start(&part, length,
 * i)
 *     }
 */
#ifndef DT_MODEL_CONTEXT_PARALLEL_H
#define DT_MODEL_CONTEXT_PARALLEL_H

#include "device/device.h"
#include "model/batch.h"
#include "model/model-part.h"

/* How many stretches of a sequence a context has. */
int dt_context_parallel_chunks(const struct dt_model_part *part);
/* Tokens of a stretch, of a sequence of so many. */
int64_t dt_context_parallel_chunk_length(const struct dt_model_part *part, int64_t length);
/* Where stretch number i of this context begins, or of another one. */
int64_t dt_context_parallel_chunk_start(const struct dt_model_part *part, int64_t length, int i);
int64_t dt_context_parallel_chunk_start_of(const struct dt_model_part *part, int context,
                                           int64_t length, int i);
/* Its rows of x, which has all of the context. */
struct dt_tensor dt_context_parallel_chunk_rows(const struct dt_model_part *part,
                                                const struct dt_tensor *x, int i);

/* Rows of a batch that the context has, and row number i of them as a row of the batch. */
int64_t dt_context_parallel_rows(const struct dt_model_part *part, int64_t count, int64_t length);
int64_t dt_context_parallel_row(const struct dt_model_part *part, const struct dt_batch *batch,
                                int64_t i);
/* Tokens with a target among them. */
int64_t dt_context_parallel_targets(const struct dt_model_part *part, const struct dt_batch *batch);

/* The context's rows as a batch: own has memory for them, and spans, twice as many numbers, for
 * what attention keeps to, which is counted in whole sequences. */
void dt_context_parallel_select(struct dt_batch *own, int32_t *spans,
                                const struct dt_model_part *part, const struct dt_batch *batch);

#endif
