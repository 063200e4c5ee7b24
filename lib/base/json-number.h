/* SPDX-License-Identifier: MIT */
/*
 * Numbers of JSON, which has none for NaN and infinity: null stands in their place. Every
 * number that may not be finite is written by these functions.
 *
 *     dt_buffer_add_char(&b, '{');
 *     dt_json_add_real(&b, "loss", loss, 9);
 *     dt_json_add_fixed(&b, "seconds", seconds, 3);          {"loss":2.5,"seconds":0.125
 */
#ifndef DT_BASE_JSON_NUMBER_H
#define DT_BASE_JSON_NUMBER_H

#include <json-c/json.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

/* A number for json-c, owned by the caller; NULL, json-c's null, if x is not finite. */
struct json_object *dt_json_number(double x);

/* A bare number in its shortest form. */
void dt_json_add_number(struct dt_buffer *b, double x);
/* A member of an object; a comma comes before it unless b ends with '{'. */
void dt_json_add_real(struct dt_buffer *b, const char *name, double x, int digits);
/* The same with a fixed number of decimals. */
void dt_json_add_fixed(struct dt_buffer *b, const char *name, double x, int decimals);

/* Copies into plain what json-c would misread: a whole number beyond 64 bits, which it would
 * clamp, becomes a real one, and NaN, Infinity and -Infinity, which Python writes, become null.
 * plain stays empty if there is no such number. DT_EFORMAT with *at, the byte of a number that
 * is not one of JSON, such as 1. or -NaN. */
int dt_json_resolve_numbers(const char *text, size_t size, struct dt_buffer *plain,
                            size_t *at) DT_MUST_CHECK;

#endif
