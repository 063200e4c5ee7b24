/* SPDX-License-Identifier: MIT */
/* Canonical decomposition and composition: Unicode, chapter 3.11 and 3.12. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "unicode/unicode.h"

/* Hangul syllables: a lead, a vowel and perhaps a trail, by arithmetic. */
#define SYLLABLES      0xac00u
#define LEADS          0x1100u
#define VOWELS         0x1161u
#define TRAILS         0x11a7u /* the one before the first */
#define LEAD_COUNT     19u
#define VOWEL_COUNT    21u
#define TRAIL_COUNT    28u
#define SYLLABLE_COUNT (LEAD_COUNT * VOWEL_COUNT * TRAIL_COUNT)

static unsigned decompose_hangul(uint32_t code, uint32_t parts[DT_UNICODE_LONGEST])
{
    uint32_t i = code - SYLLABLES, trail = i % TRAIL_COUNT;
    parts[0] = LEADS + i / (VOWEL_COUNT * TRAIL_COUNT);
    parts[1] = VOWELS + i / TRAIL_COUNT % VOWEL_COUNT;
    parts[2] = TRAILS + trail;
    return trail ? 3 : 2;
}

static int by_code(const void *key, const void *row)
{
    uint32_t a = *(const uint32_t *)key, b = ((const struct dt_unicode_decomposition *)row)->code;
    return (a > b) - (a < b);
}

unsigned dt_unicode_decompose(uint32_t code, uint32_t parts[DT_UNICODE_LONGEST])
{
    parts[0] = code;
    if (code - SYLLABLES < SYLLABLE_COUNT)
        return decompose_hangul(code, parts);
    if (!dt_unicode_record(code)->splits)
        return 1;
    const struct dt_unicode_decomposition *row =
        bsearch(&code, dt_unicode_decompositions, dt_unicode_decomposition_count,
                sizeof *dt_unicode_decompositions, by_code);
    unsigned count = dt_unicode_decompose(row->first, parts);
    if (row->second)
        parts[count++] = row->second; /* which is never decomposed further */
    return count;
}

static int by_pair(const void *key, const void *place)
{
    const struct dt_unicode_decomposition *a = key,
                                          *b = &dt_unicode_decompositions[*(const uint16_t *)place];
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->second > b->second) - (a->second < b->second);
}

uint32_t dt_unicode_compose(uint32_t first, uint32_t second)
{
    if (first - LEADS < LEAD_COUNT && second - VOWELS < VOWEL_COUNT)
        return SYLLABLES + ((first - LEADS) * VOWEL_COUNT + second - VOWELS) * TRAIL_COUNT;
    if (first - SYLLABLES < SYLLABLE_COUNT && (first - SYLLABLES) % TRAIL_COUNT == 0 &&
        second - TRAILS - 1 < TRAIL_COUNT - 1)
        return first + second - TRAILS;
    if (!dt_unicode_record(second)->joins)
        return 0;
    const struct dt_unicode_decomposition key = {.first = first, .second = second};
    const uint16_t *place = bsearch(&key, dt_unicode_compositions, dt_unicode_composition_count,
                                    sizeof *dt_unicode_compositions, by_pair);
    return place ? dt_unicode_decompositions[*place].code : 0;
}

static unsigned class_of(uint32_t code)
{
    return dt_unicode_record(code)->combining;
}

/* Sorts each run of marks by class; marks of one class keep their order. */
static void put_in_order(uint32_t *points, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t code = points[i];
        unsigned class = class_of(code);
        size_t to = i;
        for (; class > 0 && to > 0 && class_of(points[to - 1]) > class; to--)
            points[to] = points[to - 1];
        points[to] = code;
    }
}

/* Composes in place; returns how many are left. A mark joins the last starter before it
 * unless one between them has its class or none. */
static size_t compose(uint32_t *points, size_t count)
{
    size_t kept = 0, starter = SIZE_MAX;
    unsigned before = 0; /* class of the last that was kept after the starter */
    for (size_t i = 0; i < count; i++) {
        uint32_t code = points[i];
        unsigned class = class_of(code);
        bool next = kept > 0 && starter == kept - 1, free = next || (before < class && before > 0);
        uint32_t whole =
            starter != SIZE_MAX && free ? dt_unicode_compose(points[starter], code) : 0;
        if (whole) {
            points[starter] = whole;
            continue;
        }
        if (class == 0)
            starter = kept;
        before = class;
        points[kept++] = code;
    }
    return kept;
}

void dt_unicode_nfc(const uint32_t *points, size_t count, struct dt_ids *result)
{
    dt_ids_reserve(result, DT_UNICODE_LONGEST * count);
    result->count = 0;
    for (size_t i = 0; i < count; i++)
        result->count += dt_unicode_decompose(points[i], result->data + result->count);
    put_in_order(result->data, result->count);
    result->count = compose(result->data, result->count);
}

unsigned dt_unicode_encode(uint32_t code, char bytes[4])
{
    unsigned length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(marks[length] | code);
    return length;
}
