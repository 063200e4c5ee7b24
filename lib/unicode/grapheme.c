/* SPDX-License-Identifier: MIT */
#include "unicode/grapheme.h"

#include <stdbool.h>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* What rules GB11 to GB13 know of a cluster so far. */
struct state {
    enum dt_unicode_break last;
    bool picture;      /* a pictograph, then Extend; then ZWJ */
    unsigned regional; /* regional indicators at the end */
};

static bool is_control(enum dt_unicode_break b)
{
    return b == DT_UNICODE_BREAK_CR || b == DT_UNICODE_BREAK_LF || b == DT_UNICODE_BREAK_CONTROL;
}

/* Hangul: rules GB6 to GB8. */
static bool joins_syllable(enum dt_unicode_break a, enum dt_unicode_break b)
{
    if (a == DT_UNICODE_BREAK_L)
        return b == DT_UNICODE_BREAK_L || b == DT_UNICODE_BREAK_V || b == DT_UNICODE_BREAK_LV ||
               b == DT_UNICODE_BREAK_LVT;
    if (a == DT_UNICODE_BREAK_LV || a == DT_UNICODE_BREAK_V)
        return b == DT_UNICODE_BREAK_V || b == DT_UNICODE_BREAK_T;
    return (a == DT_UNICODE_BREAK_LVT || a == DT_UNICODE_BREAK_T) && b == DT_UNICODE_BREAK_T;
}

static bool goes_on(const struct state *s, enum dt_unicode_break next)
{
    if (s->last == DT_UNICODE_BREAK_CR && next == DT_UNICODE_BREAK_LF)
        return true;
    if (is_control(s->last) || is_control(next))
        return false;
    if (next == DT_UNICODE_BREAK_EXTEND || next == DT_UNICODE_BREAK_ZWJ ||
        next == DT_UNICODE_BREAK_SPACING || s->last == DT_UNICODE_BREAK_PREPEND)
        return true;
    if (next == DT_UNICODE_BREAK_PICTURE)
        return s->picture && s->last == DT_UNICODE_BREAK_ZWJ;
    if (next == DT_UNICODE_BREAK_REGIONAL)
        return s->regional % 2 == 1;
    return joins_syllable(s->last, next);
}

static void add(struct state *s, enum dt_unicode_break b)
{
    if (b != DT_UNICODE_BREAK_EXTEND && b != DT_UNICODE_BREAK_ZWJ)
        s->picture = b == DT_UNICODE_BREAK_PICTURE;
    else if (s->last == DT_UNICODE_BREAK_ZWJ)
        s->picture = false;
    s->regional = b == DT_UNICODE_BREAK_REGIONAL ? s->regional + 1 : 0;
    s->last = b;
}

size_t dt_grapheme_size(const char *text, size_t size)
{
    struct state s = {DT_UNICODE_BREAK_OTHER, false, 0};
    size_t at = 0;
    while (at < size) {
        uint32_t code = dt_utf8_decode(text + at);
        enum dt_unicode_break b = dt_unicode_break_of(code);
        if (at > 0 && !goes_on(&s, b))
            break;
        add(&s, b);
        at += dt_utf8_length(text[at]);
    }
    return at;
}
