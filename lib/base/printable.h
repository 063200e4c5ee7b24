/* SPDX-License-Identifier: MIT */
/*
 * Escapes untrusted text for a terminal, so that it cannot move the cursor, set colours, send
 * input, or reorder what is shown.
 *
 * Control characters and bytes that are not UTF-8 become "\x1b" (a lone 0x9b begins a command on
 * 8-bit terminals); C1 control characters, line separators and bidirectional controls become
 * "\u009b". All other text is unchanged.
 *
 *     dt_buffer_add_printable(&shown, text, size);
 */
#ifndef DT_BASE_PRINTABLE_H
#define DT_BASE_PRINTABLE_H

#include <stddef.h>

#define DT_SPELLING 8 /* of one character, its final 0 included */

/* Bytes of the character at text, whose size is at least 1. spelling is empty if the character
 * is printable. A truncated character at the end of the text counts as bytes that are not UTF-8. */
size_t dt_printable_next(const char *text, size_t size, char spelling[DT_SPELLING]);

/* The number of bytes of an incomplete character at the end of text: 0 to 3. */
size_t dt_printable_unfinished(const char *text, size_t size);

/* Escapes a line in place, truncated to capacity bytes including the final 0. */
void dt_printable_line(char *text, size_t capacity);

#endif
