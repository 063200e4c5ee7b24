/* SPDX-License-Identifier: MIT */
/*
 * Compares published figures with predictions for the same model, layout and machine.
 *
 * The file is JSON Lines with one figure per line; dt-cluster(5) describes it. All predictions use
 * the constants of the cluster files; no figure has separate constants.
 */
#ifndef DT_PLAN_PUBLISHED_H
#define DT_PLAN_PUBLISHED_H

#include "base/buffer.h"
#include "json/json.h"

#define DT_PUBLISHED_NEAR 0.20 /* a figure with a larger error must have "why" */

/* Appends a table to text. *json: an array of {name, published, predicted, error, ...}, owned by
 * the caller (json_object_put). Configurations are read from ../configs relative to path's
 * directory. */
int dt_published_compare(const char *path, struct dt_buffer *text, struct json_object **json,
                         struct dt_error *err) DT_MUST_CHECK;

#endif
