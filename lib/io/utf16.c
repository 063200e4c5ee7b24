/* SPDX-License-Identifier: MIT */
#include "io/utf16.h"

#include <stdint.h>

static uint32_t unit(bool big, const unsigned char *p)
{
    return big ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static size_t put(unsigned char *out, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)(lead[n] | c);
    return n;
}

size_t dt_utf16_decode(bool big, const unsigned char *in, size_t size, bool ended,
                       unsigned char *out, size_t capacity, size_t *taken)
{
    size_t at = 0, written = 0;
    while (at + 2 <= size && written + DT_UTF16_MOST <= capacity) {
        uint32_t c = unit(big, in + at);
        bool high = c >= 0xd800 && c < 0xdc00;
        if (high && at + 4 > size && !ended)
            break;
        uint32_t low = high && at + 4 <= size ? unit(big, in + at + 2) : 0;
        bool pair = low >= 0xdc00 && low < 0xe000;
        written += put(out + written, pair ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : c);
        at += pair ? 4 : 2;
    }
    *taken = at;
    return written;
}
