/* SPDX-License-Identifier: MIT */
/*
 * Published figures beside what is predicted for the same model, layout and machine.
 *
 * A file of JSON Lines has one figure a line, as dt-cluster(5) describes; all are predicted
 * with the constants of the clusters' files, and none has a constant of its own.
 */
#ifndef DT_PLAN_PUBLISHED_H
#define DT_PLAN_PUBLISHED_H

#include "base/buffer.h"
#include "json/json.h"

#define DT_PUBLISHED_NEAR 0.20 /* beyond that a line must say why */

/* Appends a table, and makes an array of {name, published, predicted, error, ...} owned by
 * the caller (json_object_put). Configurations are looked for beside path, in ../configs. */
int dt_published_compare(const char *path, struct dt_buffer *text, struct json_object **json,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
