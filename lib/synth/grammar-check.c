/* SPDX-License-Identifier: MIT */
/* Properties of a grammar over all of its texts: entropy and unambiguity. */
#include <stdlib.h>
#include <string.h>

#include "math/math.h"
#include "synth/grammar-internal.h"

int dt_grammar_free_rows(const struct dt_grammar *g, int variable, uint32_t bound)
{
    int table = g->variables[variable].table, left = g->tables[table].count;
    for (int v = 0; v < g->variable_count; v++)
        left -= bound >> v & 1 && g->variables[v].table == table;
    return left;
}

double dt_grammar_entropy(const struct dt_grammar *grammar)
{
    return grammar->entropy;
}

/* --- the entropy ------------------------------------------------------------------------------ */

/* How many rows are free depends on the variables bound so far and on nothing
 * else, so a distribution over sets of bound variables is all the state. */
struct states {
    struct state {
        uint32_t bound;
        double probability;
    } * items;
    int count, capacity;
};

struct measure {
    struct dt_grammar *grammar;
    struct dt_error *err;
    int depth;
};

static void add_state(struct states *s, uint32_t bound, double probability)
{
    for (int i = 0; i < s->count; i++)
        if (s->items[i].bound == bound) {
            s->items[i].probability += probability;
            return;
        }
    DT_GROW(s->items, s->count, s->capacity);
    s->items[s->count++] = (struct state){bound, probability};
}

static int measure_variable(struct measure *m, const struct dt_grammar_item *item, struct states *s)
{
    const struct dt_grammar_variable *variable = &m->grammar->variables[item->index];
    uint32_t bit = (uint32_t)1 << item->index;
    for (int i = 0; i < s->count; i++) {
        struct state *state = &s->items[i];
        bool bound = state->bound & bit;
        if (bound != (item->kind == DT_ITEM_USE))
            return dt_fail(m->err, DT_EINVALID, "variable '%s' is %s", variable->name,
                           bound ? "bound twice" : "used before it is bound");
        if (item->kind == DT_ITEM_USE)
            continue;
        int left = dt_grammar_free_rows(m->grammar, item->index, state->bound);
        if (left < 1)
            return dt_fail(m->err, DT_EINVALID, "table '%s' has too few rows for '%s'",
                           m->grammar->tables[variable->table].name, variable->name);
        m->grammar->entropy += state->probability * dt_math_log(left);
        state->bound |= bit;
    }
    return 0;
}

static int measure_rule(struct measure *m, int index, struct states *s);

static int measure_alternative(struct measure *m, const struct dt_grammar_alternative *alternative,
                               struct states *s)
{
    for (int i = 0; i < alternative->count; i++) {
        const struct dt_grammar_item *item = &alternative->items[i];
        if (item->kind == DT_ITEM_RULE)
            DT_TRY(measure_rule(m, item->index, s));
        else if (item->kind != DT_ITEM_TEXT)
            DT_TRY(measure_variable(m, item, s));
    }
    return 0;
}

/* Adds the entropy of the rule's choice and maps the states before the rule to those after it. */
static int measure_alternatives(struct measure *m, const struct dt_grammar_choice *rule,
                                const struct states *before, struct states *after)
{
    int rc = 0;
    for (int a = 0; a < rule->count && rc == 0; a++) {
        const struct dt_grammar_alternative *alternative = &rule->alternatives[a];
        struct states s = {NULL, 0, 0};
        for (int i = 0; i < before->count; i++) {
            double p = before->items[i].probability * dt_math_exp(alternative->log_probability);
            m->grammar->entropy -= p * alternative->log_probability;
            add_state(&s, before->items[i].bound, p);
        }
        rc = measure_alternative(m, alternative, &s);
        for (int i = 0; i < s.count; i++)
            add_state(after, s.items[i].bound, s.items[i].probability);
        free(s.items);
    }
    return rc;
}

static int measure_rule(struct measure *m, int index, struct states *s)
{
    const struct dt_grammar_choice *rule = &m->grammar->rules[index];
    if (m->depth > m->grammar->rule_count)
        return dt_fail(m->err, DT_EINVALID, "rule '%s' recurs", rule->name);
    struct states after = {NULL, 0, 0};
    m->depth++;
    int rc = measure_alternatives(m, rule, s, &after);
    m->depth--;
    free(s->items);
    *s = after;
    return rc;
}

int dt_grammar_measure(struct dt_grammar *grammar, struct dt_error *err)
{
    struct measure m = {grammar, err, 0};
    struct states s = {NULL, 0, 0};
    add_state(&s, 0, 1);
    int rc = measure_rule(&m, 0, &s);
    free(s.items);
    return rc;
}

/* --- unambiguity ------------------------------------------------------------------------------ */

/*
 * Two remainders of a text "part" if each text of one differs from each text of the other at some
 * position, or one of them ends there. If at each choice the remainders under any two alternatives
 * part, then two different derivations part at the first choice where they differ: equal texts have
 * equal derivations. Remainders are expanded choice by choice until they part; a variable may be
 * any row of its table, which only makes the test stricter.
 */
struct side {
    struct dt_grammar_rest rest;
    struct dt_grammar_text pending; /* text already expanded, to be compared first */
};

static bool part(const struct dt_grammar *g, struct side a, struct side b);

/* Moves to the next item; false at the end of the text. */
static bool settle(struct side *s)
{
    while (s->rest.next == s->rest.end) {
        if (!s->rest.up)
            return false;
        s->rest = *s->rest.up;
    }
    return true;
}

/* Expands the first item of side a in every way. */
static bool part_expanded(const struct dt_grammar *g, struct side a, struct side b)
{
    const struct dt_grammar_item *item = a.rest.next++;
    const struct dt_grammar_rest after = a.rest;
    if (item->kind == DT_ITEM_RULE) {
        const struct dt_grammar_choice *rule = &g->rules[item->index];
        for (int i = 0; i < rule->count; i++) {
            const struct dt_grammar_alternative *alternative = &rule->alternatives[i];
            a.rest = (struct dt_grammar_rest){alternative->items,
                                              alternative->items + alternative->count, &after};
            if (!part(g, a, b))
                return false;
        }
        return true;
    }
    const struct dt_grammar_rows *table = &g->tables[g->variables[item->index].table];
    for (int row = 0; row < table->count; row++) {
        a.pending = table->rows[row].column[item->column];
        if (!part(g, a, b))
            return false;
    }
    return true;
}

static bool take_text(struct side *s)
{
    if (s->pending.size == 0 && s->rest.next->kind == DT_ITEM_TEXT)
        s->pending = (s->rest.next++)->text;
    return s->pending.size > 0;
}

static void skip(struct dt_grammar_text *text, size_t size)
{
    text->data += size;
    text->size -= size;
}

static bool part(const struct dt_grammar *g, struct side a, struct side b)
{
    for (;;) {
        bool a_goes_on = a.pending.size > 0 || settle(&a);
        bool b_goes_on = b.pending.size > 0 || settle(&b);
        if (!a_goes_on && !b_goes_on)
            return false;
        if (!b_goes_on)
            return take_text(&a) || part_expanded(g, a, b);
        if (!a_goes_on)
            return take_text(&b) || part_expanded(g, b, a);
        if (!take_text(&a))
            return part_expanded(g, a, b);
        if (!take_text(&b))
            return part_expanded(g, b, a);
        size_t size = a.pending.size < b.pending.size ? a.pending.size : b.pending.size;
        if (memcmp(a.pending.data, b.pending.data, size) != 0)
            return true;
        skip(&a.pending, size);
        skip(&b.pending, size);
    }
}

static int check_rule(const struct dt_grammar *g, int index, const struct dt_grammar_rest *rest,
                      struct dt_error *err);

/* Draws of two different rows must part as well. */
static int check_bind(const struct dt_grammar *g, const struct dt_grammar_item *item,
                      const struct dt_grammar_rest *rest, struct dt_error *err)
{
    const struct dt_grammar_rows *table = &g->tables[g->variables[item->index].table];
    for (int i = 0; i < table->count; i++)
        for (int j = i + 1; j < table->count; j++) {
            struct side a = {*rest, table->rows[i].column[item->column]};
            struct side b = {*rest, table->rows[j].column[item->column]};
            if (!part(g, a, b))
                return dt_fail(err, DT_EINVALID, "rows %d and %d of table '%s' may be confused",
                               i + 1, j + 1, table->name);
        }
    return 0;
}

static int check_alternative(const struct dt_grammar *g, struct dt_grammar_rest at,
                             struct dt_error *err)
{
    while (at.next != at.end) {
        const struct dt_grammar_item *item = at.next++;
        if (item->kind == DT_ITEM_RULE)
            DT_TRY(check_rule(g, item->index, &at, err));
        else if (item->kind == DT_ITEM_BIND)
            DT_TRY(check_bind(g, item, &at, err));
    }
    return 0;
}

static int check_rule(const struct dt_grammar *g, int index, const struct dt_grammar_rest *rest,
                      struct dt_error *err)
{
    const struct dt_grammar_choice *rule = &g->rules[index];
    for (int i = 0; i < rule->count; i++) {
        const struct dt_grammar_alternative *x = &rule->alternatives[i];
        struct side a = {{x->items, x->items + x->count, rest}, {NULL, 0}};
        for (int j = i + 1; j < rule->count; j++) {
            const struct dt_grammar_alternative *y = &rule->alternatives[j];
            struct side b = {{y->items, y->items + y->count, rest}, {NULL, 0}};
            if (!part(g, a, b))
                return dt_fail(err, DT_EINVALID,
                               "alternatives %d and %d of rule '%s' may be confused", i + 1, j + 1,
                               rule->name);
        }
        if (check_alternative(g, a.rest, err) < 0)
            return dt_fail_context(err, "in '%s'", rule->name);
    }
    return 0;
}

int dt_grammar_check(const struct dt_grammar *grammar, struct dt_error *err)
{
    const struct dt_grammar_rest end = {NULL, NULL, NULL};
    return check_rule(grammar, 0, &end, err);
}
