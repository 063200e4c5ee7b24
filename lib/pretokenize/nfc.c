/* SPDX-License-Identifier: MIT */
#include "pretokenize/nfc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "pretokenize/character.h"
#include "unicode/normalize.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

#define MAX_CHARACTERS  1024  /* normalized per call */
#define FIRST_CANDIDATE 0x300 /* all characters below pass the quick check */

/* Bit per code point: the NFC quick check (UAX #15) answers No or Maybe, so it or the
 * character before it may change. */
static uint8_t candidates[0x110000 / 8];

/* Marks newer than the Unicode tables of published tokenizers, which do not reorder them.
 * Generated from normalizers.NFC of `tokenizers` 0.23.3. */
static const struct {
    uint32_t first, last;
} newer_marks[] = {{0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},
                   {0xc3c, 0xc3c},     {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},
                   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},   {0xa82c, 0xa82c},   {0x10d24, 0x10d27},
                   {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85},
                   {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
                   {0x11930, 0x11930}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0},
                   {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42},
                   {0x11d44, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1},
                   {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef},
                   {0x1e4ec, 0x1e4ef}};

bool dt_nfc_is_newer(uint32_t code)
{
    for (size_t i = 0; i < sizeof newer_marks / sizeof *newer_marks; i++)
        if (code >= newer_marks[i].first && code <= newer_marks[i].last)
            return true;
    return false;
}

/* Whether normalization changes a single code point. */
static bool changes(uint32_t code, struct dt_ids *scratch)
{
    dt_unicode_nfc(&code, 1, scratch);
    return scratch->count != 1 || scratch->data[0] != code;
}

static void fill_candidates(void)
{
    struct dt_ids scratch = DT_IDS_EMPTY;
    for (uint32_t code = FIRST_CANDIDATE; code < 0x110000; code++) {
        const struct dt_unicode_record *r = dt_unicode_record(code);
        bool hangul = (code >= 0x1161 && code <= 0x1175) || (code >= 0x11a8 && code <= 0x11c2);
        bool candidate =
            hangul || r->joins || r->combining != 0 || (r->splits && changes(code, &scratch));
        if (candidate && !dt_nfc_is_newer(code))
            candidates[code >> 3] |= (uint8_t)(1 << (code & 7));
    }
    dt_ids_release(&scratch);
}

static void init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_candidates);
}

static bool is_candidate(uint32_t code)
{
    return code != DT_CHAR_INVALID && candidates[code >> 3] >> (code & 7) & 1;
}

/* The first candidate at or after p, or end; *before is the character before it. */
static const unsigned char *next_candidate(const unsigned char *p, const unsigned char *end,
                                           const unsigned char **before)
{
    uint32_t code;
    *before = p;
    while (p < end) {
        if (*p < 0xcc) { /* below U+0300 */
            *before = p;
            p += *p < 0x80 || end - p < 2 ? 1 : 2;
            continue;
        }
        unsigned length = dt_character(p, end, &code);
        if (is_candidate(code))
            return p;
        *before = p;
        p += length;
    }
    return end;
}

bool dt_nfc_is_plain(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text, *before;
    init();
    return next_candidate(p, p + size, &before) == p + size;
}

struct scratch {
    struct dt_ids points, normal;
};

/* Appends the normal form of p .. end, or the bytes unchanged if they are not valid UTF-8. */
static void add_normal(const unsigned char *p, const unsigned char *end, struct scratch *s,
                       struct dt_buffer *result)
{
    uint32_t code;
    char bytes[4];
    s->points.count = 0;
    for (const unsigned char *q = p; q < end; dt_ids_add(&s->points, code)) {
        q += dt_character(q, end, &code);
        if (code == DT_CHAR_INVALID) {
            dt_buffer_append(result, p, (size_t)(end - p));
            return;
        }
    }
    dt_unicode_nfc(s->points.data, s->points.count, &s->normal);
    for (size_t i = 0; i < s->normal.count; i++)
        dt_buffer_append(result, bytes, dt_utf8_encode(s->normal.data[i], bytes));
}

/* Records the change, trimmed by the common prefix of whole characters. */
static void record_change(struct dt_nfc_changes *changes, struct dt_nfc_change c, const char *text,
                          const char *result)
{
    size_t same = 0;
    while (c.from + same < c.to && c.new_from + same < c.new_to &&
           text[c.from + same] == result[c.new_from + same])
        same++;
    if (changes == NULL || (c.from + same == c.to && c.new_from + same == c.new_to))
        return;
    while (same > 0 &&
           ((c.from + same < c.to && (text[c.from + same] & 0xc0) == 0x80) ||
            (c.new_from + same < c.new_to && (result[c.new_from + same] & 0xc0) == 0x80)))
        same--;
    c.from += same;
    c.new_from += same;
    DT_GROW(changes->items, changes->count, changes->capacity);
    changes->items[changes->count++] = c;
}

void dt_nfc(const char *text, size_t size, struct dt_buffer *result, struct dt_nfc_changes *changes)
{
    const unsigned char *start = (const unsigned char *)text, *p = start, *end = p + size;
    struct scratch scratch = {0};
    init();
    dt_buffer_clear(result);
    if (changes)
        changes->count = 0;
    while (p < end) {
        uint32_t code;
        const unsigned char *from, *to = next_candidate(p, end, &from);
        dt_character(from, end, &code);
        if (to == end || dt_nfc_is_newer(code))
            from = to;
        dt_buffer_append(result, p, (size_t)(from - p));
        unsigned length;
        for (int n = 0; to < end && n < MAX_CHARACTERS; n++, to += length) {
            length = dt_character(to, end, &code);
            if (!is_candidate(code))
                break;
        }
        struct dt_nfc_change change = {(size_t)(from - start), (size_t)(to - start), result->size,
                                       0};
        if (from < to)
            add_normal(from, to, &scratch, result);
        change.new_to = result->size;
        record_change(changes, change, text, result->data);
        p = to;
    }
    dt_ids_release(&scratch.points);
    dt_ids_release(&scratch.normal);
}

size_t dt_nfc_origin(const struct dt_nfc_changes *changes, size_t position, bool end, size_t *next)
{
    while (*next < changes->count && changes->items[*next].new_to <= position)
        ++*next;
    const struct dt_nfc_change *c = changes->items ? &changes->items[*next] : NULL;
    if (*next < changes->count && position > c->new_from)
        return end ? c->to : c->from;
    if (*next < changes->count && position == c->new_from)
        return c->from;
    return *next > 0 ? position - c[-1].new_to + c[-1].to : position;
}

void dt_nfc_changes_release(struct dt_nfc_changes *changes)
{
    free(changes->items);
    *changes = (struct dt_nfc_changes){NULL, 0, 0};
}
