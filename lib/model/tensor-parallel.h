/* SPDX-License-Identifier: MIT */
/*
 * What the ranks that hold the slices of a model tell each other in a pass.
 *
 * Sums are made by those who need them, slice by slice in their order, in fp32: each rank
 * adds up its piece of what all have, and gives it to the others. So all get the same bits,
 * and send what the best rings send. x is contiguous and of one size on all ranks; pieces
 * are whole rows of it, about as many for each. Without other slices there is nothing to do.
 *
 * A communicator that has failed fails every wait from then on (comm.h), so what goes wrong
 * here is reported by the next operation that can.
 */
#ifndef DT_MODEL_TENSOR_PARALLEL_H
#define DT_MODEL_TENSOR_PARALLEL_H

#include "model/model.h"

/* Rows of x that this rank has when every slice has some of the rows. */
struct dt_range dt_tensor_parallel_rows(const struct dt_model *model, int64_t rows);

/* x, of which each rank has a part to be added up, becomes the sum: all of it, or this rank's
 * rows alone. */
void dt_tensor_parallel_all_reduce(const struct dt_model *model, struct dt_tensor *x);
void dt_tensor_parallel_reduce_scatter(const struct dt_model *model, struct dt_tensor *x);
/* Every rank gets the others' rows. */
void dt_tensor_parallel_all_gather(const struct dt_model *model, struct dt_tensor *x);

/* The same with each rank's rows of the residual stream, where these are dealt out
 * (dt_model_part.sequence); otherwise every rank has all of them, and the first sums up x
 * for all, and the second does nothing. */
void dt_tensor_parallel_reduce_hidden(const struct dt_model *model, struct dt_tensor *x);
void dt_tensor_parallel_gather_hidden(const struct dt_model *model, struct dt_tensor *x);

/* Completes a bucket's gradients that are sums of ranks' parts: partial (dt_flat.partial),
 * set to zero before the bucket's backward pass, is added to gradients. */
void dt_tensor_parallel_clear_partial(const struct dt_model *model, int bucket);
void dt_tensor_parallel_add_partial(const struct dt_model *model, int bucket,
                                    const struct dt_flat *gradients);

#endif
