/* SPDX-License-Identifier: MIT */
/* Decomposition, composition and case folding of code points: Unicode, chapter 3.11 to 3.13. */
#include "unicode/unicode.h"

#include <stdlib.h>
#include <string.h>

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

static int by_sequence_code(const void *key, const void *row)
{
    uint32_t a = *(const uint32_t *)key, b = ((const struct dt_unicode_sequence *)row)->code;
    return (a > b) - (a < b);
}

static unsigned copy_sequence(uint32_t code, const struct dt_unicode_sequence *rows, size_t count,
                              uint32_t *parts)
{
    const struct dt_unicode_sequence *row =
        bsearch(&code, rows, count, sizeof *rows, by_sequence_code);
    memcpy(parts, dt_unicode_sequence_points + row->offset, row->length * sizeof *parts);
    return row->length;
}

unsigned dt_unicode_expand(uint32_t code, uint32_t parts[DT_UNICODE_EXPAND_MAX])
{
    if (!dt_unicode_record(code)->expands)
        return dt_unicode_decompose(code, parts);
    return copy_sequence(code, dt_unicode_expansions, dt_unicode_expansion_count, parts);
}

unsigned dt_unicode_fold(uint32_t code, uint32_t parts[DT_UNICODE_FOLD_MAX])
{
    const struct dt_unicode_record *r = dt_unicode_record(code);
    if (r->long_fold)
        return copy_sequence(code, dt_unicode_folds, dt_unicode_fold_count, parts);
    parts[0] = code + (uint32_t)r->fold;
    return 1;
}

/* The sequence of the code, or else its simple mapping to title case. */
static unsigned full_case(uint32_t code, const struct dt_unicode_sequence *rows, size_t count,
                          uint32_t *parts)
{
    if (bsearch(&code, rows, count, sizeof *rows, by_sequence_code))
        return copy_sequence(code, rows, count, parts);
    parts[0] = dt_unicode_title(code);
    return 1;
}

unsigned dt_unicode_full_upper(uint32_t code, uint32_t parts[DT_UNICODE_CASE_MAX])
{
    return full_case(code, dt_unicode_uppers, dt_unicode_upper_count, parts);
}

unsigned dt_unicode_full_title(uint32_t code, uint32_t parts[DT_UNICODE_CASE_MAX])
{
    return full_case(code, dt_unicode_titles, dt_unicode_title_count, parts);
}

static int by_pair(const void *key, const void *index)
{
    const struct dt_unicode_decomposition *a = key,
                                          *b = &dt_unicode_decompositions[*(const uint16_t *)index];
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
    const uint16_t *index = bsearch(&key, dt_unicode_compositions, dt_unicode_composition_count,
                                    sizeof *dt_unicode_compositions, by_pair);
    return index ? dt_unicode_decompositions[*index].code : 0;
}

/* Ideographs, which the table does not have: between U+3299 and U+A66F. */
#define IDEOGRAPHS     0x3400u
#define IDEOGRAPHS_END 0xa000u

enum dt_unicode_break dt_unicode_break_of(uint32_t code)
{
    if (code >= IDEOGRAPHS && code < IDEOGRAPHS_END)
        return DT_UNICODE_BREAK_OTHER;
    if (code >= 0xac00 && code <= 0xd7a3)
        return (code - 0xac00) % 28 == 0 ? DT_UNICODE_BREAK_LV : DT_UNICODE_BREAK_LVT;
    unsigned low = 0, high = dt_unicode_break_count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (dt_unicode_breaks[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < dt_unicode_break_count && dt_unicode_breaks[low].first <= code)
        return (enum dt_unicode_break)dt_unicode_breaks[low].class;
    return DT_UNICODE_BREAK_OTHER;
}
