/* SPDX-License-Identifier: MIT */
/*
 * Builds the design of a matrix from a YAML file and options that replace its keys.
 *
 *     DT_TRY(dt_design_open(&design, "sweep.yaml", err));       NULL: starts empty
 *     dt_design_set(design, "repeats", "9");
 *     DT_TRY(dt_design_add(design, "axes", "layers=2,4", true, "--axis", err));
 *     DT_TRY(dt_matrix_init(&matrix, design, "sweep.yaml", err));
 */
#ifndef DT_EXPERIMENT_DESIGN_H
#define DT_EXPERIMENT_DESIGN_H

#include "json/json.h"
#include <stdbool.h>

#include "base/error.h"

/* *design: owned by the caller until dt_matrix_init takes ownership. */
int dt_design_open(struct json_object **design, const char *path,
                   struct dt_error *err) DT_MUST_CHECK;

void dt_design_set(struct json_object *design, const char *key, const char *value);
void dt_design_set_list(struct json_object *design, const char *key, const char *const *items,
                        int count);
/* Adds "NAME=VALUE" to a mapping, replacing an entry of that name. list: VALUE is a comma-separated
 * list. option: the source named in errors. */
int dt_design_add(struct json_object *design, const char *key, const char *pair, bool list,
                  const char *option, struct dt_error *err) DT_MUST_CHECK;

#endif
