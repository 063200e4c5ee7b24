/* SPDX-License-Identifier: MIT */
/* The program of a regular expression, which regex-parse.c makes and regex.c runs. */
#ifndef DT_PRETOKENIZE_REGEX_INTERNAL_H
#define DT_PRETOKENIZE_REGEX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pretokenize/character-set.h"

#define DT_REGEX_NO_LIMIT UINT32_MAX
#define DT_REGEX_LITERAL  0x80000000u /* | a code point, in place of the index of a set */

enum dt_regex_operation {
    DT_REGEX_MATCH,  /* the end of the program or of the body of an assertion */
    DT_REGEX_SET,    /* a character of set a */
    DT_REGEX_REPEAT, /* a to b characters of set c, greedy */
    DT_REGEX_SPLIT,  /* goes on at a; if that fails, at b */
    DT_REGEX_JUMP,   /* goes on at a */
    DT_REGEX_AHEAD,  /* the body from the next instruction matches here, or with b does not */
    DT_REGEX_BACK,   /* the same, ending here, after c >> 16 to c & 0xffff characters */
    DT_REGEX_ATOMIC, /* the body matches; alternatives in it are not tried again */
    DT_REGEX_LINE_START,
    DT_REGEX_LINE_END,
    DT_REGEX_TEXT_START,
    DT_REGEX_TEXT_END,
    DT_REGEX_LAST_LINE, /* \Z: the end, or before a newline there */
    DT_REGEX_BOUNDARY,  /* with a: not at a boundary of words */
};

/* Bodies start at the next instruction, and the expression goes on at a. */
struct dt_regex_instruction {
    enum dt_regex_operation operation;
    uint32_t a, b, c;
};

struct dt_regex {
    struct dt_regex_instruction *program;
    size_t count, capacity;
    struct dt_character_set **sets;
    size_t set_count, set_capacity;
    struct dt_character_set *word; /* \w, for boundaries */
    bool first[256];               /* bytes that a match can start with */
    bool empty;                    /* the expression matches the empty text */
};

static inline bool dt_regex_has(const struct dt_regex *r, uint32_t set, uint32_t code)
{
    return set & DT_REGEX_LITERAL ? code == (set ^ DT_REGEX_LITERAL)
                                  : dt_character_set_has(r->sets[set], code);
}

/* Fills r, which is all-zero. Errors say what is wrong and at which character. */
int dt_regex_parse(struct dt_regex *r, const char *expression, struct dt_error *err) DT_MUST_CHECK;

#endif
