/* SPDX-License-Identifier: MIT */
/*
 * Text without the bytes that UTF-8 never has, 0xC0, 0xC1 and 0xF5 to 0xFF, which some vocabularies
 * lack: GPT-NeoX's. U+FFFD stands in their place. Private to lib/token.
 *
 *     struct dt_replaced_bytes r = {.count = 0};
 *     if (dt_replaced_bytes_find(text, size) < size) {
 *         dt_replaced_bytes_make(&r, text, size);
 *         ... r.text, and dt_replaced_bytes_origin(&r, offset) of it
 *     }
 *     dt_replaced_bytes_release(&r);
 */
#ifndef DT_TOKEN_REPLACED_BYTES_H
#define DT_TOKEN_REPLACED_BYTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* All-zero is valid: empty. */
struct dt_replaced_bytes {
    struct dt_buffer text;
    size_t *places; /* [count]: offsets of replaced bytes in the original, ascending */
    size_t count, capacity;
};

static inline bool dt_replaced_bytes_is(int byte)
{
    return byte >= 0xf5 || (byte & 0xfe) == 0xc0;
}

/* The offset of the first such byte; size if there is none. */
size_t dt_replaced_bytes_find(const char *text, size_t size);
void dt_replaced_bytes_make(struct dt_replaced_bytes *r, const char *text, size_t size);
/* The offset in the original of an offset of r->text; is_end: of the end of a range. */
size_t dt_replaced_bytes_origin(const struct dt_replaced_bytes *r, size_t offset, bool is_end);
void dt_replaced_bytes_release(struct dt_replaced_bytes *r);

#endif
