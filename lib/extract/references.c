/* SPDX-License-Identifier: MIT */
#include "extract/references.h"

#include <string.h>

#include "extract/references-internal.h"

#define LONGEST_NAME 31
#define LONGEST_BARE 6
#define REPLACEMENT  0xfffd

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_alphanumeric(char c)
{
    return is_digit(c) || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* --- by number -------------------------------------------------------------------------------- */

static unsigned digit_of(char c)
{
    return is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a') + 10;
}

/* Numbers of C1 controls mean windows-1252. */
static uint32_t character_of(uint32_t number)
{
    static const uint16_t windows[32] = {
        0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
        0x2039, 0x152,  0x8d,   0x17d,  0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    if (number >= 0x80 && number < 0xa0)
        number = windows[number - 0x80];
    else if (number == 0 || (number >= 0xd800 && number < 0xe000) || number > 0x10ffff)
        return REPLACEMENT;
    bool space = number == '\t' || number == '\n' || number == '\f' || number == '\r';
    bool control = (number < 0x20 && !space) || (number >= 0x7f && number < 0xa0);
    bool none = (number >= 0xfdd0 && number < 0xfdf0) || (number & 0xfffe) == 0xfffe;
    return control || none ? 0 : number;
}

static size_t read_number(const char *text, size_t size, uint32_t codes[2])
{
    size_t at = 2;
    bool hexadecimal = at < size && (text[at] | 32) == 'x';
    at += hexadecimal;
    size_t first = at;
    uint32_t number = 0;
    for (; at < size && is_alphanumeric(text[at]); at++) {
        unsigned digit = digit_of(text[at]), base = hexadecimal ? 16 : 10;
        if (digit >= base)
            break;
        number = number > 0x10ffff ? number : number * base + digit;
    }
    if (at == first)
        return 0;
    codes[0] = character_of(number);
    return at + (at < size && text[at] == ';');
}

/* --- by name ---------------------------------------------------------------------------------- */

static const struct dt_reference_name *find(const char *name, size_t size)
{
    size_t low = 0, high = dt_references_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const char *other = dt_references_names[middle].name;
        int order = strncmp(name, other, size);
        if (order == 0 && other[size] == '\0')
            return &dt_references_names[middle];
        if (order <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static size_t take(const struct dt_reference_name *found, size_t size, uint32_t codes[2])
{
    codes[0] = found->first;
    codes[1] = found->second;
    return size;
}

static size_t read_name(const char *text, size_t size, bool in_attribute, uint32_t codes[2])
{
    const struct dt_reference_name *found;
    size_t n = 0;
    while (1 + n < size && n <= LONGEST_NAME && is_alphanumeric(text[1 + n]))
        n++;
    if (1 + n < size && text[1 + n] == ';' && (found = find(text + 1, n)) != NULL)
        return take(found, n + 2, codes);
    for (n = n < LONGEST_BARE ? n : LONGEST_BARE; n > 0; n--) {
        if ((found = find(text + 1, n)) == NULL || !found->bare)
            continue;
        char next = '\0';
        if (1 + n < size)
            next = text[1 + n];
        return in_attribute && (next == '=' || is_alphanumeric(next)) ? 0
                                                                      : take(found, n + 1, codes);
    }
    return 0;
}

size_t dt_references_read(const char *text, size_t size, bool in_attribute, uint32_t codes[2])
{
    codes[0] = codes[1] = 0;
    if (size < 2)
        return 0;
    return text[1] == '#' ? read_number(text, size, codes)
                          : read_name(text, size, in_attribute, codes);
}
