/* SPDX-License-Identifier: MIT */
/* Adapters (adapter.h) without their base model, for other programs. */
#ifndef DT_FORMATS_ADAPTER_EXPORT_H
#define DT_FORMATS_ADAPTER_EXPORT_H

#include "model/model.h"

/* Checks that the adapter in a directory is of this model, on the cpu, and writes it into an
 * existing directory as peft does; base: the model's path. */
int dt_adapter_export(const char *adapter, const struct dt_model *model, const char *base,
                      const char *directory, struct dt_error *err) DT_MUST_CHECK;
/* The same as a GGUF file in fp32, which llama.cpp loads beside the model's. name: general.name, in
 * UTF-8. */
int dt_adapter_export_gguf(const char *adapter, const struct dt_model *model, const char *name,
                           const char *path, struct dt_error *err) DT_MUST_CHECK;
/* Removes the files of dt_adapter_export. */
void dt_adapter_export_remove(const char *directory);

#endif
