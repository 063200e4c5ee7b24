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
 * Returns the number of replacements. */
uint64_t dt_utf8_repair(const char *text, size_t size, struct dt_buffer *out);

/* Code points of valid UTF-8. */
uint64_t dt_utf8_count(const char *text, size_t size);
/* The number of bytes equal to byte. */
uint64_t dt_utf8_count_byte(const char *text, size_t size, char byte);

/* Bytes of the character whose first byte this is, in valid UTF-8. */
static inline size_t dt_utf8_length(char first)
{
    unsigned char lead = (unsigned char)first;
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* The code point at text, which must be valid UTF-8. */
static inline uint32_t dt_utf8_decode(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    switch (dt_utf8_length(*text)) {
    case 1:
        return p[0];
    case 2:
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    case 3:
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    default:
        return (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    }
}

/* Decodes the character at text, of which size > 0 bytes may be read, into *code. Returns its
 * bytes; 0 if text does not begin with valid UTF-8. */
size_t dt_utf8_next(const char *text, size_t size, uint32_t *code);

/* Writes a code point up to U+10FFFF and returns its bytes. */
unsigned dt_utf8_encode(uint32_t code, char bytes[4]);

#endif
