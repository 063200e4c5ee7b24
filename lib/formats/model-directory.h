/* SPDX-License-Identifier: MIT */
/*
 * A model directory that transformers loads: config.json, model.safetensors, and optionally
 * tokenizer.json with tokenizer_config.json. A directory that
 * dt-train made also holds trainer/, whose manifest lists the hashes of all. A directory with an
 * adapter (adapter.h) instead of weights is the model that it names, with the adapter merged.
 *
 * Where these functions take a path, it may also be that of a GGUF file, by its suffix.
 */
#ifndef DT_FORMATS_MODEL_DIRECTORY_H
#define DT_FORMATS_MODEL_DIRECTORY_H

#include "formats/weights.h"
#include "model/model.h"

#define DT_TOKENIZER_FILE        "tokenizer.json"
#define DT_TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define DT_TRAINER_DIR           "trainer"
#define DT_MANIFEST_FILE         "trainer/manifest.json"

/* Checks the files of the manifest, if the directory has one. */
int dt_model_verify(const char *directory, struct dt_error *err) DT_MUST_CHECK;

/* Loads the model, after checking its manifest, if any. */
int dt_model_load(struct dt_model **model, struct dt_device *dev, const char *path,
                  struct dt_error *err) DT_MUST_CHECK;
/* The same with another compute type than fp32, or another context. */
int dt_model_load_as(struct dt_model **model, struct dt_device *dev, struct dt_model_use use,
                     const char *path, struct dt_error *err) DT_MUST_CHECK;

/* Merges an adapter (adapter.h) into a loaded model. */
int dt_model_merge_adapter(struct dt_model *model, const char *directory,
                           struct dt_error *err) DT_MUST_CHECK;

/* The model's configuration. The manifest is not checked. */
int dt_model_read_config(struct dt_model_config *config, const char *path,
                         struct dt_error *err) DT_MUST_CHECK;

/* Replaces the parameters of a model of the same configuration by those in the directory, which may
 * be F32, F16 or BF16, and in several files. Elements must be finite, and other tensors are
 * refused, except those of extra-tensors.h. The caller has checked the manifest. */
int dt_model_restore(struct dt_model *model, const char *directory,
                     struct dt_error *err) DT_MUST_CHECK;

/* The same into host memory, a flat arena of the whole model's table. Elements must be finite in
 * the type compute. */
int dt_model_read_parameters(const struct dt_model_config *config, const struct dt_table *table,
                             enum dt_dtype compute, const char *path, float *parameters,
                             struct dt_error *err) DT_MUST_CHECK;

/* The path of the model's tokenizer: the directory's tokenizer.json, or a GGUF file that has one.
 * *tokenizer is owned by the caller; NULL: there is none. */
int dt_model_find_tokenizer(const char *path, char **tokenizer, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if a tokenizer's file, which was loaded, is of another kind than dt_tokenizer_copy
 * takes: vocab.txt, tokenizer.model ... */
int dt_tokenizer_need_json(const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Copies a tokenizer.json, or writes that of a GGUF file. */
int dt_tokenizer_copy(const char *from, const char *to, struct dt_error *err) DT_MUST_CHECK;

/* Writes tokenizer_config.json for the tokenizer.json in a directory, so that transformers loads
 * the latter unchanged, whatever the model's family. bos, eos: the tokens that begin and end a
 * text, or UINT32_MAX; max_length: of a sequence, in tokens. */
int dt_tokenizer_config_write(const char *directory, uint32_t bos, uint32_t eos, long max_length,
                              struct dt_error *err) DT_MUST_CHECK;

#endif
