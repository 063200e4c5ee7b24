/* SPDX-License-Identifier: MIT */
#include "clean/paragraphs.h"

#include <string.h>

#include "repair/whitespace.h"

/* Bytes of the white space at the start of text, which is not empty; 0 if another character is
 * there. */
static size_t white(const char *text, size_t size)
{
    return *text == '\r' || *text == '\n' ? 1 : dt_whitespace_blank(text, size);
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

/* The hash of a part without the blanks around it; false if nothing is left. */
static bool hash_part(const char *part, size_t size, struct dt_hash128 *hash)
{
    for (size_t n = 1; n <= 3 && n <= size; n++)
        if (white(part + size - n, n) == n)
            size -= n, n = 0;
    for (size_t n; size > 0 && (n = white(part, size)) > 0; size -= n)
        part += n;
    *hash = dt_hash128(part, size);
    return size > 0;
}

uint64_t dt_paragraphs_remove_seen(struct dt_duplicates *seen, const struct dt_bloom *before,
                                   bool paragraphs, char *text, size_t *size)
{
    uint64_t removed = 0;
    size_t kept = 0;
    for (size_t i = 0, n; i < *size; i += n) {
        struct dt_hash128 hash;
        n = part_size(paragraphs, text + i, *size - i);
        bool filled = hash_part(text + i, n, &hash);
        if (filled && ((before && dt_bloom_has(before, hash)) || !dt_duplicates_add(seen, hash))) {
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

uint64_t dt_paragraphs_add(struct dt_bloom *bloom, enum dt_bloom_unit unit, const char *text,
                           size_t size)
{
    bool paragraphs = unit == DT_BLOOM_PARAGRAPHS;
    uint64_t added = 0;
    for (size_t i = 0, n; i < size; i += n) {
        struct dt_hash128 hash;
        n = part_size(paragraphs, text + i, size - i);
        if (hash_part(text + i, n, &hash))
            added += dt_bloom_add(bloom, hash);
    }
    return added;
}
