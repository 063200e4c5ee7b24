/* SPDX-License-Identifier: MIT */
/* What blocks, head and decoder are made of: linear maps and norms, named by
 * the roles of their tensors, in the form that the model's family gives them. */
#ifndef DT_MODEL_LAYER_H
#define DT_MODEL_LAYER_H

#include "model/model.h"

/* y = x W + b, W and b the tensors of two roles; without b where the model has
 * none. how: activation, aux and accumulate of the product, or NULL. Where W is cut
 * along its inputs, x has this slice's, and y is given to the stream (tensor-parallel.h). */
void dt_layer_linear_forward(const struct dt_model *model, int layer, enum dt_role weight,
                             enum dt_role bias, struct dt_tensor *y, const struct dt_tensor *x,
                             const struct dt_matmul *how);
/* Adds to the gradients of W and b; dx = dy W', finished as how says. Where W is cut along
 * its outputs, dx is this slice's part of a sum. */
void dt_layer_linear_backward(const struct dt_model *model, const struct dt_flat *gradients,
                              int layer, enum dt_role weight, enum dt_role bias,
                              struct dt_tensor *dx, const struct dt_tensor *dy,
                              const struct dt_tensor *x, const struct dt_matmul *how);

/* The activation of the MLP without gate, and of a head transform; NONE with a gate. */
enum dt_activation dt_layer_activation(const struct dt_model *model);

/* Columns of a norm's statistics, which forward leaves for backward. */
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

/* The output head (V x C), and its gradient; the buckets in which they lie. */
struct dt_tensor dt_head_weight(const struct dt_model *model);
struct dt_tensor dt_head_gradient(const struct dt_model *model, const struct dt_flat *gradients);
int dt_head_weight_bucket(const struct dt_model *model);
int dt_head_gradient_bucket(const struct dt_model *model);

#endif
