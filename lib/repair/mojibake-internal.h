/* SPDX-License-Identifier: MIT */
/* Undoing double encodings: a line as a whole, by the encoding that its UTF-8 was taken for. */
#ifndef DT_REPAIR_MOJIBAKE_INTERNAL_H
#define DT_REPAIR_MOJIBAKE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* The characters of the bytes 0x80 to 0xff. */
#define DT_MOJIBAKE_ENCODINGS 10
extern const uint16_t dt_mojibake_encodings[DT_MOJIBAKE_ENCODINGS][128];

/* Appends to out the line as it was before its UTF-8 was taken for one of the encodings, if all of
 * it is UTF-8 then, and its characters follow each other more plausibly than now. Returns the
 * number of characters repaired; 0 if out is as it was. */
uint64_t dt_mojibake_repair_line(const char *line, size_t size, struct dt_buffer *out);

/* Pairs of characters that do not follow each other in text of any language: a symbol inside a
 * word, a capital after a small letter, letters of two scripts. */
unsigned dt_mojibake_strangeness(const char *text, size_t size);

#endif
