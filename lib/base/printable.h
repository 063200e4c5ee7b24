/* SPDX-License-Identifier: MIT */
/*
 * Text from outside, shown on a terminal: it must not move the cursor, set colours, answer in
 * the user's name, or show its characters in another order than they have.
 *
 * Spelled "\x1b" are control characters and bytes that are not UTF-8 (0x9b alone begins a
 * command on terminals of 8 bits), and "\u009b" C1 control characters, line separators and
 * marks of writing direction. All else passes as it is.
 *
 *     dt_buffer_add_printable(&shown, text, size);
 */
#ifndef DT_BASE_PRINTABLE_H
#define DT_BASE_PRINTABLE_H

#include <stddef.h>

#define DT_SPELLING 8 /* of one character, its final 0 included */

/* Bytes of the character at text, whose size is at least 1. spelling is empty where it can be
 * shown as it is. A character that is cut short by the end of the text is a byte that is not
 * UTF-8. */
size_t dt_printable_next(const char *text, size_t size, char spelling[DT_SPELLING]);

/* Bytes at the end of text that begin a character whose rest may come: 0 to 3. */
size_t dt_printable_unfinished(const char *text, size_t size);

/* Spells a line in place, as far as it fits into capacity bytes with its final 0. */
void dt_printable_line(char *text, size_t capacity);

#endif
