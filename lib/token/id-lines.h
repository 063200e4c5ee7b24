/* SPDX-License-Identifier: MIT */
/* Ids as text: a line per document, decimal numbers separated by spaces. */
#ifndef DT_TOKEN_ID_LINES_H
#define DT_TOKEN_ID_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "token/tokenizer.h"

/* Appends the line and a newline. */
void dt_ids_to_line(const uint32_t *ids, size_t count, struct dt_buffer *line);
/* Appends the line with each id as ID:START:END, its byte range in the text. */
void dt_ids_to_span_line(const uint32_t *ids, const struct dt_span *spans, size_t count,
                         struct dt_buffer *line);
/* Replaces ids by those of a line without its newline. location ("FILE:LINE") prefixes
 * errors. DT_EFORMAT: not an id. */
int dt_ids_from_line(const char *line, size_t size, const char *location, struct dt_ids *ids,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
