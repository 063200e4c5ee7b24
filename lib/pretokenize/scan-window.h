/* SPDX-License-Identifier: MIT */
/*
 * Pieces of 64 bytes of text at once. A window starts where a piece starts. A
 * bit of a mask stands for a byte: the bytes of each class of characters make a
 * mask, and shifts of these give the bytes at which pieces begin, with no branch
 * that depends on the text.
 *
 * A window is trusted only as far as what comes behind it cannot matter: what
 * is rare, such as bytes that are no UTF-8, ends it, and where nothing is left
 * of it a piece is found by scan-scalar.h.
 *
 * Included by the scan-ISA.c, which may define DT_SCAN_CLASSIFY and, before,
 *     static inline void classify(const unsigned char *p, struct window *w)
 * that does what the one here does with what the processor offers.
 */
#ifndef DT_PRETOKENIZE_SCAN_WINDOW_H
#define DT_PRETOKENIZE_SCAN_WINDOW_H

#include "pretokenize/pattern.h"
#include "pretokenize/scan-masks.h"
#include "pretokenize/scan-scalar.h"

#ifndef DT_SCAN_CLASSIFY
/* Fills all but inner and known of w from the 64 bytes at p, of which those from
 * 0x80 on are of no class. */
static inline void classify(const unsigned char *p, struct window *w)
{
    uint64_t of[DT_CHAR_LONG + 1] = {0};
    w->blank = w->apostrophe = w->slash = 0;
    for (unsigned i = 0; i < WINDOW; i++) {
        uint64_t bit = (uint64_t)1 << i;
        of[dt_character_table_all.byte[p[i]]] |= bit;
        w->blank |= p[i] == ' ' ? bit : 0;
        w->apostrophe |= p[i] == '\'' ? bit : 0;
        w->slash |= p[i] == '/' ? bit : 0;
    }
    memcpy(w->of, of, sizeof w->of);
    w->high = of[DT_CHAR_LONG];
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

/* Classifies the characters of several bytes. Those of a class in refused, and
 * what is no UTF-8, end what is known. */
static inline void add_long_characters(place p, struct window *w, unsigned refused)
{
    for (uint64_t left = w->high & below(w->known); left;) {
        unsigned at = lowest(left), length;
        uint32_t code;
        length = dt_character(p + at, p + w->known, &code);
        unsigned class = code == DT_CHAR_INVALID ? 31 : dt_character_class_of(code);
        if (class == 31 || in_set(class, refused)) {
            w->known = at;
            return;
        }
        uint64_t bytes = below(length) << at;
        w->of[class] |= bytes;
        w->inner |= bytes & (bytes << 1);
        left &= ~bytes;
    }
}

static inline void read_window(place p, place end, struct window *w, unsigned refused)
{
    unsigned char rest[WINDOW];
    w->inner = 0;
    w->known = WINDOW;
    if (end - p < WINDOW) {
        w->known = (unsigned)(end - p);
        memset(rest, 0, sizeof rest);
        memcpy(rest, p, w->known);
        p = rest;
    }
    classify(p, w);
    if (w->high)
        add_long_characters(p, w, refused);
}

/* The starts of pieces behind the first that can be trusted: whether one begins
 * at a byte depends on the byte behind it, and in white space that is cut off on
 * the rest of it. */
static inline uint64_t trusted(const struct window *w, uint64_t starts, uint64_t spaces)
{
    if (w->known < 2)
        return 0;
    unsigned last = w->known - 2;
    if (spaces >> (w->known - 1) & 1) {
        uint64_t others = ~spaces & below(w->known);
        if (others == 0)
            return 0;
        last = highest(others) + 1;
        last = last < w->known - 2 ? last : w->known - 2;
    }
    return starts & below(last + 1) & ~(uint64_t)1;
}

/* The bytes behind the characters that begin at the bits of mask. */
static inline uint64_t behind(const struct window *w, uint64_t mask)
{
    mask <<= 1;
    if (w->inner)
        for (int i = 0; i < 3; i++)
            mask = (mask & w->inner) << 1 | (mask & ~w->inner);
    return mask;
}

/* Makes one piece of the bytes from .. to, which may be behind the window. */
static inline uint64_t join(uint64_t starts, unsigned from, unsigned to)
{
    starts &= ~(below(to) & ~below(from));
    return to < WINDOW ? starts | (uint64_t)1 << to : starts;
}

/* Contractions that are pieces. */
static inline uint64_t cut_contractions(place p, place end, const struct window *w, uint64_t starts,
                                        bool fold)
{
    for (uint64_t left = w->apostrophe & (starts | 1); left; left &= left - 1) {
        unsigned at = lowest(left), length = contraction(p + at, end, fold);
        if (length > 0)
            starts = join(starts, at + 1, at + length);
    }
    return starts;
}

/* Contractions that end words; one does not follow another. */
static inline uint64_t join_contractions(place p, place end, const struct window *w,
                                         uint64_t starts, uint64_t letters)
{
    unsigned behind_last = WINDOW;
    for (uint64_t left = w->apostrophe & letters << 1; left; left &= left - 1) {
        unsigned at = lowest(left), length = contraction(p + at, end, true);
        if (length == 0 || at == behind_last)
            continue;
        behind_last = at + length;
        starts = join(starts, at, behind_last);
    }
    return starts;
}

static inline uint64_t gpt2_starts(place p, place end, struct window *w)
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
    return trusted(w, starts, spaces);
}

/* Where a run of numbers goes on behind style.digits of them. */
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

/* Words of o200k where letters that have no case stand beside others, and
 * symbols that go on behind a newline, are left to the scalar scanner. */
static inline void refuse_cased(struct window *w, uint64_t others, uint64_t newlines)
{
    uint64_t uncased = w->of[DT_CHAR_UNCASED];
    uint64_t cased = w->of[DT_CHAR_UPPER] | w->of[DT_CHAR_LOWER];
    uint64_t strange = (uncased << 1 & cased) | (cased << 1 & uncased);
    uint64_t tails = newlines & others << 1;
    strange |= (newlines + tails) & ~newlines & w->slash;
    if (strange && lowest(strange) < w->known)
        w->known = lowest(strange);
}

static inline uint64_t style_starts(place p, place end, struct window *w, struct style style)
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
        refuse_cased(w, others, newlines);
    uint64_t late = newlines & w->of[DT_CHAR_SPACE] << 1; /* a newline behind blanks */
    if (late && lowest(late) < w->known)
        w->known = lowest(late);
    /* A symbol alone goes to the letters behind it. */
    uint64_t first = others & ~(others << 1) & ~(w->blank << 1);
    uint64_t starts = letters & ~(letters << 1 | w->of[DT_CHAR_SPACE] << 1 | behind(w, first));
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
    return trusted(w, starts, spaces);
}

#define SCALAR_PIECES 4 /* where a window gave nothing, more of its kind may follow */

/* Declares split_NAME, with the window and the scalar scanner given. */
#define DEFINE_SPLIT(name, starts_call, end_call)                                                  \
    static size_t split_##name(place text, place end, size_t *ends, size_t capacity)               \
    {                                                                                              \
        size_t n = 0;                                                                              \
        struct window window, *w = &window;                                                        \
        for (place p = text; p < end && n + DT_SPLIT_LEAST <= capacity;) {                         \
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

/* The functions of SPLITS. */
#define DEFINE_SPLITS                                                                              \
    DEFINE_SPLIT(gpt2, gpt2_starts(p, end, w), gpt2_end(p, end))                                   \
    DEFINE_STYLE(llama3, .digits = 3)                                                              \
    DEFINE_STYLE(cl100k, .digits = 3, .white_space_at_end = true)                                  \
    DEFINE_STYLE(qwen, .digits = 1)                                                                \
    DEFINE_STYLE(qwen35, .digits = 1, .marks_are_letters = true)                                   \
    DEFINE_STYLE(o200k, .digits = 3, .cased_words = true, .contractions = true)                    \
    DEFINE_STYLE(tekken, .digits = 1, .cased_words = true)

/* In the order of enum dt_scanner. */
#define SPLITS                                                                                     \
    {                                                                                              \
        split_gpt2, split_llama3, split_cl100k, split_qwen, split_qwen35, split_o200k,             \
            split_tekken                                                                           \
    }

#endif
