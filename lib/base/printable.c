/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The bytes of a character with this first byte; 0 if it is not a first byte. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The number of bytes present of the character; 0 if they are not UTF-8. */
static size_t measure(const unsigned char *p, size_t size)
{
    size_t length = length_of(*p);
    if (length == 0)
        return 0;
    for (size_t i = 1; i < length; i++) {
        unsigned char low = 0x80, high = 0xbf;
        if (i == size)
            return i;
        if (i == 1) { /* no overlong forms, no surrogates, nothing above U+10FFFF */
            low = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
            high = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;
        }
        if (p[i] < low || p[i] > high)
            return 0;
    }
    return length;
}

/* For characters of two or three bytes. */
static bool is_command(uint32_t point)
{
    return point <= 0x9f || point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

size_t dt_printable_next(const char *text, size_t size, char spelling[DT_SPELLING])
{
    const unsigned char *p = (const unsigned char *)text;
    size_t length = length_of(*p);
    *spelling = '\0';
    if (*p < 0x20 || *p == 0x7f || length == 0 || measure(p, size) != length) {
        snprintf(spelling, DT_SPELLING, "\\x%02x", *p);
        return 1;
    }
    uint32_t point = length == 2   ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                     : length == 3 ? (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu)
                                   : 0;
    if (length != 1 && length != 4 && is_command(point))
        snprintf(spelling, DT_SPELLING, "\\u%04x", (unsigned)(point & 0xffff));
    return length;
}

size_t dt_printable_unfinished(const char *text, size_t size)
{
    for (size_t n = 1; n <= 3 && n <= size; n++) {
        const unsigned char *p = (const unsigned char *)text + size - n;
        if (length_of(*p) > 1)
            return measure(p, n) == n && length_of(*p) > n ? n : 0;
    }
    return 0;
}

void dt_printable_line(char *text, size_t capacity)
{
    char spelling[DT_SPELLING];
    size_t size = strlen(text), place = 0, n, room;
    for (; place < size; place += n) { /* most lines stay as they are */
        n = dt_printable_next(text + place, size - place, spelling);
        room = strlen(spelling);
        if (room == 0)
            continue;
        if (place + room >= capacity)
            break;
        size_t rest = size - place - n;
        rest = rest < capacity - 1 - place - room ? rest : capacity - 1 - place - room;
        memmove(text + place + room, text + place + n, rest);
        memcpy(text + place, spelling, room);
        size = place + room + rest;
        n = room;
    }
    text[place] = '\0';
}
