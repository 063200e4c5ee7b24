/* SPDX-License-Identifier: MIT */
#include "unicode/utf8.h"

#include <stdbool.h>
#include <string.h>

#include "base/byte-scan.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

static const char replacement[] = "\xef\xbf\xbd";

static uint64_t load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

size_t dt_utf8_ascii_prefix(const char *text, size_t size)
{
    size_t i = 0;
    while (i + 32 <= size &&
           ((load8(text + i) | load8(text + i + 8) | load8(text + i + 16) | load8(text + i + 24)) &
            HIGH_BITS) == 0)
        i += 32;
    while (i + 8 <= size && (load8(text + i) & HIGH_BITS) == 0)
        i += 8;
    while (i < size && (text[i] & 0x80) == 0)
        i++;
    return i;
}

/* Bytes of the character at p, or, with *valid false, of the maximal subpart
 * of an ill-formed sequence there; size > 0. */
static size_t take(const char *p, size_t size, bool *valid)
{
    unsigned char lead = (unsigned char)p[0];
    size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    *valid = false;
    if (length == 0 || lead > 0xf4)
        return 1;
    for (size_t i = 1; i < length; i++) {
        if (i == size || (unsigned char)p[i] < low || (unsigned char)p[i] > high)
            return i;
        low = 0x80, high = 0xbf; /* only the second byte has narrower bounds */
    }
    *valid = true;
    return length;
}

/* Bytes of the character of two or three bytes, of four that begin with it, as a little-endian
 * number; 0 for any other and for what is ill-formed. */
static size_t take_short(uint32_t bytes)
{
    if ((bytes & 0xc0e0) == 0x80c0)
        return bytes & 0x1e ? 2 : 0; /* not C0 and C1, which are overlong */
    if ((bytes & 0xc0c0f0) != 0x8080e0)
        return 0;
    uint32_t second = bytes & 0x200f; /* with E0, which may be overlong; with ED, a surrogate */
    return second != 0 && second != 0x200d ? 3 : 0;
}

/* The end of the valid characters from i, or the first one at or after end. */
static size_t valid_characters(const char *text, size_t size, size_t i, size_t end)
{
    for (size_t n; i < end && i < size; i += n) {
        n = size - i >= 8 ? take_short((uint32_t)load8(text + i)) : 0;
        bool valid = n > 0;
        if (!valid)
            n = take(text + i, size - i, &valid);
        if (!valid)
            break;
    }
    return i;
}

#define LONGEST 4 /* bytes of a character */

/* Bytes of the block at p, or of ASCII there, that may be more; 0 if one is wrong after those
 * before it, of which LONGEST - 1 are read. */
static size_t valid_block(const char *p, size_t size)
{
    dt_block b = dt_block_load(p), one = dt_block_load(p - 1), two = dt_block_load(p - 2),
             three = dt_block_load(p - 3), continues = (dt_block)((b & 0xc0) == 0x80);
    if (dt_block_first((b | three) & 0x80) == DT_BLOCK) /* ASCII */
        return dt_utf8_ascii_prefix(p, size);
    dt_block wanted = (dt_block)((one >= 0xc2) | (two >= 0xe0) | (three >= 0xf0));
    dt_block overlong = (dt_block)(((one == 0xe0) & (b < 0xa0)) | ((one == 0xf0) & (b < 0x90)) |
                                   ((b & 0xfe) == 0xc0));
    dt_block beyond = (dt_block)(((one == 0xed) & (b >= 0xa0)) | ((one == 0xf4) & (b >= 0x90)) |
                                 (b >= 0xf5)); /* surrogates, too */
    dt_block wrong = (continues ^ wanted) | overlong | beyond;
    return dt_block_first(wrong) == DT_BLOCK ? DT_BLOCK : 0;
}

size_t dt_utf8_valid_prefix(const char *text, size_t size)
{
    size_t i = valid_characters(text, size, dt_utf8_ascii_prefix(text, size), LONGEST - 1);
    if (i < LONGEST - 1)
        return i;
    for (size_t n = 1; n > 0 && i + DT_BLOCK <= size; i += n)
        n = valid_block(text + i, size - i);
    size_t end = i;
    for (i -= LONGEST - 1; i < end && (text[i] & 0xc0) == 0x80; i++)
        ; /* to a character that the last block may not have ended */
    return valid_characters(text, size, i, size);
}

uint64_t dt_utf8_repair(const char *text, size_t size, struct dt_buffer *out)
{
    uint64_t replaced = 0;
    for (size_t i = 0; i < size;) {
        size_t good = dt_utf8_valid_prefix(text + i, size - i);
        dt_buffer_append(out, text + i, good);
        i += good;
        if (i == size)
            break;
        bool valid;
        i += take(text + i, size - i, &valid);
        dt_buffer_append(out, replacement, sizeof replacement - 1);
        replaced++;
    }
    return replaced;
}

/* Loops of fixed length are those that GCC vectorizes at -O2; no count exceeds a byte. */
#define BLOCK 64

static unsigned continuations_in_block(const char *text)
{
    uint8_t count = 0;
    for (int i = 0; i < BLOCK; i++)
        count = (uint8_t)(count + ((signed char)text[i] < -0x40)); /* 10xxxxxx */
    return count;
}

/* Of 8 bytes. */
static uint64_t continuations_in_word(uint64_t word)
{
    uint64_t each = (word & HIGH_BITS) >> 7 & ~word >> 6; /* 1 or 0 in each byte */
    return each * (HIGH_BITS >> 7) >> 56;
}

uint64_t dt_utf8_count(const char *text, size_t size)
{
    uint64_t continuations = 0;
    size_t i = 0;
    for (; i + BLOCK <= size; i += BLOCK)
        continuations += continuations_in_block(text + i);
    for (; i + 8 <= size; i += 8)
        continuations += continuations_in_word(load8(text + i));
    for (; i < size; i++)
        continuations += (text[i] & 0xc0) == 0x80;
    return size - continuations;
}

static unsigned bytes_in_block(const char *text, char byte)
{
    uint8_t count = 0;
    for (int i = 0; i < BLOCK; i++)
        count = (uint8_t)(count + (text[i] == byte));
    return count;
}

uint64_t dt_utf8_count_byte(const char *text, size_t size, char byte)
{
    uint64_t count = 0;
    size_t i = 0;
    for (; i + BLOCK <= size; i += BLOCK)
        count += bytes_in_block(text + i, byte);
    for (; i < size; i++)
        count += text[i] == byte;
    return count;
}

size_t dt_utf8_next(const char *text, size_t size, uint32_t *code)
{
    bool valid;
    size_t length = take(text, size, &valid);
    if (!valid)
        return 0;
    *code = dt_utf8_decode(text);
    return length;
}

unsigned dt_utf8_encode(uint32_t code, char bytes[4])
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (unsigned i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(leads[length] | code);
    return length;
}
