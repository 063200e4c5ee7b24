/* SPDX-License-Identifier: MIT */
/* What an expression matches at the borders of words, found in its program. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "pretokenize/regex-internal.h"
#include "pretokenize/regex.h"

static bool takes(const struct dt_regex *r, const struct dt_regex_instruction *i, uint32_t code)
{
    if (i->operation == DT_REGEX_SET)
        return dt_regex_has(r, i->a, code);
    return i->operation == DT_REGEX_REPEAT && i->b > 0 && dt_regex_has(r, i->c, code);
}

static bool takes_visible(const struct dt_regex *r, const struct dt_regex_instruction *i)
{
    for (uint32_t code = '!'; code <= '~'; code++)
        if (takes(r, i, code))
            return true;
    return false;
}

/* Whether an assertion is the same before a space as at the end: (?!\S), or of other characters. */
static bool is_plain_assertion(const struct dt_regex *r, size_t at)
{
    const struct dt_regex_instruction *i = &r->program[at];
    return i->operation == DT_REGEX_AHEAD && i->b && i[1].operation == DT_REGEX_SET &&
           i[2].operation == DT_REGEX_MATCH && i->a == at + 3 && !takes(r, &i[1], ' ');
}

/* A walk over the instructions that may come next without a character between. */
struct walk {
    const struct dt_regex *regex;
    bool *seen;
    bool finds_space, ends; /* one of them takes a space; is the end of the expression */
};

static void go(struct walk *w, size_t at)
{
    while (!w->seen[at]) {
        const struct dt_regex_instruction *i = &w->regex->program[at];
        w->seen[at] = true;
        w->finds_space |= takes(w->regex, i, ' ');
        switch (i->operation) {
        case DT_REGEX_SET:
            return;
        case DT_REGEX_REPEAT:
            if (i->a > 0)
                return;
            at++;
            break;
        case DT_REGEX_SPLIT:
            go(w, i->a);
            at = i->b;
            break;
        case DT_REGEX_JUMP:
        case DT_REGEX_AHEAD:
            at = i->a;
            break;
        case DT_REGEX_MATCH: /* of an atomic body: what follows it is next */
            w->ends |= at + 1 == w->regex->count;
            if (at + 1 == w->regex->count)
                return;
            at++;
            break;
        default:
            at++;
            break;
        }
    }
}

static struct walk walk(const struct dt_regex *r, size_t from)
{
    struct walk w = {.regex = r, .seen = dt_alloc(r->count, sizeof *w.seen)};
    go(&w, from);
    free(w.seen);
    return w;
}

/* Whether a space may directly follow the characters of instruction `at` in a match. */
static bool space_follows(const struct dt_regex *r, size_t at)
{
    const struct dt_regex_instruction *i = &r->program[at];
    bool repeats = i->operation == DT_REGEX_REPEAT && i->b > 1 && takes(r, i, ' ');
    return repeats || walk(r, at + 1).finds_space;
}

/* Whether an alternative of the whole expression takes one space. */
static bool takes_any_space(const struct dt_regex *r)
{
    for (size_t at = 0;;) {
        const struct dt_regex_instruction *i = &r->program[at];
        size_t alternative = i->operation == DT_REGEX_SPLIT ? i->a : at;
        const struct dt_regex_instruction *first = &r->program[alternative];
        bool is_one = first->operation == DT_REGEX_SET ||
                      (first->operation == DT_REGEX_REPEAT && first->a <= 1);
        size_t next = alternative + 1;
        if (r->program[next].operation == DT_REGEX_JUMP)
            next = r->program[next].a;
        if (is_one && takes(r, first, ' ') && next + 1 == r->count)
            return true;
        if (i->operation != DT_REGEX_SPLIT)
            return false;
        at = i->b;
    }
}

struct dt_regex_words dt_regex_describe_words(const struct dt_regex *r)
{
    struct dt_regex_words words = {.separable = !r->empty};
    for (size_t at = 0; at < r->count; at++) {
        const struct dt_regex_instruction *i = &r->program[at];
        bool consumes = i->operation == DT_REGEX_SET || i->operation == DT_REGEX_REPEAT;
        bool asserts = !consumes && i->operation != DT_REGEX_MATCH &&
                       i->operation != DT_REGEX_SPLIT && i->operation != DT_REGEX_JUMP &&
                       i->operation != DT_REGEX_ATOMIC;
        if (asserts && !is_plain_assertion(r, at))
            words.separable = false;
        if (!words.separable)
            return words;
        for (uint32_t code = 0; code < 128; code++)
            words.takes[code] |= takes(r, i, code);
        if (consumes && takes_visible(r, i) && space_follows(r, at))
            words.separable = false;
    }
    words.takes_spaces = takes_any_space(r);
    return words;
}
