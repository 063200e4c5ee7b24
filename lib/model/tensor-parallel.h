/* SPDX-License-Identifier: MIT */
/*
 * Collectives of the tensor-parallel group during forward and backward.
 *
 * Each rank reduces one piece of the data, as a binary tree of the ranks (comm/tree.h), and sends
 * it to the others. So all ranks get the same bits, and send as little as in a ring all-reduce.
 * Partial sums are fp32, also where the sum is then rounded to 16 bits. x is contiguous and has the
 * same size on all ranks; pieces are whole rows, of about equal number. With one rank all of these
 * do nothing.
 *
 * A failed communicator fails every later wait (comm.h), so an error here is reported by the next
 * operation that returns errors.
 */
#ifndef DT_MODEL_TENSOR_PARALLEL_H
#define DT_MODEL_TENSOR_PARALLEL_H

#include "model/model.h"

/* The rows that this rank holds with sequence parallelism; all rows without. */
struct dt_range dt_tensor_parallel_rows(const struct dt_model *model, int64_t rows);

/* Sums x over the ranks: all of it, or only this rank's rows. x of 16 bits: at most two ranks have
 * other elements than 0 at a place. */
void dt_tensor_parallel_all_reduce(const struct dt_model *model, struct dt_tensor *x);
void dt_tensor_parallel_reduce_scatter(const struct dt_model *model, struct dt_tensor *x);
/* Gathers the rows of all ranks in x. */
void dt_tensor_parallel_all_gather(const struct dt_model *model, struct dt_tensor *x);

/* The same for hidden states: reduce-scatter and all-gather with sequence parallelism
 * (dt_model_part.sequence); without, all-reduce and nothing. */
void dt_tensor_parallel_reduce_hidden(const struct dt_model *model, struct dt_tensor *x);
void dt_tensor_parallel_gather_hidden(const struct dt_model *model, struct dt_tensor *x);

/* y = the sum of partial (R x C, fp32; overwritten) over the ranks, plus bias, an optional row that
 * is added to each; or with accumulate y += that. y has all rows; with sequence parallelism those
 * of this rank. It may be the same memory as partial. */
void dt_tensor_parallel_sum_hidden(const struct dt_model *model, struct dt_tensor *y,
                                   struct dt_tensor *partial, const struct dt_tensor *bias,
                                   bool accumulate);
/* y (all rows, also with sequence parallelism) = the sum of partial, likewise. */
void dt_tensor_parallel_sum(const struct dt_model *model, struct dt_tensor *y,
                            struct dt_tensor *partial);

/* All-reduces the partial gradients (dt_flat.partial) of a bucket, which are cleared before its
 * backward, and adds them to gradients. */
void dt_tensor_parallel_clear_partial(const struct dt_model *model, int bucket);
void dt_tensor_parallel_add_partial(const struct dt_model *model, int bucket,
                                    const struct dt_flat *gradients);
/* Adds count contiguous rows of fp32 in a binary tree, to the first. */
void dt_tensor_parallel_add_rows(const struct dt_model *model, struct dt_tensor *first, int count);

#endif
