/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <utf8proc.h>

#include "clean/normalize.h"
#include "unicode/utf8.h"

#define LONGEST_FOLD 4 /* code points of one folded character, and one to spare */

/* Appends the folded character at p. True if it changed. */
static bool fold(const char *p, struct dt_buffer *out)
{
    utf8proc_int32_t points[LONGEST_FOLD];
    utf8proc_uint8_t bytes[4 * LONGEST_FOLD];
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t count = utf8proc_decompose_char((utf8proc_int32_t)dt_utf8_decode(p), points,
                                                     LONGEST_FOLD, UTF8PROC_CASEFOLD, &boundary);
    size_t size = 0, length = dt_utf8_length(*p);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        size += (size_t)utf8proc_encode_char(points[i], bytes + size);
    dt_buffer_append(out, bytes, size);
    return size != length || memcmp(bytes, p, size) != 0;
}

uint64_t dt_normalize_casefold(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t changed = 0;
    for (size_t i = 0; i < size;) {
        size_t plain = dt_utf8_ascii_prefix(text + i, size - i);
        dt_buffer_append(out, text + i, plain);
        for (char *p = out->data + out->size - plain; plain > 0; plain--, p++, i++) {
            if (*p < 'A' || *p > 'Z')
                continue;
            *p = (char)(*p | 0x20);
            changed++;
        }
        if (i == size)
            break;
        changed += fold(text + i, out);
        i += dt_utf8_length(text[i]);
    }
    return changed;
}
