/* SPDX-License-Identifier: MIT */
/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#include "token/pattern.h"

#include <string.h>

#include "token/character.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

/* Passes over ASCII letters, eight bytes at a time: one jump that depends on
 * the text for a word, where a loop over its bytes would mispredict its end. */
static inline const unsigned char *skip_letters(const unsigned char *p, const unsigned char *end)
{
    const uint64_t each = 0x0101010101010101u;
    for (; end - p >= 8; p += 8) {
        uint64_t text;
        memcpy(&text, p, 8);
        uint64_t low = (text | 0x20 * each) & 0x7f * each; /* no carry between bytes */
        uint64_t from_a = low + (0x80 - 'a') * each, past_z = low + (0x7f - 'z') * each;
        uint64_t others = ~(from_a & ~past_z & ~text) & 0x80 * each;
        if (others)
            return p + (__builtin_ctzll(others) >> 3);
    }
    return p;
}

/* The end of the run of characters of one class that begins at p. */
static inline const unsigned char *run_end(const unsigned char *p, const unsigned char *end,
                                           unsigned class)
{
    if (class == DT_CHAR_LETTER)
        p = skip_letters(p, end);
    for (;;) {
        while (p < end && dt_characters.byte[*p] == class)
            p++;
        unsigned length;
        if (p == end || *p < 0x80 || dt_character_class(p, end, &length) != class)
            return p;
        p += length;
    }
}

/* The end of the contraction at p, which is an apostrophe; p if it is none. */
static const unsigned char *contraction_end(const unsigned char *p, const unsigned char *end)
{
    if (end - p < 2)
        return p;
    unsigned char a = p[1], b = end - p > 2 ? p[2] : 0;
    if (a == 's' || a == 'd' || a == 'm' || a == 't')
        return p + 2;
    if ((a == 'l' && b == 'l') || (a == 'v' && b == 'e') || (a == 'r' && b == 'e'))
        return p + 3;
    return p;
}

/* White space gives its last character to the word that follows, unless it has
 * only that one. */
static const unsigned char *space_end(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *stop = run_end(p, end, DT_CHAR_SPACE), *last = stop;
    if (stop == end)
        return stop;
    do
        last--;
    while ((*last & 0xc0) == 0x80);
    return last > p ? last : stop;
}

static inline const unsigned char *piece_end(const unsigned char *p, const unsigned char *end)
{
    const unsigned char *word = p + (*p == ' ' && end - p > 1);
    unsigned class = dt_characters.byte[*word], length;
    if (class == DT_CHAR_LONG)
        class = dt_character_class(word, end, &length);
    if (class == DT_CHAR_SPACE)
        return space_end(p, end);
    if (*p == '\'') {
        const unsigned char *stop = contraction_end(p, end);
        if (stop > p)
            return stop;
    }
    return run_end(word, end, class);
}

size_t dt_split_gpt2(const unsigned char *text, const unsigned char *end, size_t *ends,
                     size_t capacity)
{
    size_t n = 0;
    for (const unsigned char *p = text; p < end && n < capacity; n++) {
        p = piece_end(p, end);
        ends[n] = (size_t)(p - text);
    }
    return n;
}
