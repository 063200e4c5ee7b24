/* SPDX-License-Identifier: MIT */
#include "pretokenize/byte-level.h"

#include "pretokenize/character.h"

static bool is_printable(unsigned c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c != 0xad);
}

/* The number of bytes below byte that map to U+0100 and up. */
static unsigned remapped_below(unsigned byte)
{
    unsigned n = 0;
    for (unsigned c = 0; c < byte; c++)
        n += !is_printable(c);
    return n;
}

uint32_t dt_byte_level_char(unsigned char byte)
{
    return is_printable(byte) ? byte : 0x100 + remapped_below(byte);
}

void dt_byte_level_order(unsigned char order[256])
{
    unsigned n = 0;
    for (unsigned c = 0; c < 256; c++)
        if (is_printable(c))
            order[n++] = (unsigned char)c;
    for (unsigned c = 0; c < 256; c++)
        if (!is_printable(c))
            order[n++] = (unsigned char)c;
}

void dt_byte_level_encode(const char *bytes, size_t size, struct dt_buffer *text)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t c = dt_byte_level_char((unsigned char)bytes[i]);
        if (c >= 0x80)
            dt_buffer_add_char(text, (char)(0xc0 | c >> 6));
        dt_buffer_add_char(text, (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c));
    }
}

static int byte_of(uint32_t c)
{
    static const unsigned remapped = 256 - 188; /* 188 bytes are printable */
    if (c < 0x100)
        return is_printable(c) ? (int)c : -1;
    if (c >= 0x100 + remapped)
        return -1;
    unsigned left = c - 0x100, byte = 0;
    while (is_printable(byte) || left-- > 0)
        byte++;
    return (int)byte;
}

bool dt_byte_level_decode(const char *text, size_t size, struct dt_buffer *bytes)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size;
    size_t before = bytes->size;
    while (p < end) {
        uint32_t c;
        p += dt_character(p, end, &c);
        int byte = byte_of(c);
        if (byte < 0) {
            bytes->size = before;
            return false;
        }
        dt_buffer_add_char(bytes, (char)byte);
    }
    return true;
}
