/* SPDX-License-Identifier: MIT */
#include "dedup/substrings.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/plugin.h"
#include "dedup/suffixes.h"

#define END '\xff' /* after each text: no byte of UTF-8 */

struct dt_substrings {
    size_t length;
    struct dt_buffer all; /* the texts, each with END after it */
    size_t *starts;       /* of the texts in all, and the end of the last */
    size_t count, capacity;
    unsigned char *repeated; /* a bit for each byte that begins a repeated sequence */
};

struct dt_substrings *dt_substrings_new(size_t length)
{
    struct dt_substrings *s = dt_alloc(1, sizeof *s);
    s->length = length;
    DT_GROW(s->starts, s->count, s->capacity);
    s->starts[0] = 0;
    return s;
}

void dt_substrings_free(struct dt_substrings *s)
{
    if (s == NULL)
        return;
    dt_buffer_release(&s->all);
    free(s->starts);
    free(s->repeated);
    free(s);
}

void dt_substrings_add(struct dt_substrings *s, const char *text, size_t size)
{
    dt_buffer_append(&s->all, text, size);
    dt_buffer_add_char(&s->all, END);
    s->count++;
    DT_GROW(s->starts, s->count, s->capacity);
    s->starts[s->count] = s->all.size;
}

static bool is_short(const struct dt_substrings *s)
{
    return s->all.size <= INT32_MAX;
}

uint64_t dt_substrings_bytes(const struct dt_substrings *s)
{
    return s->all.capacity + s->all.size / 8 + s->all.size * (is_short(s) ? 4 : 8);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* The suffix at index i of an array of either size. */
static size_t suffix_at(const struct dt_substrings *s, const void *suffixes, size_t i)
{
    return is_short(s) ? (size_t)((const int32_t *)suffixes)[i]
                       : (size_t)((const int64_t *)suffixes)[i];
}

/* Whether the sequences of s->length bytes at a and b are equal and end in their texts. */
static bool are_equal(const struct dt_substrings *s, size_t a, size_t b)
{
    size_t later = a > b ? a : b;
    return s->all.size - later > s->length &&
           memcmp(s->all.data + a, s->all.data + b, s->length) == 0 &&
           memchr(s->all.data + a, END, s->length) == NULL;
}

static void mark(struct dt_substrings *s, size_t at)
{
    s->repeated[at / 8] |= (unsigned char)(1 << at % 8);
}

/* Suffixes that begin with the same sequence follow each other: all but the first in the text are
 * repeated. */
static void mark_repeated(struct dt_substrings *s, const void *suffixes)
{
    for (size_t i = 0, end; i < s->all.size; i = end) {
        size_t first = suffix_at(s, suffixes, i);
        for (end = i + 1; end < s->all.size; end++) {
            size_t next = suffix_at(s, suffixes, end);
            if (!are_equal(s, first, next))
                break;
            mark(s, next > first ? next : first);
            first = next < first ? next : first;
        }
    }
}

int dt_substrings_find(struct dt_substrings *s, struct dt_error *err)
{
    DT_PLUGIN(kind, suffixes, "plug-in", DT_SUFFIXES_ABI,
              ": built without libdivsufsort (make deps-data, or install libdivsufsort-dev; then "
              "make)");
    const struct dt_suffixes *sorter;
    DT_TRY(dt_plugin_load(&kind, "suffixes", (const void **)&sorter, err));
    const unsigned char *text = (const unsigned char *)s->all.data;
    s->repeated = dt_alloc(s->all.size / 8 + 1, 1);
    if (s->all.size == 0)
        return 0;
    void *suffixes = dt_alloc(s->all.size + 1, is_short(s) ? sizeof(int32_t) : sizeof(int64_t));
    int rc = is_short(s) ? sorter->sort(text, suffixes, (int32_t)s->all.size)
                         : sorter->sort_long(text, suffixes, (int64_t)s->all.size);
    if (rc < 0)
        dt_out_of_memory();
    mark_repeated(s, suffixes);
    free(suffixes);
    return 0;
}

/* --- spans ------------------------------------------------------------------------------------ */

static bool is_repeated(const struct dt_substrings *s, size_t at)
{
    return s->repeated[at / 8] >> at % 8 & 1;
}

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

bool dt_substrings_next(const struct dt_substrings *s, size_t text, size_t *at,
                        struct dt_substrings_span *span)
{
    size_t start = s->starts[text], end = s->starts[text + 1] - 1, from = start + *at;
    for (;;) {
        while (from < end && !is_repeated(s, from))
            from++;
        if (from == end)
            return false;
        size_t to = from + s->length;
        for (size_t i = from + 1; i < to && i < end; i++)
            if (is_repeated(s, i))
                to = i + s->length;
        *at = to - start;
        while (from < to && is_inside(s->all.data[from]))
            from++;
        while (to > from && is_inside(s->all.data[to]))
            to--;
        *span = (struct dt_substrings_span){from - start, to - start};
        if (to > from)
            return true;
        from = start + *at;
    }
}

const char *dt_substrings_text(const struct dt_substrings *s, size_t text, size_t *size)
{
    *size = s->starts[text + 1] - 1 - s->starts[text];
    return s->all.data + s->starts[text];
}
