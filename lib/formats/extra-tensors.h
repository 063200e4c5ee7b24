/* SPDX-License-Identifier: MIT */
/*
 * Tensors in weight files that are not in the table of the model: copies of tied weights, stored
 * constants, and heads for other tasks. Copies and constants are compared with what the model
 * computes with.
 */
#ifndef DT_FORMATS_EXTRA_TENSORS_H
#define DT_FORMATS_EXTRA_TENSORS_H

#include "formats/safetensors.h"
#include "model/table.h"

#define DT_EXTRA_TENSORS 16

/* The extras of the family, for dt_safetensors_read with a list in the order of the table (of a
 * whole model). config is borrowed as long as extras are used. */
void dt_extra_tensors_of(struct dt_extra_tensor extras[DT_EXTRA_TENSORS],
                         const struct dt_model_config *config, const struct dt_table *table);

#endif
