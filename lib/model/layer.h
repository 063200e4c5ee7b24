/* SPDX-License-Identifier: MIT */
/* Linear maps and norms of blocks, head and decoder, by the roles of their tensors, in the form of
 * the model's family. */
#ifndef DT_MODEL_LAYER_H
#define DT_MODEL_LAYER_H

#include "model/model.h"

/* y = x W + b, W and b the tensors of two roles; b is optional. how: activation and aux, or NULL.
 * W is not row-parallel. */
void dt_layer_linear_forward(const struct dt_model *model, int layer, enum dt_role weight,
                             enum dt_role bias, struct dt_tensor *y, const struct dt_tensor *x,
                             const struct dt_matmul *how);
/* The same with a row-parallel W: y is the sum over the TP ranks, rounded once; with sequence
 * parallelism only this rank's rows of it are set. partial: fp32 memory of as many rows or more for
 * the rank's product; data NULL: y itself, which is fp32 then or not split. */
void dt_layer_row_parallel_forward(const struct dt_model *model, int layer, enum dt_role weight,
                                   enum dt_role bias, struct dt_tensor *y,
                                   const struct dt_tensor *x, const struct dt_tensor *partial);

/* Adds to the gradients of W and b or, of frozen ones, to those of their adapter. */
void dt_layer_weight_backward(const struct dt_model *model, const struct dt_flat *gradients,
                              int layer, enum dt_role weight, enum dt_role bias,
                              const struct dt_tensor *dy, const struct dt_tensor *x);
/* A map whose input has a gradient: dy is that of the outputs, or of some outputs of a fused map
 * (0, 0: all). */
struct dt_layer_map {
    enum dt_role weight;
    const struct dt_tensor *dy;
    struct dt_range outputs;
};
#define DT_LAYER_MAPS 3 /* at most */
/* dx = the sum of dy W' over the maps of one input, with activation, aux and accumulate of how. If
 * the maps are column-parallel, dx is a partial sum. */
void dt_layer_input_backward(const struct dt_model *model, int layer,
                             const struct dt_layer_map *maps, int count, struct dt_tensor *dx,
                             const struct dt_matmul *how);

/* The activation of the MLP, or of its gate; and of a head transform. */
enum dt_activation dt_layer_activation(const struct dt_model *model);
enum dt_activation dt_layer_head_activation(const struct dt_model *model);

/* Columns of a norm's statistics, kept by forward for backward. */
int64_t dt_layer_norm_statistics(const struct dt_model *model);
/* sum = x + add (add NULL: x); y = its norm. */
void dt_layer_norm_forward(const struct dt_model *model, int layer, enum dt_role weight,
                           enum dt_role bias, struct dt_tensor *y, struct dt_tensor *stats,
                           struct dt_tensor *sum, const struct dt_tensor *x,
                           const struct dt_tensor *add);
/* Adds to dsum, and to the gradients of weight and bias. */
void dt_layer_norm_backward(const struct dt_model *model, const struct dt_flat *gradients,
                            int layer, enum dt_role weight, enum dt_role bias,
                            struct dt_tensor *dsum, const struct dt_tensor *dy,
                            const struct dt_tensor *sum, const struct dt_tensor *stats);
/* The same of the norms of queries or keys, one a head. Each part of the rows is summed over the
 * heads, in parts (tensor-partition.h) and over the TP ranks, before the rows are summed; with
 * partial gradients, the parts of the rows are left to dt_tensor_parallel_add_partial. */
void dt_layer_head_norm_backward(const struct dt_model *model, const struct dt_flat *gradients,
                                 int layer, enum dt_role weight, struct dt_tensor *dsum,
                                 const struct dt_tensor *dy, const struct dt_tensor *sum,
                                 const struct dt_tensor *stats);

/* x = x factor, rounded once. A factor of 0 is not set, and means 1. */
void dt_layer_scale(const struct dt_model *model, struct dt_tensor *x, double factor);

/* The output head (V x C) and its gradient, and their buckets. */
struct dt_tensor dt_head_weight(const struct dt_model *model);
struct dt_tensor dt_head_gradient(const struct dt_model *model, const struct dt_flat *gradients);
int dt_head_weight_bucket(const struct dt_model *model);
int dt_head_gradient_bucket(const struct dt_model *model);

#endif
