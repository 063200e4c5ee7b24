/* SPDX-License-Identifier: MIT */
/* Compiles the tree of a regular expression into its program. */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "pretokenize/regex-internal.h"

#define MAX_PROGRAM 20000 /* instructions */
#define MAX_BACK    255   /* characters of a look-back */

/* --- lengths -----------------------------------------------------------------------------------
 */

/* The fewest and most characters of a match; DT_REGEX_NO_LIMIT: unlimited. */
static void measure(const struct node *n, uint32_t *min, uint32_t *max)
{
    uint32_t low, high;
    *min = *max = n->kind == SET;
    if (n->kind == ATOMIC || n->kind == GROUP) {
        measure(n->child, min, max);
    } else if (n->kind == REPEAT) {
        measure(n->child, &low, &high);
        *min = low * n->min < 0x10000 ? low * n->min : 0xffff;
        *max = high >= 0x10000 || n->max >= 0x10000 ? DT_REGEX_NO_LIMIT : high * n->max;
    } else if (n->kind == SEQUENCE) {
        for (const struct node *c = n->child; c; c = c->next) {
            measure(c, &low, &high);
            *min = *min + low < 0x10000 ? *min + low : 0xffff;
            *max = *max >= 0x10000 || high >= 0x10000 ? DT_REGEX_NO_LIMIT : *max + high;
        }
    } else if (n->kind == CHOICE) {
        *min = DT_REGEX_NO_LIMIT;
        for (const struct node *c = n->child; c; c = c->next) {
            measure(c, &low, &high);
            *min = low < *min ? low : *min;
            *max = high > *max ? high : *max;
        }
    }
}

uint32_t dt_regex_minimum(const struct node *n)
{
    uint32_t min, max;
    measure(n, &min, &max);
    return min;
}

/* --- compilation -------------------------------------------------------------------------------
 */

static size_t emit(struct parser *p, enum dt_regex_operation operation, uint32_t a, uint32_t b,
                   uint32_t c)
{
    struct dt_regex *r = p->regex;
    DT_GROW(r->program, r->count, r->capacity);
    r->program[r->count] = (struct dt_regex_instruction){operation, a, b, c};
    return r->count++;
}

int dt_regex_fail(struct parser *p, const char *what)
{
    return dt_fail(p->err, DT_EFORMAT, "%s at byte %zu of the regular expression %.200s", what,
                   (size_t)(p->p - p->start), p->start);
}

static int compile(struct parser *p, const struct node *n);

/* SPLIT to the next instruction, preferred unless lazy, and to a later one. */
static void aim(struct parser *p, size_t split, bool lazy)
{
    struct dt_regex_instruction *i = &p->regex->program[split];
    uint32_t next = (uint32_t)split + 1, end = (uint32_t)p->regex->count;
    i->a = lazy ? end : next;
    i->b = lazy ? next : end;
}

static int compile_copies(struct parser *p, const struct node *n)
{
    for (uint32_t i = 0; i < n->min; i++)
        DT_TRY(compile(p, n->child));
    if (n->max == DT_REGEX_NO_LIMIT) {
        size_t split = emit(p, DT_REGEX_SPLIT, 0, 0, 0);
        DT_TRY(compile(p, n->child));
        emit(p, DT_REGEX_JUMP, (uint32_t)split, 0, 0);
        aim(p, split, n->lazy);
        return 0;
    }
    size_t splits[DT_REGEX_MAX_REPEAT];
    for (uint32_t i = n->min; i < n->max; i++) {
        splits[i] = emit(p, DT_REGEX_SPLIT, 0, 0, 0);
        DT_TRY(compile(p, n->child));
    }
    for (uint32_t i = n->min; i < n->max; i++)
        aim(p, splits[i], n->lazy);
    return 0;
}

static int compile_body(struct parser *p, const struct node *n, enum dt_regex_operation operation,
                        uint32_t b, uint32_t c)
{
    size_t start = emit(p, operation, 0, b, c);
    p->sealed++;
    DT_TRY(compile(p, n));
    p->sealed--;
    emit(p, DT_REGEX_MATCH, 0, 0, 0);
    p->regex->program[start].a = (uint32_t)p->regex->count;
    return 0;
}

static int compile_repeat(struct parser *p, const struct node *n)
{
    if (n->possessive) {
        struct node greedy = *n;
        greedy.possessive = false;
        return compile_body(p, &greedy, DT_REGEX_ATOMIC, 0, 0);
    }
    if (n->child->kind == SET && !n->lazy) {
        emit(p, DT_REGEX_REPEAT, n->min, n->max, n->child->set);
        return 0;
    }
    return compile_copies(p, n);
}

static int compile_look(struct parser *p, const struct node *n)
{
    uint32_t min, max;
    if (!n->back)
        return compile_body(p, n->child, DT_REGEX_AHEAD, n->negative, 0);
    measure(n->child, &min, &max);
    if (max > MAX_BACK)
        return dt_regex_fail(p, "a look-back of unlimited length");
    return compile_body(p, n->child, DT_REGEX_BACK, n->negative, min << 16 | max);
}

static int compile_choice(struct parser *p, const struct node *n)
{
    size_t count = 0;
    for (const struct node *c = n->child; c; c = c->next)
        count++;
    size_t *jumps = dt_alloc(count, sizeof *jumps), made = 0;
    int rc = 0;
    for (const struct node *c = n->child; rc == 0 && c; c = c->next) {
        size_t split = c->next ? emit(p, DT_REGEX_SPLIT, 0, 0, 0) : 0;
        rc = compile(p, c);
        if (c->next == NULL)
            break;
        jumps[made++] = emit(p, DT_REGEX_JUMP, 0, 0, 0);
        aim(p, split, false);
    }
    for (size_t i = 0; i < made; i++)
        p->regex->program[jumps[i]].a = (uint32_t)p->regex->count;
    free(jumps);
    return rc;
}

static int compile_group(struct parser *p, const struct node *n)
{
    if (p->sealed > 0)
        return dt_regex_fail(p, "a capturing group in an assertion, or one that is not tried "
                                "again: use (?:...);");
    emit(p, DT_REGEX_SAVE, 2 * n->set, 0, 0);
    DT_TRY(compile(p, n->child));
    emit(p, DT_REGEX_SAVE, 2 * n->set + 1, 0, 0);
    return 0;
}

static int compile(struct parser *p, const struct node *n)
{
    if (p->regex->count > MAX_PROGRAM)
        return dt_regex_fail(p, "too many parts");
    switch (n->kind) {
    case EMPTY:
        break;
    case SET:
        emit(p, DT_REGEX_SET, n->set, 0, 0);
        break;
    case SEQUENCE:
        for (const struct node *c = n->child; c; c = c->next)
            DT_TRY(compile(p, c));
        break;
    case CHOICE:
        return compile_choice(p, n);
    case REPEAT:
        return compile_repeat(p, n);
    case ATOMIC:
        return compile_body(p, n->child, DT_REGEX_ATOMIC, 0, 0);
    case LOOK:
        return compile_look(p, n);
    case GROUP:
        return compile_group(p, n);
    case ASSERTION:
        emit(p, n->operation, n->negative, 0, 0);
        break;
    }
    return 0;
}

/* --- first bytes -------------------------------------------------------------------------------
 */

static void add_first_of_set(struct dt_regex *r, uint32_t set)
{
    for (uint32_t code = 0; code < 128; code++)
        r->first[code] |= dt_regex_has(r, set, code);
    bool more = set & DT_REGEX_LITERAL && (set ^ DT_REGEX_LITERAL) >= 128;
    for (size_t i = 16; !(set & DT_REGEX_LITERAL) && !more && i < DT_CHARACTER_SET_BYTES; i++)
        more = r->sets[set]->bits[i] != 0;
    if (more)
        memset(r->first + 128, 1, 128);
}

/* Adds the first bytes of n; true if n may be empty. */
static bool add_first(struct dt_regex *r, const struct node *n)
{
    bool empty = false;
    switch (n->kind) {
    case SET:
        add_first_of_set(r, n->set);
        return false;
    case SEQUENCE:
        for (const struct node *c = n->child; c; c = c->next)
            if (!add_first(r, c))
                return false;
        return true;
    case CHOICE:
        for (const struct node *c = n->child; c; c = c->next)
            empty |= add_first(r, c);
        return empty;
    case REPEAT:
        return add_first(r, n->child) || n->min == 0;
    case ATOMIC:
    case GROUP:
        return add_first(r, n->child);
    case EMPTY:
    case LOOK:
    case ASSERTION:
        return true;
    }
    return true;
}

int dt_regex_compile(struct parser *p, const struct node *root)
{
    DT_TRY(compile(p, root));
    emit(p, DT_REGEX_MATCH, 0, 0, 0);
    p->regex->empty = add_first(p->regex, root);
    return 0;
}
