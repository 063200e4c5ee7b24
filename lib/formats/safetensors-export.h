/* SPDX-License-Identifier: MIT */
/* Models for others to load, and the mean of several. Models are on the cpu. */
#ifndef DT_FORMATS_SAFETENSORS_EXPORT_H
#define DT_FORMATS_SAFETENSORS_EXPORT_H

#include "formats/model-directory.h"

/* Writes config.json and the weights into an existing directory: as one
 * model.safetensors, or if that would have more than most bytes (0: any number) as
 * several with their index. Weights of 16 bits are rounded to nearest even. config.json
 * comes last, and without it the directory is no model. eot: the id that ends a text. */
int dt_model_export(const struct dt_model *model, enum dt_dtype dtype, uint64_t most, uint32_t eot,
                    const char *directory, struct dt_error *err) DT_MUST_CHECK;

/* Removes the files that the index in a directory names, if it has one. */
void dt_model_export_remove_shards(const char *directory);

/* Adds weight times the parameters of other, a model of the same shape, to those of
 * model times keep. */
int dt_model_mix(struct dt_model *model, float keep, const struct dt_model *other, float weight,
                 const char *name, struct dt_error *err) DT_MUST_CHECK;

/* What two models of one shape make of the same random tokens. */
struct dt_model_difference {
    double largest; /* difference of two logits, or of two losses where a model is masked */
    double range;   /* the largest of the first model's, in size */
};
int dt_model_compare(struct dt_model_difference *difference, const struct dt_model *a,
                     const struct dt_model *b, struct dt_error *err) DT_MUST_CHECK;

#endif
