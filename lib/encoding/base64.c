/* SPDX-License-Identifier: MIT */
#include "encoding/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool dt_base64_decode(const char *text, size_t size, struct dt_buffer *bytes)
{
    dt_buffer_clear(bytes);
    if (size == 0 || size % 4 != 0)
        return false;
    size_t filled = size - (text[size - 1] == '=') - (text[size - 2] == '=');
    uint32_t bits = 0;
    for (size_t i = 0; i < filled; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 > 0)
            dt_buffer_add_char(bytes, (char)(bits >> (6 - 2 * (i % 4))));
    }
    return true;
}

void dt_base64_encode(const char *data, size_t size, struct dt_buffer *text)
{
    const unsigned char *from = (const unsigned char *)data;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                        (left > 2 ? from[i + 2] : 0);
        char quad[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};
        dt_buffer_append(text, quad, sizeof quad);
    }
}
