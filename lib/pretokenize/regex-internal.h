/* SPDX-License-Identifier: MIT */
/* The program of a regular expression, which regex-parse.c makes and regex.c runs. */
#ifndef DT_PRETOKENIZE_REGEX_INTERNAL_H
#define DT_PRETOKENIZE_REGEX_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pretokenize/character-set.h"
#include "pretokenize/regex.h"

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
    DT_REGEX_SAVE,      /* this offset goes to slot a */
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
    struct dt_character_set *word; /* \w; NULL without boundaries */
    bool first[256];               /* bytes that a match can start with */
    bool empty;                    /* the expression matches the empty text */
    uint32_t groups;               /* capturing ones, of Python's expressions */
};

static inline bool dt_regex_has(const struct dt_regex *r, uint32_t set, uint32_t code)
{
    return set & DT_REGEX_LITERAL ? code == (set ^ DT_REGEX_LITERAL)
                                  : dt_character_set_has(r->sets[set], code);
}

#define DT_REGEX_MAX_REPEAT 1000 /* in {n,m} */

enum dt_regex_node_kind { EMPTY, SET, SEQUENCE, CHOICE, REPEAT, ATOMIC, LOOK, ASSERTION, GROUP };

/* A node of the tree; children are a list through next. */
struct node {
    enum dt_regex_node_kind kind;
    uint32_t set;                      /* SET; GROUP: its number, from 1 */
    uint32_t min, max;                 /* REPEAT; LOOK back: of the body */
    bool lazy, possessive;             /* REPEAT */
    bool back, negative;               /* LOOK */
    enum dt_regex_operation operation; /* ASSERTION */
    struct node *child, *next;
};

struct parser {
    struct dt_regex *regex;
    const char *start, *p, *end;
    bool python, ignore_case, dot_all;
    uint32_t folded; /* the last character, for pairs that fold to one; 0: none */
    int depth;
    bool in_class;
    int sealed; /* bodies of assertions around what is compiled */
    size_t nodes;
    struct node **owned; /* all nodes */
    size_t owned_count, owned_capacity;
    struct dt_error *err;
};

int dt_regex_fail(struct parser *p, const char *what) DT_MUST_CHECK;
/* Fewest characters of a match. */
uint32_t dt_regex_minimum(const struct node *n);
int dt_regex_compile(struct parser *p, const struct node *root) DT_MUST_CHECK;
/* Fills r, which is all-zero. Errors say what is wrong and at which character. */
int dt_regex_parse(struct dt_regex *r, const char *expression, bool python,
                   struct dt_error *err) DT_MUST_CHECK;

/* dt_regex_find() with the offsets of groups: slots [2 * DT_REGEX_GROUPS], or NULL. advance: a
 * match at from is not empty. */
bool dt_regex_search(const struct dt_regex *r, const char *text, size_t size, size_t from,
                     bool advance, size_t *slots);

#endif
