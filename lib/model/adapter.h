/* SPDX-License-Identifier: MIT */
/*
 * The low-rank adapters of linear maps (settings/lora.h), as a term of each map (layer.h): the
 * model's table has A and B, and the weights of base are frozen. Maps without an adapter are left
 * as they are, and so are models without any.
 *
 * R rows, r the rank. The buffers hold DT_ADAPTER_ROWS rows, whatever R: the products are made of
 * some rows after others. Not with tensor or context parallelism.
 */
#ifndef DT_MODEL_ADAPTER_H
#define DT_MODEL_ADAPTER_H

#include "device/arena.h"
#include "model/layer.h"

#define DT_ADAPTER_ROWS 1024

/* Lays out the buffers of model->adapter. */
void dt_adapter_layout(const struct dt_model *model, struct dt_arena *arena);

/* y = s dropout(x) A' B' of the map of a weight; returns false, and leaves y, if it has no adapter.
 */
bool dt_adapter_forward(const struct dt_model *model, int layer, enum dt_role weight,
                        struct dt_tensor *y, const struct dt_tensor *x);
/* Adds to the gradients of A and B. */
void dt_adapter_weight_backward(const struct dt_model *model, const struct dt_flat *gradients,
                                int layer, enum dt_role weight, const struct dt_tensor *dy,
                                const struct dt_tensor *x);
/* dx, or with accumulate dx +, = the adapter's gradient of its input; returns false, and leaves dx,
 * if the map has no adapter. */
bool dt_adapter_input_backward(const struct dt_model *model, int layer,
                               const struct dt_layer_map *map, struct dt_tensor *dx,
                               bool accumulate);

#endif
