/* SPDX-License-Identifier: MIT */
/* Linear maps and norms of blocks, head and decoder, by the roles of their tensors, in the form of
 * the model's family. */
#ifndef DT_MODEL_LAYER_H
#define DT_MODEL_LAYER_H

#include "model/model.h"

/* y = x W + b, W and b the tensors of two roles; b is optional. how: activation, aux and accumulate
 * of the product, or NULL. If W is row-parallel, y is reduced over the TP ranks as hidden states
 * (tensor-parallel.h). */
void dt_layer_linear_forward(const struct dt_model *model, int layer, enum dt_role weight,
                             enum dt_role bias, struct dt_tensor *y, const struct dt_tensor *x,
                             const struct dt_matmul *how);
/* Adds to the gradients of W and b; dx = dy W', with activation, aux and accumulate of how. If W is
 * column-parallel, dx is a partial sum. */
void dt_layer_linear_backward(const struct dt_model *model, const struct dt_flat *gradients,
                              int layer, enum dt_role weight, enum dt_role bias,
                              struct dt_tensor *dx, const struct dt_tensor *dy,
                              const struct dt_tensor *x, const struct dt_matmul *how);

/* The activation of the MLP without gate, and of a head transform; NONE with a gate. */
enum dt_activation dt_layer_activation(const struct dt_model *model);

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

/* The output head (V x C) and its gradient, and their buckets. */
struct dt_tensor dt_head_weight(const struct dt_model *model);
struct dt_tensor dt_head_gradient(const struct dt_model *model, const struct dt_flat *gradients);
int dt_head_weight_bucket(const struct dt_model *model);
int dt_head_gradient_bucket(const struct dt_model *model);

#endif
