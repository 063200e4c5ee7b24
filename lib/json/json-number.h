/* SPDX-License-Identifier: MIT */
/*
 * JSON numbers. NaN and infinity, which JSON cannot express, are written as null. Use these
 * functions for every number that may not be finite.
 *
 *     dt_buffer_add_char(&b, '{');
 *     dt_json_add_real(&b, "loss", loss, 9);
 *     dt_json_add_fixed(&b, "seconds", seconds, 3);          {"loss":2.5,"seconds":0.125
 */
#ifndef DT_JSON_JSON_NUMBER_H
#define DT_JSON_JSON_NUMBER_H

#include "base/buffer.h"
#include "json/json.h"

/* A number for json-c, owned by the caller; NULL, json-c's null, if x is not finite. */
struct json_object *dt_json_number(double x);

/* A bare number in its shortest form. */
void dt_json_add_number(struct dt_buffer *b, double x);
/* A member of an object; a comma comes before it unless b ends with '{'. */
void dt_json_add_real(struct dt_buffer *b, const char *name, double x, int digits);
/* The same with a fixed number of decimals. */
void dt_json_add_fixed(struct dt_buffer *b, const char *name, double x, int decimals);

#endif
