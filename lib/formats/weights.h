/* SPDX-License-Identifier: MIT */
/* The files of a model's weights, and the tensors in them. */
#ifndef DT_FORMATS_WEIGHTS_H
#define DT_FORMATS_WEIGHTS_H

#include "formats/safetensors.h"
#include "model/table.h"

#define DT_WEIGHTS_FILE "model.safetensors"
#define DT_INDEX_FILE   "model.safetensors.index.json" /* of weights in several files */

/* Returns a list of the table's tensors with data in the flat arena at base (host memory; NULL:
 * without data) and suffix appended to their names. free() it. */
struct dt_named_tensor *dt_weights_named_tensors(const struct dt_table *table, float *base,
                                                 const char *suffix);

#endif
