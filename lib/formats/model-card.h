/* SPDX-License-Identifier: MIT */
/*
 * The model card of an export, README.md: a header in YAML, as Hugging Face's hub reads it, and the
 * commands that led to the model with the hashes of their inputs.
 */
#ifndef DT_FORMATS_MODEL_CARD_H
#define DT_FORMATS_MODEL_CARD_H

#include "base/error.h"
#include "settings/model-config.h"
#include "json/json.h"

#define DT_MODEL_CARD "README.md"

/* Writes DIRECTORY/README.md. records: io/lineage.h. */
int dt_model_card_write(const char *directory, const struct dt_model_config *config,
                        struct json_object *records, struct dt_error *err) DT_MUST_CHECK;

#endif
