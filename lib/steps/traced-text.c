/* SPDX-License-Identifier: MIT */
#include "steps/traced-text.h"

#include <stdlib.h>
#include <string.h>

void dt_traced_text_release(struct dt_traced_text *t)
{
    dt_buffer_release(&t->bytes);
    free(t->origins);
    *t = (struct dt_traced_text){.origins = NULL};
}

void dt_traced_text_clear(struct dt_traced_text *t)
{
    dt_buffer_clear(&t->bytes);
}

/* Makes room for the origins of size more bytes; returns the first. */
static struct dt_span *reserve_origins(struct dt_traced_text *t, size_t size)
{
    if (t->bytes.size + size > t->capacity) {
        t->capacity = 2 * (t->bytes.size + size) + 64;
        t->origins = dt_realloc(t->origins, t->capacity, sizeof *t->origins);
    }
    return t->origins + t->bytes.size;
}

void dt_traced_text_set(struct dt_traced_text *t, const char *text, size_t size, size_t offset)
{
    dt_traced_text_clear(t);
    if (t->keep_origins) {
        struct dt_span *origins = reserve_origins(t, size);
        for (size_t i = 0; i < size; i++)
            origins[i] = (struct dt_span){offset + i, offset + i + 1};
    }
    dt_buffer_append(&t->bytes, text, size);
}

void dt_traced_text_add(struct dt_traced_text *t, const char *bytes, size_t size,
                        struct dt_span origin)
{
    if (t->keep_origins) {
        struct dt_span *origins = reserve_origins(t, size);
        for (size_t i = 0; i < size; i++)
            origins[i] = origin;
    }
    dt_buffer_append(&t->bytes, bytes, size);
}

void dt_traced_text_copy(struct dt_traced_text *t, const struct dt_traced_text *from, size_t start,
                         size_t end)
{
    if (start == end)
        return;
    if (t->keep_origins)
        memcpy(reserve_origins(t, end - start), from->origins + start,
               (end - start) * sizeof *t->origins);
    dt_buffer_append(&t->bytes, from->bytes.data + start, end - start);
}

struct dt_span dt_traced_text_origin(const struct dt_traced_text *t, size_t start, size_t end)
{
    if (!t->keep_origins || t->bytes.size == 0)
        return (struct dt_span){0, 0};
    if (start < end)
        return (struct dt_span){t->origins[start].start, t->origins[end - 1].end};
    uint64_t at = start < t->bytes.size ? t->origins[start].start : t->origins[start - 1].end;
    return (struct dt_span){at, at};
}

struct dt_span dt_traced_text_origin_at(const struct dt_traced_text *t, size_t start)
{
    size_t end = start + 1;
    while (end < t->bytes.size && (t->bytes.data[end] & 0xc0) == 0x80)
        end++;
    return dt_traced_text_origin(t, start, end);
}
