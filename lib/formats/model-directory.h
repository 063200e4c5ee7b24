/* SPDX-License-Identifier: MIT */
/*
 * A model as a directory that transformers loads as it is: config.json,
 * model.safetensors, and tokenizer.json with its tokenizer_config.json where there
 * is one. A directory that
 * dt-train made also holds trainer/, whose manifest lists the hashes of all.
 */
#ifndef DT_FORMATS_MODEL_DIRECTORY_H
#define DT_FORMATS_MODEL_DIRECTORY_H

#include "formats/safetensors.h"
#include "model/model.h"

#define DT_WEIGHTS_FILE          "model.safetensors"
#define DT_INDEX_FILE            "model.safetensors.index.json" /* of weights in several files */
#define DT_TOKENIZER_FILE        "tokenizer.json"
#define DT_TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define DT_TRAINER_DIR           "trainer"
#define DT_MANIFEST_FILE         "trainer/manifest.json"

/* Where a directory has a manifest, checks all that it lists. */
int dt_model_verify(const char *directory, struct dt_error *err) DT_MUST_CHECK;

/* Loads the model; where there is a manifest, checks it first. */
int dt_model_load(struct dt_model **model, struct dt_device *dev, const char *directory,
                  struct dt_error *err) DT_MUST_CHECK;
/* The same to compute in another type than fp32. */
int dt_model_load_as(struct dt_model **model, struct dt_device *dev, enum dt_dtype compute,
                     const char *directory, struct dt_error *err) DT_MUST_CHECK;

/* Replaces the parameters of a model of the same configuration by those in the
 * directory, which may be F32, F16 or BF16, and in several files; one that is not finite
 * is refused, and so are tensors besides the model's, except those of extra-tensors.h. The caller
 * has checked the manifest. */
int dt_model_restore(struct dt_model *model, const char *directory,
                     struct dt_error *err) DT_MUST_CHECK;

/* The same into host memory, a flat arena of the whole model's table. compute: the type that they
 * are to be computed in, which must hold each of them. */
int dt_model_directory_read_parameters(const struct dt_model_config *config,
                                       const struct dt_table *table, enum dt_dtype compute,
                                       const char *directory, float *parameters,
                                       struct dt_error *err) DT_MUST_CHECK;

/* Writes tokenizer_config.json beside the tokenizer.json in a directory, so that
 * transformers takes the latter as it is, whatever the model's family. eot: as in
 * config.json; max_length: of a sequence, in tokens. */
int dt_tokenizer_config_write(const char *directory, uint32_t eot, long max_length,
                              struct dt_error *err) DT_MUST_CHECK;

/* One tensor of the list for each of the table's, with the data in the flat
 * arena at base (host memory; NULL: without data) and suffix behind the name. Owned by the caller
 * (free). */
struct dt_named_tensor *dt_model_named_tensors(const struct dt_table *table, float *base,
                                               const char *suffix);

#endif
