/* SPDX-License-Identifier: MIT */
/*
 * JSON through json-c: parsing with a place in the error, and writing of the
 * few things that are written by hand for speed.
 */
#ifndef DT_BASE_JSON_H
#define DT_BASE_JSON_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

/* Parses one JSON value that fills text (white space around it is fine).
 * *value is owned by the caller (json_object_put). subject names the text in
 * errors: "FILE" or "FILE:LINE". NaN and Infinity, which Python writes, are read as
 * null; a whole number beyond 64 bits as a real one. */
int dt_json_parse(const char *text, size_t size, const char *subject, struct json_object **value,
                  struct dt_error *err) DT_MUST_CHECK;

/* Reads and parses a whole file. */
int dt_json_read(const char *path, struct json_object **value, struct dt_error *err) DT_MUST_CHECK;

/* The member NAME of an object, checked for its type; DT_EFORMAT naming the
 * subject and the member if it is absent or of another type. Borrowed. */
int dt_json_get(struct json_object *object, const char *name, enum json_type type,
                const char *subject, struct json_object **value,
                struct dt_error *err) DT_MUST_CHECK;
int dt_json_get_int(struct json_object *object, const char *name, const char *subject,
                    int64_t *value, struct dt_error *err) DT_MUST_CHECK;
/* Refuses a string with a zero byte, which would be cut there. */
int dt_json_get_string(struct json_object *object, const char *name, const char *subject,
                       const char **value, struct dt_error *err) DT_MUST_CHECK;
/* Takes whole and fractional numbers; one that is not finite in double precision (1e400) is
 * DT_EFORMAT. */
int dt_json_get_real(struct json_object *object, const char *name, const char *subject,
                     double *value, struct dt_error *err) DT_MUST_CHECK;

/* Bytes that text begins with which stand for themselves between quotes: no control
 * character (nor 0x7f), no quotation mark, no backslash. */
size_t dt_json_plain(const char *text, size_t size);
/* Appends text as a quoted JSON string. Bytes that are no UTF-8 pass as they are. */
void dt_json_add_string(struct dt_buffer *b, const char *text, size_t size);

/* Writes a value as a file, indented for reading, atomically. */
int dt_json_write(const char *path, struct json_object *value, struct dt_error *err) DT_MUST_CHECK;

#endif
