/* SPDX-License-Identifier: MIT */
/*
 * Rotary position embeddings (Su et al. 2021): the tables of cosines and sines that ops->rope
 * reads, as transformers' modeling_rope_utils defines them, in fp64 and rounded once.
 *
 *     double frequencies[D / 2];
 *     dt_rope_frequencies(&config, DT_ROPE_TABLE_GLOBAL, frequencies);
 */
#ifndef DT_MODEL_ROPE_H
#define DT_MODEL_ROPE_H

#include <stdint.h>

#include "settings/model-config.h"

/* A model has one table of angles, and with rope_local_theta another for its local layers, those
 * with a sliding window: its base is rope_local_theta, and it is not scaled. */
enum dt_rope_table { DT_ROPE_TABLE_GLOBAL, DT_ROPE_TABLE_LOCAL, DT_ROPE_TABLE_COUNT };

/* Columns of a table of the model: the channels of a head that are rotated, its first ones; 0: the
 * model has no such table. */
int64_t dt_rope_columns(const struct dt_model_config *config, enum dt_rope_table table);

/* The table that a layer reads; DT_ROPE_TABLE_COUNT: none, the layer has no positions. */
enum dt_rope_table dt_rope_table_of(const struct dt_model_config *config, int layer);

/* frequencies[j], of columns / 2: the angle in radians by which a position turns pair j. */
void dt_rope_frequencies(const struct dt_model_config *config, enum dt_rope_table table,
                         double *frequencies);

/* Fills a table, max_seq_len x columns: row t has the cosines of t frequencies[j], followed by the
 * sines, both times the attention factor of YaRN and LongRoPE. */
void dt_rope_fill(const struct dt_model_config *config, enum dt_rope_table table, float *values);

#endif
