/* SPDX-License-Identifier: MIT */
/* Model directories for other programs, and the mean of several models. Models are on the cpu. */
#ifndef DT_FORMATS_SAFETENSORS_EXPORT_H
#define DT_FORMATS_SAFETENSORS_EXPORT_H

#include "formats/labels.h"
#include "formats/model-directory.h"

/* Writes the weights, then config.json, into an existing directory; without config.json the
 * directory is not a model. Weights are one model.safetensors, or if that exceeds max_shard bytes
 * (0: unlimited) several files with an index. 16-bit weights are rounded to nearest even. eot:
 * the end-of-text token; labels: of a classifier, or NULL. */
int dt_model_export(const struct dt_model *model, enum dt_dtype dtype, uint64_t max_shard,
                    uint32_t eot, const struct dt_labels *labels, const char *directory,
                    struct dt_error *err) DT_MUST_CHECK;

/* Removes the weight files listed in a directory's index, if present. */
void dt_model_export_remove_shards(const char *directory);

/* parameters = keep * parameters + weight * those of other, a model of the same shape and
 * computation. name: of other, for errors. */
int dt_model_mix(struct dt_model *model, float keep, const struct dt_model *other, float weight,
                 const char *name, struct dt_error *err) DT_MUST_CHECK;

/* Compares two models of one shape on the same random tokens. */
struct dt_model_difference {
    double largest; /* difference of two logits, or for masked models of two losses */
    double range;   /* largest magnitude of the first model's */
};
int dt_model_compare(struct dt_model_difference *difference, const struct dt_model *a,
                     const struct dt_model *b, struct dt_error *err) DT_MUST_CHECK;

#endif
