/* SPDX-License-Identifier: MIT */
/* A small character map of SentencePiece. */
#ifndef DT_TESTS_CHARACTER_MAP_OF_H
#define DT_TESTS_CHARACTER_MAP_OF_H

#include "test.h"

#include <string.h>

/* A map of three rules, "A" -> "a", "B" -> "", "AB" -> U+00E9, whose trie is laid out by hand:
 * the children of the root are at 0x100 ^ label, those of "A" at 0x200 ^ label, and so on. */
#define UNITS 0x300

static inline void put_unit(char *bytes, uint32_t unit, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[4 + 4 * unit + (unsigned)i] = (char)(value >> 8 * i);
}

#define OFFSET(from, to) (((from) ^ (to)) << 10)
#define HAS_VALUE        (1u << 8)
#define VALUE            (1u << 31)

static const char texts[] = " \0a\0\0\xc3\xa9"; /* at 0, 2, 4 and 5 */
#define MAP_BYTES (4 + 4 * UNITS + sizeof texts)

static inline size_t make_map(char bytes[MAP_BYTES])
{
    for (uint32_t unit = 0; unit < UNITS; unit++)
        put_unit(bytes, unit, VALUE);       /* no byte leads there */
    put_unit(bytes, UINT32_MAX, 4 * UNITS); /* the size, before unit 0 */
    put_unit(bytes, 0, OFFSET(0, 0x100));
    put_unit(bytes, 0x100 ^ 'A', OFFSET(0x100 ^ 'A', 0x200) | HAS_VALUE | 'A');
    put_unit(bytes, 0x200, VALUE | 2);
    put_unit(bytes, 0x200 ^ 'B', OFFSET(0x200 ^ 'B', 0x280) | HAS_VALUE | 'B');
    put_unit(bytes, 0x280, VALUE | 5);
    put_unit(bytes, 0x100 ^ 'B', OFFSET(0x100 ^ 'B', 0x2c0) | HAS_VALUE | 'B');
    put_unit(bytes, 0x2c0, VALUE | 4);
    memcpy(bytes + 4 + 4 * UNITS, texts, sizeof texts);
    return MAP_BYTES;
}

/* Adds a rule for an ASCII character; its text is at this offset. */
static inline void put_rule(char *bytes, char c, uint32_t text)
{
    const uint32_t label = (unsigned char)c;
    put_unit(bytes, 0x100 ^ label, OFFSET(0x100 ^ label, 0x240) | HAS_VALUE | label);
    put_unit(bytes, 0x240, VALUE | text);
}

#endif
