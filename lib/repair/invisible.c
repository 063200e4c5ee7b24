/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <string.h>

#include "repair/control.h"

/* Bytes of the invisible character at p; 0 if another is there. */
static size_t invisible_length(const unsigned char *p, size_t size)
{
    if (size >= 2 && p[0] == 0xc2)
        return p[1] == 0xad ? 2 : 0; /* U+00AD */
    if (size >= 2 && p[0] == 0xd8)
        return p[1] == 0x9c ? 2 : 0; /* U+061C */
    if (size < 3 || p[0] != 0xe2 || (p[1] != 0x80 && p[1] != 0x81))
        return 0;
    unsigned c = p[2];
    if (p[1] == 0x80) /* U+200B, U+200E, U+200F, U+202A - U+202E */
        return c == 0x8b || c == 0x8e || c == 0x8f || (c >= 0xaa && c <= 0xae) ? 3 : 0;
    return c >= 0xa0 && c <= 0xaf ? 3 : 0; /* U+2060 - U+206F */
}

uint64_t dt_control_remove_invisible(char *text, size_t *size)
{
    uint64_t removed = 0;
    size_t kept = 0;
    for (size_t i = 0, n; i < *size; i += n) {
        n = (text[i] & 0x80) ? invisible_length((const unsigned char *)text + i, *size - i) : 0;
        removed += n > 0;
        if (n > 0)
            continue;
        text[kept++] = text[i];
        n = 1;
    }
    *size = kept;
    return removed;
}
