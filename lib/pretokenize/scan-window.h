/* SPDX-License-Identifier: MIT */
/*
 * The vectorized scanners: 64 bytes of text at a time. A window starts at the start of a
 * piece. Each character class is a 64-bit mask with a bit per byte; shifts of the masks give
 * the bytes at which pieces start, without branches on the text:
 *
 *     text     H e l l o   w o r l d !
 *     letters  1 1 1 1 1 0 1 1 1 1 1 0
 *     blank    0 0 0 0 0 1 0 0 0 0 0 0
 *     starts   1 0 0 0 0 1 0 0 0 0 0 1     letters & ~(letters << 1), ...
 *
 * A window is valid up to the last byte whose context is inside it. Rare text, such as
 * invalid UTF-8, ends it early; if it yields no start, scan-scalar.h finds the piece.
 *
 * Included by each scan-ISA.c, which may define DT_SCAN_CLASSIFY and, before the include, a
 * SIMD version of
 *     static inline void classify(const unsigned char *p, struct window *w)
 */
#ifndef DT_PRETOKENIZE_SCAN_WINDOW_H
#define DT_PRETOKENIZE_SCAN_WINDOW_H

#include "pretokenize/pattern.h"
#include "pretokenize/scan-masks.h"
#include "pretokenize/scan-scalar.h"
#include "pretokenize/scanners.h"

#include "pretokenize/scanners.h"

#ifndef DT_SCAN_CLASSIFY
/* Fills all fields of w except inner and valid from the 64 bytes at p. Bytes from 0x80 on
 * remain unclassified. */
static inline void classify(const unsigned char *p, struct window *w)
{
    uint64_t of[DT_CHAR_MULTIBYTE + 1] = {0};
    w->blank = w->apostrophe = w->slash = 0;
    for (unsigned i = 0; i < WINDOW; i++) {
        uint64_t bit = (uint64_t)1 << i;
        of[dt_character_table_all.byte[p[i]]] |= bit;
        w->blank |= p[i] == ' ' ? bit : 0;
        w->apostrophe |= p[i] == '\'' ? bit : 0;
        w->slash |= p[i] == '/' ? bit : 0;
    }
    memcpy(w->of, of, sizeof w->of);
    w->high = of[DT_CHAR_MULTIBYTE];
}
#endif

static inline uint64_t below(unsigned bit)
{
    return bit < 64 ? ((uint64_t)1 << bit) - 1 : ~(uint64_t)0;
}

static inline unsigned lowest(uint64_t mask)
{
    return (unsigned)__builtin_ctzll(mask);
}

static inline unsigned highest(uint64_t mask)
{
    return 63 - (unsigned)__builtin_clzll(mask);
}

/* Classifies multibyte characters. A character of a class in refused, or invalid UTF-8, ends
 * the valid part. */
static inline void add_multibyte_characters(position p, struct window *w, unsigned refused)
{
    for (uint64_t left = w->high & below(w->valid); left;) {
        unsigned at = lowest(left), length;
        uint32_t code;
        length = dt_character(p + at, p + w->valid, &code);
        unsigned class = code == DT_CHAR_INVALID ? 31 : dt_character_class_of(code);
        if (class == 31 || in_set(class, refused)) {
            w->valid = at;
            return;
        }
        uint64_t bytes = below(length) << at;
        w->of[class] |= bytes;
        w->inner |= bytes & (bytes << 1);
        left &= ~bytes;
    }
}

static inline void read_window(position p, position end, struct window *w, unsigned refused)
{
    unsigned char rest[WINDOW];
    w->inner = 0;
    w->valid = WINDOW;
    if (end - p < WINDOW) {
        w->valid = (unsigned)(end - p);
        memset(rest, 0, sizeof rest);
        memcpy(rest, p, w->valid);
        p = rest;
    }
    classify(p, w);
    if (w->high)
        add_multibyte_characters(p, w, refused);
}

/* The piece starts, after the first, that the window determines. Whether a piece starts at a
 * byte depends on the next byte, and in white space at the window's end on the rest of it. */
static inline uint64_t valid_starts(const struct window *w, uint64_t starts, uint64_t spaces)
{
    if (w->valid < 2)
        return 0;
    unsigned last = w->valid - 2;
    if (spaces >> (w->valid - 1) & 1) {
        uint64_t others = ~spaces & below(w->valid);
        if (others == 0)
            return 0;
        last = highest(others) + 1;
        last = last < w->valid - 2 ? last : w->valid - 2;
    }
    return starts & below(last + 1) & ~(uint64_t)1;
}

/* The bytes after the characters that start at the bits of mask. */
static inline uint64_t after(const struct window *w, uint64_t mask)
{
    mask <<= 1;
    if (w->inner)
        for (int i = 0; i < 3; i++)
            mask = (mask & w->inner) << 1 | (mask & ~w->inner);
    return mask;
}

/* Makes bytes from .. to one piece; to may be past the window. */
static inline uint64_t join(uint64_t starts, unsigned from, unsigned to)
{
    starts &= ~(below(to) & ~below(from));
    return to < WINDOW ? starts | (uint64_t)1 << to : starts;
}

/* Contractions as separate pieces. */
static inline uint64_t cut_contractions(position p, position end, const struct window *w,
                                        uint64_t starts, bool fold)
{
    for (uint64_t left = w->apostrophe & (starts | 1); left; left &= left - 1) {
        unsigned at = lowest(left), length = contraction(p + at, end, fold);
        if (length > 0)
            starts = join(starts, at + 1, at + length);
    }
    return starts;
}

/* Contractions as parts of words; at most one per word. */
static inline uint64_t join_contractions(position p, position end, const struct window *w,
                                         uint64_t starts, uint64_t letters)
{
    unsigned last_end = WINDOW;
    for (uint64_t left = w->apostrophe & letters << 1; left; left &= left - 1) {
        unsigned at = lowest(left), length = contraction(p + at, end, true);
        if (length == 0 || at == last_end)
            continue;
        last_end = at + length;
        starts = join(starts, at, last_end);
    }
    return starts;
}

static inline uint64_t gpt2_starts(position p, position end, struct window *w)
{
    read_window(p, end, w, DT_SET_SPACES);
    uint64_t letters = w->of[DT_CHAR_UPPER] | w->of[DT_CHAR_LOWER] | w->of[DT_CHAR_UNCASED];
    uint64_t numbers = w->of[DT_CHAR_NUMBER], others = w->of[DT_CHAR_OTHER] | w->of[DT_CHAR_MARK];
    uint64_t spaces = w->of[DT_CHAR_SPACE] | w->of[DT_CHAR_NEWLINE];
    uint64_t starts =
        (letters & ~(letters << 1)) | (numbers & ~(numbers << 1)) | (others & ~(others << 1));
    starts = (starts & ~(w->blank << 1)) | (spaces & ~(spaces << 1 & spaces >> 1));
    starts &= ~w->inner;
    starts = cut_contractions(p, end, w, starts, false);
    return valid_starts(w, starts, spaces);
}

/* Piece starts in runs of numbers: one every style.digits. */
static inline uint64_t number_starts(uint64_t numbers, struct style style, uint64_t inner)
{
    uint64_t starts = numbers & ~(numbers << 1), found = starts;
    if (style.digits == 1)
        return numbers & ~inner;
    uint64_t four = numbers & numbers << 1 & numbers << 2 & numbers << 3;
    while ((found = found << 3 & four) != 0)
        starts |= found;
    return starts;
}

/* Ends the window before text that is left to the scalar scanner: uncased beside cased
 * letters, and symbols with a slash after a newline. */
static inline void end_before_mixed_case(struct window *w, uint64_t others, uint64_t newlines)
{
    uint64_t uncased = w->of[DT_CHAR_UNCASED];
    uint64_t cased = w->of[DT_CHAR_UPPER] | w->of[DT_CHAR_LOWER];
    uint64_t strange = (uncased << 1 & cased) | (cased << 1 & uncased);
    uint64_t tails = newlines & others << 1;
    strange |= (newlines + tails) & ~newlines & w->slash;
    if (strange && lowest(strange) < w->valid)
        w->valid = lowest(strange);
}

static inline uint64_t style_starts(position p, position end, struct window *w, struct style style)
{
    read_window(p, end, w,
                DT_SET_SPACES | (style.digits > 1 ? DT_SET(DT_CHAR_NUMBER) : 0) |
                    (style.cased_words ? DT_SET(DT_CHAR_MARK) : 0));
    uint64_t upper = w->of[DT_CHAR_UPPER], lower = w->of[DT_CHAR_LOWER];
    uint64_t marks = w->of[DT_CHAR_MARK], numbers = w->of[DT_CHAR_NUMBER];
    uint64_t letters = upper | lower | w->of[DT_CHAR_UNCASED];
    uint64_t others = w->of[DT_CHAR_OTHER];
    uint64_t newlines = w->of[DT_CHAR_NEWLINE], spaces = w->of[DT_CHAR_SPACE] | newlines;
    if (style.marks_are_letters)
        letters |= marks;
    else
        others |= marks;
    if (style.cased_words)
        end_before_mixed_case(w, others, newlines);
    uint64_t late = newlines & w->of[DT_CHAR_SPACE] << 1; /* a newline after spaces */
    if (late && lowest(late) < w->valid)
        w->valid = lowest(late);
    /* A single symbol joins the letters after it. */
    uint64_t first = others & ~(others << 1) & ~(w->blank << 1);
    uint64_t starts = letters & ~(letters << 1 | w->of[DT_CHAR_SPACE] << 1 | after(w, first));
    if (style.cased_words)
        starts |= upper & lower << 1;
    starts |= number_starts(numbers, style, w->inner) | first;
    starts |= newlines & ~(spaces << 1 | others << 1);
    starts |= w->of[DT_CHAR_SPACE] & ~(w->of[DT_CHAR_SPACE] << 1 & spaces >> 1);
    starts &= ~w->inner;
    if (!style.cased_words)
        starts = cut_contractions(p, end, w, starts, true);
    else if (style.contractions)
        starts = join_contractions(p, end, w, starts, letters);
    return valid_starts(w, starts, spaces);
}

#define SCALAR_PIECES 4 /* after a window without a start, more rare text may follow */

/* Defines split_NAME from a window scanner and a scalar scanner. */
#define DEFINE_SPLIT(name, starts_call, end_call)                                                  \
    static size_t split_##name(position text, position end, size_t *ends, size_t capacity)         \
    {                                                                                              \
        size_t n = 0;                                                                              \
        struct window window, *w = &window;                                                        \
        for (position p = text; p < end && n + DT_SPLIT_MIN_CAPACITY <= capacity;) {               \
            uint64_t starts = starts_call;                                                         \
            size_t base = (size_t)(p - text);                                                      \
            if (starts)                                                                            \
                p += highest(starts);                                                              \
            else                                                                                   \
                for (int i = 0; i < SCALAR_PIECES && p < end; i++)                                 \
                    ends[n++] = (size_t)((p = end_call) - text);                                   \
            for (; starts; starts &= starts - 1)                                                   \
                ends[n++] = base + lowest(starts);                                                 \
        }                                                                                          \
        return n;                                                                                  \
    }

#define DEFINE_STYLE(name, ...)                                                                    \
    static const struct style name##_style = {__VA_ARGS__};                                        \
    DEFINE_SPLIT(name, style_starts(p, end, w, name##_style), style_end(p, end, name##_style))

/* Defines split_NAME for each row of DT_SCANNER_ROWS. */
#define DEFINE_SPLITS                                                                              \
    DEFINE_SPLIT(gpt2, gpt2_starts(p, end, w), gpt2_end(p, end))                                   \
    DEFINE_STYLE(llama3, .digits = 3)                                                              \
    DEFINE_STYLE(cl100k, .digits = 3, .white_space_at_end = true)                                  \
    DEFINE_STYLE(qwen, .digits = 1)                                                                \
    DEFINE_STYLE(qwen35, .digits = 1, .marks_are_letters = true)                                   \
    DEFINE_STYLE(o200k, .digits = 3, .cased_words = true, .contractions = true)                    \
    DEFINE_STYLE(tekken, .digits = 1, .cased_words = true)

#define SPLIT_ROW(enumerator, name) [enumerator] = split_##name,
#define SPLITS                                                                                     \
    {                                                                                              \
        DT_SCANNER_ROWS(SPLIT_ROW)                                                                 \
    }

#endif
