/* SPDX-License-Identifier: MIT */
/* UTF-16 as UTF-8, for io/input.h. */
#ifndef DT_IO_UTF16_H
#define DT_IO_UTF16_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that a character may need as UTF-8. */
#define DT_UTF16_MOST 4

/* Converts size bytes of UTF-16, big-endian or little-endian, into out, while it has room for
 * DT_UTF16_MOST more bytes. Stops before a character whose end is missing, unless ended. *taken:
 * bytes of in; returns the bytes written. A surrogate without its pair becomes the three bytes that
 * UTF-8 would have for its number, which are not UTF-8: as other wrong bytes of text they are for
 * dt-clean to repair or to reject. One last byte is never taken. */
size_t dt_utf16_decode(bool big, const unsigned char *in, size_t size, bool ended,
                       unsigned char *out, size_t capacity, size_t *taken);

#endif
