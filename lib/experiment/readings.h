/* SPDX-License-Identifier: MIT */
/*
 * The numbers of a run as one flat JSON object: those of the JSON that it printed
 * ("shuffled.tokens_per_second" for a nested member), and the last value of each member of its
 * metrics.jsonl.
 */
#ifndef DT_EXPERIMENT_READINGS_H
#define DT_EXPERIMENT_READINGS_H

#include "json/json.h"

#include "base/buffer.h"
#include "base/error.h"

/* Larger numbers are not values, as those that are not finite: their means and ratios overflow. */
#define DT_READINGS_MOST 1e300

/* Adds the numbers of a command's output: one JSON object, or the last line that is one. Output
 * without an object adds nothing. */
void dt_readings_add_output(struct json_object *values, const struct dt_buffer *output);

/* Adds the last number of each member of the lines of a metrics file (dt-metrics(5)),
 * and for each target NAME: LEVEL {"reached_NAME_step","reached_NAME_time"} of the first
 * line where NAME is at LEVEL or below, if there is one. */
int dt_readings_add_metrics(struct json_object *values, const char *path,
                            struct json_object *targets, struct dt_error *err) DT_MUST_CHECK;

#endif
