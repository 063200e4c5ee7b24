/* SPDX-License-Identifier: MIT */
/*
 * Character classes for the rules of dt-rules(5), from valid UTF-8.
 *
 *     size_t length;
 *     unsigned kind = dt_character_kind(text + i, &length);
 *     if (kind & DT_CHARACTER_LETTER)
 *         letters++;
 *
 * Classes follow Unicode's general categories and three lists: the marks that end a sentence
 * (property Sentence_Terminal), the symbols that do not make a word (datatrove's PUNCTUATION), and
 * the marks that are split from the ends of words (spaCy's English tokenizer).
 */
#ifndef DT_UNICODE_CHARACTER_H
#define DT_UNICODE_CHARACTER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "unicode/utf8.h"

enum dt_character_flag {
    DT_CHARACTER_BLANK = 1 << 0,       /* white space, line ends included */
    DT_CHARACTER_LETTER = 1 << 1,      /* categories Lu Ll Lt Lm Lo */
    DT_CHARACTER_LOWER = 1 << 2,       /* Ll, and letters without case */
    DT_CHARACTER_UPPER = 1 << 3,       /* Lu, and letters without case */
    DT_CHARACTER_DIGIT = 1 << 4,       /* 0 - 9 */
    DT_CHARACTER_SYMBOL = 1 << 5,      /* a chunk of symbols only is not a word */
    DT_CHARACTER_PUNCTUATION = 1 << 6, /* categories P* */
    DT_CHARACTER_STOP = 1 << 7,        /* ends a sentence */
    DT_CHARACTER_OPENING = 1 << 8,     /* split from the start of a word */
    DT_CHARACTER_CLOSING = 1 << 9,     /* split from the end of a word */
    DT_CHARACTER_QUOTE = 1 << 10,      /* a quotation mark */
    DT_CHARACTER_ICON = 1 << 11,       /* a pictogram: category So, and the ellipsis U+2026 */
    DT_CHARACTER_MARK = 1 << 12,       /* category Mn: a combining mark */
    DT_CHARACTER_NUMBER = 1 << 13,     /* category Nd: a decimal digit of any script */
    DT_CHARACTER_UNSPACED = 1 << 14,   /* letter or mark of a script without blanks between words:
                                        * Han, Hiragana, Katakana, Thai, Lao, Khmer, Burmese */
    DT_CHARACTER_JOINS = 1 << 15       /* in the grapheme cluster of the one before it: Extend,
                                        * ZWJ, SpacingMark */
};

/* Of the ASCII characters, by code; dt_character_kind gives the same. */
extern const uint16_t dt_character_ascii_kinds[128];

/* The kinds of blocks of code points, NULL until one of them was asked for. */
#define DT_CHARACTER_BLOCK  256
#define DT_CHARACTER_BLOCKS (0x110000 / DT_CHARACTER_BLOCK)
extern _Atomic(const uint16_t *) dt_character_blocks[DT_CHARACTER_BLOCKS];
/* Makes the block; of a point above U+10FFFF, only finds its kinds. */
unsigned dt_character_find_kind(uint32_t point);

/* The kinds of a code point. */
static inline unsigned dt_character_kind_of_code(uint32_t point)
{
    uint32_t number = point / DT_CHARACTER_BLOCK;
    const uint16_t *kinds = NULL;
    if (number < DT_CHARACTER_BLOCKS)
        kinds = atomic_load_explicit(&dt_character_blocks[number], memory_order_acquire);
    return kinds ? kinds[point % DT_CHARACTER_BLOCK] : dt_character_find_kind(point);
}

/* The classes of the character at text; *length is its size in bytes. */
static inline unsigned dt_character_kind(const char *text, size_t *length)
{
    unsigned char first = (unsigned char)*text;
    *length = 1;
    if (first < 128)
        return dt_character_ascii_kinds[first];
    *length = dt_utf8_length(*text);
    return dt_character_kind_of_code(dt_utf8_decode(text));
}

#endif
