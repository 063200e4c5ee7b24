/* SPDX-License-Identifier: MIT */
/*
 * How the tensors of a model are cut into slices (tensor parallelism: Shoeybi et al. 2019).
 *
 * A block's linear maps come in pairs: the first is cut along its outputs, so that each
 * slice has some heads of attention or some channels of the MLP, and the second along
 * its inputs, whose products are added up over the slices. The vocabulary is cut likewise.
 * Queries go with the head of keys and values that serves them. Where these are fewer
 * than the slices, several slices hold the same one, and share out its queries.
 *
 *     struct dt_tensor_partition slice = dt_tensor_partition_of(&config, part.slice, part.slices);
 */
#ifndef DT_MODEL_TENSOR_PARTITION_H
#define DT_MODEL_TENSOR_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/range.h"
#include "settings/model-config.h"

#define DT_TENSOR_PARALLEL_MOST 256

/* What one slice has. */
struct dt_tensor_partition {
    struct dt_range heads, kv_heads, inner, tokens;
    struct dt_range key_holders; /* slices that have the same heads of keys and values */
};

struct dt_tensor_partition dt_tensor_partition_of(const struct dt_model_config *config, int tp_rank,
                                                  int tp_size);

/* DT_EINVALID where some slice would have nothing of a tensor that is cut. */
int dt_tensor_partition_check(const struct dt_model_config *config, long tp_size,
                              const char *subject, struct dt_error *err) DT_MUST_CHECK;

#endif
