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

/* Called for each line, which is borrowed; subject is "FILE:LINE" for errors. */
typedef int dt_json_taker(void *context, struct json_object *line, const char *subject,
                          struct dt_error *err);

/* Calls take for each line of path ("-" is stdin) until it fails. A last line without a newline,
 * which another program may still be writing, is skipped. */
int dt_json_lines_read(const char *path, dt_json_taker *take, void *context,
                       struct dt_error *err) DT_MUST_CHECK;
/* The same of a file that is complete: a last line needs no newline, and empty lines are skipped.
 */
int dt_json_lines_read_complete(const char *path, dt_json_taker *take, void *context,
                                struct dt_error *err) DT_MUST_CHECK;

#endif
