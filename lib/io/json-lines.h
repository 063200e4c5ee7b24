/* SPDX-License-Identifier: MIT */
/*
 * A file of JSON Lines.
 *
 *     static int take(void *context, struct json_object *line, const char *subject,
 *                     struct dt_error *err);
 *     DT_TRY(dt_json_lines_read("rows.jsonl", take, &rows, err));
 */
#ifndef DT_IO_JSON_LINES_H
#define DT_IO_JSON_LINES_H

#include "json/json.h"

#include "base/error.h"

/* Is given a line, borrowed, and "FILE:LINE" for errors. */
typedef int dt_json_taker(void *context, struct json_object *line, const char *subject,
                          struct dt_error *err);

/* Gives each line of path ("-" is stdin) to take until it fails. A last line without its
 * newline, which another program may still be writing, is passed over. */
int dt_json_lines_read(const char *path, dt_json_taker *take, void *context,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
