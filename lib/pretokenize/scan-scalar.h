/* SPDX-License-Identifier: MIT */
/*
 * Where one piece ends, character by character: each pattern as its regular
 * expression says, alternative by alternative. The scanners of scan-window.h
 * are faster, and leave to these what is rare.
 */
#ifndef DT_PRETOKENIZE_SCAN_SCALAR_H
#define DT_PRETOKENIZE_SCAN_SCALAR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pretokenize/character.h"

typedef const unsigned char *place;

static inline bool in_set(unsigned class, unsigned set)
{
    return set >> class & 1;
}

static inline unsigned class_at(place p, place end, unsigned *length)
{
    *length = 1;
    unsigned class = dt_character_table_all.byte[*p];
    return class == DT_CHAR_LONG ? dt_character_class(p, end, length) : class;
}

/* The end of the run of characters of a set that begins at p. */
static inline place run_end(place p, place end, unsigned set)
{
    unsigned length;
    while (p < end && in_set(class_at(p, end, &length), set))
        p += length;
    return p;
}

/* The same for at most limit characters. */
static inline place short_run_end(place p, place end, unsigned set, unsigned limit)
{
    unsigned length;
    for (; limit > 0 && p < end && in_set(class_at(p, end, &length), set); limit--)
        p += length;
    return p;
}

/* The length of the contraction at p, which is an apostrophe: 's 't 'd 'm 'll
 * 've 're, where cases are folded also in capitals and with U+017F, the long s;
 * 0 if there is none. */
static inline unsigned contraction(place p, place end, bool fold)
{
    unsigned char a = end - p > 1 ? p[1] : 0, b = end - p > 2 ? p[2] : 0;
    if (fold && a == 0xc5 && b == 0xbf)
        return 3;
    if (fold && a >= 'A' && a <= 'Z')
        a |= 0x20;
    if (fold && b >= 'A' && b <= 'Z')
        b |= 0x20;
    if (a == 's' || a == 't' || a == 'd' || a == 'm')
        return 2;
    bool two = (a == 'l' && b == 'l') || (a == 'v' && b == 'e') || (a == 'r' && b == 'e');
    return two ? 3 : 0;
}

static inline place last_character(place p)
{
    do
        p--;
    while ((*p & 0xc0) == 0x80);
    return p;
}

/* \s+(?!\S)|\s+ from p to the end of the white space there: its last character
 * goes to what follows, unless it is the only one. */
static inline place blanks_end(place p, place spaces_end, place end)
{
    if (spaces_end == end)
        return end;
    place last = last_character(spaces_end);
    return last > p ? last : spaces_end;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static inline place white_space_end(place p, place end, bool whole_at_end)
{
    place stop = run_end(p, end, DT_SET_SPACES);
    if (whole_at_end && stop == end)
        return stop;
    for (place newline = stop; newline > p; newline--)
        if (newline[-1] == '\n' || newline[-1] == '\r')
            return newline;
    return blanks_end(p, stop, end);
}

/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static inline place gpt2_end(place p, place end)
{
    unsigned length = *p == '\'' ? contraction(p, end, false) : 0;
    if (length > 0)
        return p + length;
    place word = p + (*p == ' ' && end - p > 1);
    unsigned class = class_at(word, end, &length);
    if (in_set(class, DT_SET_SPACES))
        return blanks_end(p, run_end(p, end, DT_SET_SPACES), end);
    if (in_set(class, DT_SET_LETTERS))
        return run_end(word, end, DT_SET_LETTERS);
    return run_end(word, end, class == DT_CHAR_NUMBER ? DT_SET(DT_CHAR_NUMBER) : DT_SET_OTHERS);
}

/* How the patterns that followed GPT-2's differ. */
struct style {
    bool cased_words;        /* a word ends before a capital: o200k and tekken */
    bool contractions;       /* of o200k: they end words; of the others: they are pieces */
    bool marks_are_letters;  /* Qwen 3.5 */
    bool white_space_at_end; /* \s++$ of today's cl100k: one piece */
    unsigned digits;         /* a piece has at most this many */
};

static inline unsigned letters_of(struct style style)
{
    return DT_SET_LETTERS | (style.marks_are_letters ? DT_SET(DT_CHAR_MARK) : 0);
}

static inline unsigned others_of(struct style style)
{
    return DT_SET_OTHERS & ~letters_of(style);
}

#define CAPITALS (DT_SET(DT_CHAR_UPPER) | DT_SET(DT_CHAR_UNCASED) | DT_SET(DT_CHAR_MARK))
#define SMALLS   (DT_SET(DT_CHAR_LOWER) | DT_SET(DT_CHAR_UNCASED) | DT_SET(DT_CHAR_MARK))
#define BOTH     (CAPITALS & SMALLS)

/* U*W+ from p, p if it does not match: capitals take what they can, then give
 * back up to the last one that is a small letter as well. */
static inline place capitals_and_smalls_end(place p, place end)
{
    unsigned length;
    place capitals = run_end(p, end, CAPITALS);
    if (capitals < end && in_set(class_at(capitals, end, &length), SMALLS))
        return run_end(capitals, end, SMALLS);
    while (capitals > p) {
        place last = last_character(capitals);
        if (in_set(class_at(last, end, &length), BOTH))
            return capitals;
        capitals = last;
    }
    return p;
}

/* [^\r\n\p{L}\p{N}]?U*W+C|[^\r\n\p{L}\p{N}]?U+W*C, p if it does not match. */
static inline place cased_word_end(place p, place end, bool contractions)
{
    unsigned length, class = class_at(p, end, &length);
    bool is_letter = in_set(class, DT_SET_LETTERS);
    if (class == DT_CHAR_NUMBER || class == DT_CHAR_NEWLINE)
        return p;
    place start = is_letter ? p : p + length, stop = start;
    if (start < end)
        stop = capitals_and_smalls_end(start, end);
    if (stop == start && class == DT_CHAR_MARK)
        stop = capitals_and_smalls_end(p, end);
    else if (stop == start)
        stop = run_end(start, end, CAPITALS);
    if (stop == start && class != DT_CHAR_MARK)
        return p;
    if (contractions && stop < end && *stop == '\'')
        stop += contraction(stop, end, true);
    return stop;
}

/* [^\r\n\p{L}\p{N}]?\p{L}+, p if it does not match. */
static inline place word_end(place p, place end, unsigned letters)
{
    unsigned length, class = class_at(p, end, &length);
    if (in_set(class, letters))
        return run_end(p, end, letters);
    if (class == DT_CHAR_NUMBER || class == DT_CHAR_NEWLINE)
        return p;
    place word = p + length, stop = run_end(word, end, letters);
    return stop > word ? stop : p;
}

/* The patterns from cl100k on. */
static inline place style_end(place p, place end, struct style style)
{
    unsigned length;
    if (!style.cased_words && *p == '\'' && (length = contraction(p, end, true)) > 0)
        return p + length;
    place stop = style.cased_words ? cased_word_end(p, end, style.contractions)
                                   : word_end(p, end, letters_of(style));
    if (stop > p)
        return stop;
    stop = short_run_end(p, end, DT_SET(DT_CHAR_NUMBER), style.digits);
    if (stop > p)
        return stop;
    place symbols = p + (*p == ' ');
    stop = run_end(symbols, end, others_of(style));
    if (stop == symbols)
        return white_space_end(p, end, style.white_space_at_end);
    while (stop < end && (*stop == '\n' || *stop == '\r' || (style.cased_words && *stop == '/')))
        stop++;
    return stop;
}

#endif
