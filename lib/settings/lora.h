/* SPDX-License-Identifier: MIT */
/*
 * Low-rank adaptation (LoRA; Hu et al. 2021): which linear maps of a model have an adapter, and its
 * scale. W is frozen; x W becomes
 *
 *     x W + s dropout(x) A' B'     A: r x inputs, B: outputs x r; s = alpha / r
 *
 * A map of the model's files (q_proj, c_attn) has one adapter. Where dt has several tensors for it,
 * as those of queries, keys and values for qkv_proj, they share A, and their rows are B's.
 */
#ifndef DT_SETTINGS_LORA_H
#define DT_SETTINGS_LORA_H

#include <stdbool.h>

#include "base/error.h"
#include "settings/families.h"
#include "json/config.h"

struct dt_lora {
    long rank; /* r; 0: no adapter */
    double alpha, dropout;
    bool rslora;                          /* s = alpha / sqrt(r) (Kalajdzievski 2023) */
    char targets[DT_SETTING_STRING_SIZE]; /* names of maps, separated by commas; or "all-linear" */
};
#define DT_LORA_ALL "all-linear"

/* s. */
double dt_lora_scale(const struct dt_lora *lora);

/* The name of a map, from that of its weight in files: without ".weight". Returns its length. */
int dt_lora_map_length(const char *weight);

/* Whether the map of a weight has an adapter: it is one of the layers', and a target is its name or
 * ends it after a dot, as peft's target_modules. weight: its name in files. */
bool dt_lora_targets(const struct dt_lora *lora, enum dt_role role, const char *weight);

/* DT_EINVALID if a target is not a linear map of the model's layers. path begins errors. */
int dt_lora_check(const struct dt_model_config *config, const char *path,
                  struct dt_error *err) DT_MUST_CHECK;

#endif
