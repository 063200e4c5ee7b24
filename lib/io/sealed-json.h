/* SPDX-License-Identifier: MIT */
/*
 * JSON files of which every bit is checked: the last member, "seal", is the SHA-256 of the others
 * as compact JSON, and the file is laid out as dt_json_write() does.
 *
 *     DT_TRY(dt_sealed_json_write("index.json", object, err));
 *     DT_TRY(dt_sealed_json_check("index.json", err));
 */
#ifndef DT_IO_SEALED_JSON_H
#define DT_IO_SEALED_JSON_H

#include "base/error.h"
#include "json/json.h"

/* Adds the seal to object and writes the file atomically. */
int dt_sealed_json_write(const char *path, struct json_object *object,
                         struct dt_error *err) DT_MUST_CHECK;
/* Reads the file: 1 if it is as it was written; DT_EFORMAT if it was changed; 0 if it has no seal,
 * as files of earlier versions have none. */
int dt_sealed_json_check(const char *path, struct dt_error *err) DT_MUST_CHECK;

#endif
