/* SPDX-License-Identifier: MIT */
/*
 * UTF-8 as the Unicode Standard defines it (version 15, chapter 3, table 3-7):
 * no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 *     if (dt_utf8_valid_prefix(text, size) < size)
 *         replaced = dt_utf8_repair(text, size, &repaired);
 */
#ifndef DT_UNICODE_UTF8_H
#define DT_UNICODE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Bytes before the first one that is not ASCII; size if all are. */
size_t dt_utf8_ascii_prefix(const char *text, size_t size);

/* Bytes of the longest prefix that is valid UTF-8. */
size_t dt_utf8_valid_prefix(const char *text, size_t size);

/* Appends text to out, with U+FFFD in place of each maximal subpart of an
 * ill-formed sequence (chapter 3, "U+FFFD Substitution of Maximal Subparts").
 * Returns how many were replaced. */
uint64_t dt_utf8_repair(const char *text, size_t size, struct dt_buffer *out);

/* Code points of valid UTF-8. */
uint64_t dt_utf8_count(const char *text, size_t size);
/* How often a byte comes. */
uint64_t dt_utf8_count_byte(const char *text, size_t size, char byte);

/* Bytes of the character that begins with this byte, in valid UTF-8. */
size_t dt_utf8_length(char first);

/* The code point at text, which must be valid UTF-8. */
uint32_t dt_utf8_decode(const char *text);

#endif
