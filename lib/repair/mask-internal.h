/* SPDX-License-Identifier: MIT */
/*
 * Helpers of the finders of personal data: character classes and gaps between groups of digits.
 */
#ifndef DT_REPAIR_MASK_INTERNAL_H
#define DT_REPAIR_MASK_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool dt_mask_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool dt_mask_is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool dt_mask_is_letter(char c)
{
    return dt_mask_is_capital(c) || (c >= 'a' && c <= 'z');
}

static inline bool dt_mask_is_name(char c)
{
    return dt_mask_is_digit(c) || dt_mask_is_letter(c);
}

/* Bytes of an invisible character at i: U+00AD, U+061C, U+200B to U+200F, U+202A to U+202E or
 * U+2060 to U+206F; 0 if there is none. */
static inline size_t dt_mask_invisible(const char *text, size_t size, size_t i)
{
    unsigned char c[3] = {0};
    for (size_t k = 0; k < 3 && i + k < size; k++)
        c[k] = (unsigned char)text[i + k];
    if ((c[0] == 0xc2 && c[1] == 0xad) || (c[0] == 0xd8 && c[1] == 0x9c))
        return 2;
    if (c[0] != 0xe2)
        return 0;
    bool low = c[1] == 0x80 && ((c[2] >= 0x8b && c[2] <= 0x8f) || (c[2] >= 0xaa && c[2] <= 0xae));
    return low || (c[1] == 0x81 && c[2] >= 0xa0 && c[2] <= 0xaf) ? 3 : 0;
}

/* Bytes of a gap at i: a space, tab, hyphen or point; another blank of category Zs; a dash of
 * U+2010 to U+2015 or U+2212; or an invisible character. 0 if there is none. */
static inline size_t dt_mask_gap(const char *text, size_t size, size_t i)
{
    static const char wide[][4] = {"\xe1\x9a\x80", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe2\x88\x92",
                                   "\xe3\x80\x80"};
    if (i >= size)
        return 0;
    if (text[i] == ' ' || text[i] == '\t' || text[i] == '-' || text[i] == '.')
        return 1;
    if ((unsigned char)text[i] < 0x80)
        return 0;
    if (size - i >= 2 && memcmp(text + i, "\xc2\xa0", 2) == 0)
        return 2;
    for (size_t k = 0; k < sizeof wide / sizeof *wide; k++)
        if (size - i >= 3 && memcmp(text + i, wide[k], 3) == 0)
            return 3;
    bool general = size - i >= 3 && memcmp(text + i, "\xe2\x80", 2) == 0;
    unsigned char last = general ? (unsigned char)text[i + 2] : 0xff;
    return last <= 0x8a || (last >= 0x90 && last <= 0x95) ? 3 : dt_mask_invisible(text, size, i);
}

#define DT_MOST_GAPS 3 /* characters between two groups: " - " */

/* Bytes of up to DT_MOST_GAPS gaps at i. */
static inline size_t dt_mask_gaps(const char *text, size_t size, size_t i)
{
    size_t start = i, gap;
    for (int n = 0; n < DT_MOST_GAPS && (gap = dt_mask_gap(text, size, i)) > 0; n++)
        i += gap;
    return i - start;
}

/* Whether the neighbours of a number allow it: not a digit, and not a letter unless the number
 * is grouped, which words and hash values are not. */
static inline bool dt_mask_may_stand(const char *text, size_t size, size_t from, size_t to,
                                     bool grouped)
{
    char before = from > 0 ? text[from - 1] : ' ', after = to < size ? text[to] : ' ';
    return grouped ? !dt_mask_is_digit(before) && !dt_mask_is_digit(after)
                   : !dt_mask_is_name(before) && !dt_mask_is_name(after);
}

/* The end of a telephone number in the format of its country at i, a digit or '('; or i. */
size_t dt_mask_national_end(const char *text, size_t size, size_t i);

#endif
