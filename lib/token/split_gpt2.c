/* SPDX-License-Identifier: MIT */
/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
#include "token/character.h"
#include "token/pattern.h"

/* The end of the run of characters of one class that begins at p. */
static inline const unsigned char *run_end(const unsigned char *p, const unsigned char *end,
                                           unsigned class)
{
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
