/* SPDX-License-Identifier: MIT */
/*
 * Directories of low-rank adapters (settings/lora.h), as peft writes and reads them:
 *
 *     adapter_config.json         rank, scale, targets, and the base model's path
 *     adapter_model.safetensors   A and B of each map
 *     base_model.json             dt's: the hash of the base model's parameters
 *
 * A model directory may be that of an adapter: its model is the base model with the adapter merged
 * (model-directory.h). What dt does not compute, such as DoRA, is refused by name.
 */
#ifndef DT_FORMATS_ADAPTER_H
#define DT_FORMATS_ADAPTER_H

#include "model/table.h"

#define DT_ADAPTER_CONFIG_FILE  "adapter_config.json"
#define DT_ADAPTER_WEIGHTS_FILE "adapter_model.safetensors"
#define DT_ADAPTER_BASE_FILE    "base_model.json"

/* 1 if the directory has an adapter and lacks weights of a model; 0 if not. DT_EINVALID if it has
 * the weights of both: transformers takes the adapter, with its base model. */
int dt_adapter_probe(const char *directory, struct dt_error *err) DT_MUST_CHECK;

/* The hash of a base model: of its fp32 parameters, a flat arena of the whole model's table. */
uint64_t dt_adapter_base_hash(const struct dt_table *table, const float *parameters);

/* Writes adapter_config.json and base_model.json for the adapter config->lora of the model at base,
 * whose path becomes absolute, with that hash. */
int dt_adapter_write_config(const char *directory, const struct dt_model_config *config,
                            const char *base, uint64_t hash, struct dt_error *err) DT_MUST_CHECK;
/* *base (NULL: not asked for): the path of the base model, owned by the caller; NULL: it names
 * none. */
int dt_adapter_read_config(const char *directory, struct dt_lora *lora, char **base,
                           struct dt_error *err) DT_MUST_CHECK;
/* The base model that the directory of an adapter names; owned by the caller.
 * DT_EMISSING if it is not there. */
int dt_adapter_find_base(const char *directory, char **base, struct dt_error *err) DT_MUST_CHECK;
/* DT_EINVALID if base_model.json has another hash. Without the file, as peft's, any is right. */
int dt_adapter_check_base(const char *directory, uint64_t hash, struct dt_error *err) DT_MUST_CHECK;

/* The parameters of an adapter, into a flat arena (host memory) of dt_table_init_trained. */
int dt_adapter_read(const char *directory, const struct dt_table *table, float *parameters,
                    struct dt_error *err) DT_MUST_CHECK;
/* Adds s B A to the weights of a model, a flat arena (host memory) of table, the whole model's.
 * Checks that they are the base model's. */
int dt_adapter_merge(const char *directory, const struct dt_model_config *config,
                     const struct dt_table *table, float *parameters,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
