/* SPDX-License-Identifier: MIT */
/*
 * The scalar scanners: the end of one piece, character by character, following the
 * alternatives of each regular expression. scan-window.h is faster and falls back to these
 * for rare text.
 */
#ifndef DT_PRETOKENIZE_SCAN_SCALAR_H
#define DT_PRETOKENIZE_SCAN_SCALAR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pretokenize/character.h"

typedef const unsigned char *position;

static inline bool in_set(unsigned class, unsigned set)
{
    return set >> class & 1;
}

static inline unsigned class_at(position p, position end, unsigned *length)
{
    *length = 1;
    unsigned class = dt_character_table_all.byte[*p];
    return class == DT_CHAR_MULTIBYTE ? dt_character_class(p, end, length) : class;
}

/* The end of the run of characters of a set that starts at p. */
static inline position run_end(position p, position end, unsigned set)
{
    unsigned length;
    while (p < end && in_set(class_at(p, end, &length), set))
        p += length;
    return p;
}

/* The same for at most limit characters. */
static inline position short_run_end(position p, position end, unsigned set, unsigned limit)
{
    unsigned length;
    for (; limit > 0 && p < end && in_set(class_at(p, end, &length), set); limit--)
        p += length;
    return p;
}

/* The length of the contraction at p, an apostrophe: 's 't 'd 'm 'll 've 're; with fold also
 * in upper case and with U+017F, the long s. 0 if absent. */
static inline unsigned contraction(position p, position end, bool fold)
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

static inline position last_character(position p)
{
    do
        p--;
    while ((*p & 0xc0) == 0x80);
    return p;
}

/* \s+(?!\S)|\s+ on the white space p .. spaces_end: the last character joins the next piece,
 * unless it is the only one. */
static inline position split_spaces_end(position p, position spaces_end, position end)
{
    if (spaces_end == end)
        return end;
    position last = last_character(spaces_end);
    return last > p ? last : spaces_end;
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static inline position white_space_end(position p, position end, bool whole_at_end)
{
    position stop = run_end(p, end, DT_SET_SPACES);
    if (whole_at_end && stop == end)
        return stop;
    for (position newline = stop; newline > p; newline--)
        if (newline[-1] == '\n' || newline[-1] == '\r')
            return newline;
    return split_spaces_end(p, stop, end);
}

/* '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static inline position gpt2_end(position p, position end)
{
    unsigned length = *p == '\'' ? contraction(p, end, false) : 0;
    if (length > 0)
        return p + length;
    position word = p + (*p == ' ' && end - p > 1);
    unsigned class = class_at(word, end, &length);
    if (in_set(class, DT_SET_SPACES))
        return split_spaces_end(p, run_end(p, end, DT_SET_SPACES), end);
    if (in_set(class, DT_SET_LETTERS))
        return run_end(word, end, DT_SET_LETTERS);
    return run_end(word, end, class == DT_CHAR_NUMBER ? DT_SET(DT_CHAR_NUMBER) : DT_SET_OTHERS);
}

/* The options of the patterns from Llama 3 and cl100k on. */
struct style {
    bool cased_words;        /* a word ends before an upper-case letter: o200k and tekken */
    bool contractions;       /* cased_words: contractions are part of the word */
    bool marks_are_letters;  /* Qwen 3.5 */
    bool white_space_at_end; /* \s++$ of cl100k: one piece */
    unsigned digits;         /* maximum per piece */
};

static inline unsigned letters_of(struct style style)
{
    return DT_SET_LETTERS | (style.marks_are_letters ? DT_SET(DT_CHAR_MARK) : 0);
}

static inline unsigned others_of(struct style style)
{
    return DT_SET_OTHERS & ~letters_of(style);
}

#define UPPER_SET (DT_SET(DT_CHAR_UPPER) | DT_SET(DT_CHAR_UNCASED) | DT_SET(DT_CHAR_MARK))
#define LOWER_SET (DT_SET(DT_CHAR_LOWER) | DT_SET(DT_CHAR_UNCASED) | DT_SET(DT_CHAR_MARK))
#define BOTH_SET  (UPPER_SET & LOWER_SET)

/* U*W+ from p; p if it does not match. U* is greedy, then backtracks to the last character
 * that is also in W. */
static inline position cased_run_end(position p, position end)
{
    unsigned length;
    position upper_end = run_end(p, end, UPPER_SET);
    if (upper_end < end && in_set(class_at(upper_end, end, &length), LOWER_SET))
        return run_end(upper_end, end, LOWER_SET);
    while (upper_end > p) {
        position last = last_character(upper_end);
        if (in_set(class_at(last, end, &length), BOTH_SET))
            return upper_end;
        upper_end = last;
    }
    return p;
}

/* [^\r\n\p{L}\p{N}]?U*W+C|[^\r\n\p{L}\p{N}]?U+W*C, p if it does not match. */
static inline position cased_word_end(position p, position end, bool contractions)
{
    unsigned length, class = class_at(p, end, &length);
    bool is_letter = in_set(class, DT_SET_LETTERS);
    if (class == DT_CHAR_NUMBER || class == DT_CHAR_NEWLINE)
        return p;
    position start = is_letter ? p : p + length, stop = start;
    if (start < end)
        stop = cased_run_end(start, end);
    if (stop == start && class == DT_CHAR_MARK)
        stop = cased_run_end(p, end);
    else if (stop == start)
        stop = run_end(start, end, UPPER_SET);
    if (stop == start && class != DT_CHAR_MARK)
        return p;
    if (contractions && stop < end && *stop == '\'')
        stop += contraction(stop, end, true);
    return stop;
}

/* [^\r\n\p{L}\p{N}]?\p{L}+, p if it does not match. */
static inline position word_end(position p, position end, unsigned letters)
{
    unsigned length, class = class_at(p, end, &length);
    if (in_set(class, letters))
        return run_end(p, end, letters);
    if (class == DT_CHAR_NUMBER || class == DT_CHAR_NEWLINE)
        return p;
    position word = p + length, stop = run_end(word, end, letters);
    return stop > word ? stop : p;
}

/* Llama 3, cl100k and later patterns. */
static inline position style_end(position p, position end, struct style style)
{
    unsigned length;
    if (!style.cased_words && *p == '\'' && (length = contraction(p, end, true)) > 0)
        return p + length;
    position stop = style.cased_words ? cased_word_end(p, end, style.contractions)
                                      : word_end(p, end, letters_of(style));
    if (stop > p)
        return stop;
    stop = short_run_end(p, end, DT_SET(DT_CHAR_NUMBER), style.digits);
    if (stop > p)
        return stop;
    position symbols = p + (*p == ' ');
    stop = run_end(symbols, end, others_of(style));
    if (stop == symbols)
        return white_space_end(p, end, style.white_space_at_end);
    while (stop < end && (*stop == '\n' || *stop == '\r' || (style.cased_words && *stop == '/')))
        stop++;
    return stop;
}

#endif
