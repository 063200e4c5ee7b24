/* SPDX-License-Identifier: MIT */
/*
 * Reads any YAML file as a JSON value. Files with a fixed table of settings are read by config.h.
 *
 *     struct json_object *design;
 *     DT_TRY(dt_yaml_read("sweep.yaml", &design, err));
 *
 * Mappings become objects, sequences arrays, and every scalar a string, as it is
 * written: 1e-3 stays "1e-3". A null is the string "". Duplicate keys, aliases
 * and a second document are errors with FILE:LINE:COLUMN.
 */
#ifndef DT_JSON_YAML_H
#define DT_JSON_YAML_H

#include "json/json.h"

#include "base/error.h"

/* *value is owned by the caller (json_object_put); an empty file is an error. */
int dt_yaml_read(const char *path, struct json_object **value, struct dt_error *err) DT_MUST_CHECK;

#endif
