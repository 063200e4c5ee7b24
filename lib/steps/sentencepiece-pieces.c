/* SPDX-License-Identifier: MIT */
#include "steps/sentencepiece-pieces.h"

#include <string.h>

static int hex_digit(char c)
{
    const char *digits = "0123456789ABCDEF", *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

int dt_sentencepiece_byte(const char *text, size_t size)
{
    if (size != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    int high = hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}
