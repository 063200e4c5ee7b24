/* SPDX-License-Identifier: MIT */
/* Members of a document's "meta", a JSON object as text. Other members keep their bytes unless one
 * is replaced. */
#ifndef DT_JSON_META_H
#define DT_JSON_META_H

#include <stdbool.h>

#include "base/buffer.h"

/* Makes NAME: VALUE the last member, in place of one with the same name; value is JSON. */
void dt_meta_set(struct dt_buffer *meta, const char *name, const char *value);

/* Copies the string that is the member NAME; empty if there is none. */
void dt_meta_get_string(const struct dt_buffer *meta, const char *name, struct dt_buffer *value);
/* The number that is the member NAME, or `missing`. */
double dt_meta_get_number(const struct dt_buffer *meta, const char *name, double missing);

#endif
