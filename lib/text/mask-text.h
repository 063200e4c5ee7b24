/* SPDX-License-Identifier: MIT */
/*
 * What the finders of personal data ask of a text: kinds of characters, and the gaps between
 * groups of digits.
 */
#ifndef DT_TEXT_MASK_TEXT_H
#define DT_TEXT_MASK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

static inline bool dt_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool dt_is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool dt_is_letter(char c)
{
    return dt_is_capital(c) || (c >= 'a' && c <= 'z');
}

static inline bool dt_is_name(char c)
{
    return dt_is_digit(c) || dt_is_letter(c);
}

/* Bytes of a gap at i: a space, hyphen or point, or a blank or dash of U+00A0, U+2007, U+2009,
 * U+2010 to U+2015, U+202F or U+2212; 0 if there is none. */
static inline size_t dt_gap(const char *text, size_t size, size_t i)
{
    if (i >= size || text[i] == ' ' || text[i] == '-' || text[i] == '.')
        return i < size;
    if (text[i] == '\xc2')
        return i + 1 < size && text[i + 1] == '\xa0' ? 2 : 0;
    if (text[i] != '\xe2' || i + 2 >= size)
        return 0;
    unsigned char a = (unsigned char)text[i + 1], b = (unsigned char)text[i + 2];
    bool general = a == 0x80 && (b == 0x87 || b == 0x89 || (b >= 0x90 && b <= 0x95) || b == 0xaf);
    return general || (a == 0x88 && b == 0x92) ? 3 : 0;
}

/* Whether a number may have these neighbours: no digit; and no letter, unless it is written in
 * groups, which no word and no hash value is. */
static inline bool dt_may_stand(const char *text, size_t size, size_t from, size_t to, bool grouped)
{
    char before = from > 0 ? text[from - 1] : ' ', after = to < size ? text[to] : ' ';
    return grouped ? !dt_is_digit(before) && !dt_is_digit(after)
                   : !dt_is_name(before) && !dt_is_name(after);
}

#endif
