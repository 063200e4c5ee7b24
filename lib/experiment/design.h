/* SPDX-License-Identifier: MIT */
/*
 * The plan of a matrix put together: a YAML file, and options that replace its keys.
 *
 *     DT_TRY(dt_plan_open(&plan, "sweep.yaml", err));       NULL: begins with nothing
 *     dt_plan_set(plan, "repeats", "9");
 *     DT_TRY(dt_plan_add(plan, "axes", "layers=2,4", true, "--axis", err));
 *     DT_TRY(dt_matrix_init(&matrix, plan, "sweep.yaml", err));
 */
#ifndef DT_EXPERIMENT_PLAN_H
#define DT_EXPERIMENT_PLAN_H

#include <json-c/json.h>
#include <stdbool.h>

#include "base/error.h"

/* *plan is owned by the caller until dt_matrix_init takes it. */
int dt_plan_open(struct json_object **plan, const char *path, struct dt_error *err) DT_MUST_CHECK;

void dt_plan_set(struct json_object *plan, const char *key, const char *value);
void dt_plan_set_list(struct json_object *plan, const char *key, const char *const *items,
                      int count);
/* Adds "NAME=VALUE" to a mapping, and replaces one of that name. list: VALUE is a list
 * between commas. option names where it came from in errors. */
int dt_plan_add(struct json_object *plan, const char *key, const char *pair, bool list,
                const char *option, struct dt_error *err) DT_MUST_CHECK;

#endif
