/* SPDX-License-Identifier: MIT */
#include "token/replaced-bytes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
#define GROWTH 2                                  /* bytes that a replaced byte adds */

size_t dt_replaced_bytes_find(const char *text, size_t size)
{
    size_t at = 0;
    for (uint64_t eight; at < size; at++) {
        while (size - at >= 8 && (memcpy(&eight, text + at, 8), !(eight & 0x8080808080808080u)))
            at += 8;
        if (at < size && dt_replaced_bytes_is((unsigned char)text[at]))
            return at;
    }
    return size;
}

void dt_replaced_bytes_make(struct dt_replaced_bytes *r, const char *text, size_t size)
{
    dt_buffer_clear(&r->text);
    r->count = 0;
    for (size_t from = 0, at; from < size; from = at + 1) {
        at = from + dt_replaced_bytes_find(text + from, size - from);
        dt_buffer_append(&r->text, text + from, at - from);
        if (at == size)
            return;
        dt_buffer_append(&r->text, replacement, sizeof replacement - 1);
        DT_GROW(r->places, r->count, r->capacity);
        r->places[r->count++] = at;
    }
}

size_t dt_replaced_bytes_origin(const struct dt_replaced_bytes *r, size_t offset, bool is_end)
{
    size_t low = 0, high = r->count; /* the replacements that start before offset */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->places[middle] + GROWTH * middle < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && offset <= r->places[low - 1] + GROWTH * low) /* inside the last of them */
        return r->places[low - 1] + is_end;
    return offset - GROWTH * low;
}

void dt_replaced_bytes_release(struct dt_replaced_bytes *r)
{
    dt_buffer_release(&r->text);
    free(r->places);
    *r = (struct dt_replaced_bytes){.count = 0};
}
