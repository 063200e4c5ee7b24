/* SPDX-License-Identifier: MIT */
#include "token/id-lines.h"

#include <string.h>

#define DIGITS 10 /* of the largest id */

void dt_ids_to_line(const uint32_t *ids, size_t count, struct dt_buffer *line)
{
    dt_buffer_reserve(line, line->size + count * (DIGITS + 1) + 1);
    char *to = line->data + line->size;
    for (size_t i = 0; i < count; i++) {
        char digits[DIGITS], *from = digits + DIGITS;
        uint32_t id = ids[i];
        do
            *--from = (char)('0' + id % 10);
        while ((id /= 10) > 0);
        size_t size = (size_t)(digits + DIGITS - from);
        memcpy(to, from, size);
        to += size;
        *to++ = i + 1 < count ? ' ' : '\n';
    }
    if (count == 0)
        *to++ = '\n';
    line->size = (size_t)(to - line->data);
    *to = '\0';
}

void dt_ids_to_span_line(const uint32_t *ids, const struct dt_span *spans, size_t count,
                         struct dt_buffer *line)
{
    for (size_t i = 0; i < count; i++)
        dt_buffer_printf(line, "%s%u:%llu:%llu", i ? " " : "", ids[i],
                         (unsigned long long)spans[i].start, (unsigned long long)spans[i].end);
    dt_buffer_add_char(line, '\n');
}

int dt_ids_from_line(const char *line, size_t size, const char *location, struct dt_ids *ids,
                     struct dt_error *err)
{
    const char *p = line, *end = line + size;
    ids->count = 0;
    while (p < end) {
        uint64_t id = 0;
        const char *start = p;
        for (; p < end && *p >= '0' && *p <= '9' && id <= UINT32_MAX; p++)
            id = 10 * id + (uint64_t)(*p - '0');
        bool separated = p == end || *p == ' ' || *p == '\t' || *p == '\r';
        if (!separated || id > UINT32_MAX)
            return dt_fail(err, DT_EFORMAT,
                           "%s: column %td: expected a token id, a number from 0 to 4294967295",
                           location, start - line + 1);
        if (p > start)
            dt_ids_add(ids, (uint32_t)id);
        p += p < end;
    }
    return 0;
}
