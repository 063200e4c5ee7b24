/* SPDX-License-Identifier: MIT */
#include "clean/paragraphs.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Bytes of the first part of text, its end included. */
static size_t part_size(bool paragraphs, const char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        const char *feed = memchr(text + i, '\n', size - i);
        if (feed == NULL)
            return size;
        i = (size_t)(feed - text) + 1;
        size_t run = i;
        while (paragraphs && run < size && text[run] == '\n')
            run++;
        if (!paragraphs || run > i)
            return run;
    }
    return size;
}

static bool is_new(struct dt_duplicates *seen, const char *part, size_t size)
{
    while (size > 0 && is_blank(part[size - 1]))
        size--;
    while (size > 0 && is_blank(*part))
        part++, size--;
    return size == 0 || dt_duplicates_add(seen, dt_hash128(part, size));
}

uint64_t dt_paragraphs_remove_seen(struct dt_duplicates *seen, bool paragraphs, char *text,
                                   size_t *size)
{
    uint64_t removed = 0;
    size_t kept = 0;
    for (size_t i = 0, n; i < *size; i += n) {
        n = part_size(paragraphs, text + i, *size - i);
        if (!is_new(seen, text + i, n)) {
            removed++;
            continue;
        }
        if (kept < i)
            memmove(text + kept, text + i, n);
        kept += n;
    }
    *size = kept;
    return removed;
}
