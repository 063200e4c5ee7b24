/* SPDX-License-Identifier: MIT */
/* Ids as text: a document a line, decimal numbers with a blank between. */
#ifndef DT_TOKEN_ID_LINES_H
#define DT_TOKEN_ID_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "token/tokenizer.h"

/* Appends the line, with its newline. */
void dt_ids_to_line(const uint32_t *ids, size_t count, struct dt_buffer *line);
/* Appends the line with the bytes START .. END of the text that each id comes
 * from, as ID:START:END. */
void dt_ids_to_span_line(const uint32_t *ids, const struct dt_span *spans, size_t count,
                         struct dt_buffer *line);
/* Replaces ids by those of a line without its newline. place ("FILE:LINE")
 * begins the errors. */
int dt_ids_from_line(const char *line, size_t size, const char *place, struct dt_ids *ids,
                     struct dt_error *err) DT_MUST_CHECK;

#endif
