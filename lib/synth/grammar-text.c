/* SPDX-License-Identifier: MIT */
/* Generation (choices to text) and parsing (text to choices). */
#include <string.h>

#include "math/math.h"
#include "synth/grammar-internal.h"

struct writer {
    const struct dt_grammar *grammar;
    struct dt_rng *rng;
    struct dt_buffer *text;
    double logprob;
    uint32_t bound;
    uint64_t *used; /* rows of each table */
    int row[DT_GRAMMAR_VARIABLES];
};

static void write_text(struct writer *w, const struct dt_grammar_text *text)
{
    dt_buffer_append(w->text, text->data, text->size);
}

static const struct dt_grammar_alternative *choose(struct writer *w, int index)
{
    const struct dt_grammar_choice *rule = &w->grammar->rules[index];
    const struct dt_grammar_alternative *alternative = rule->alternatives;
    if (rule->count == 1)
        return alternative;
    uint32_t at = dt_rng_below(w->rng, rule->total);
    for (; at >= alternative->weight; alternative++)
        at -= alternative->weight;
    return alternative;
}

static const struct dt_grammar_text *bind(struct writer *w, const struct dt_grammar_item *item)
{
    int table = w->grammar->variables[item->index].table;
    int left = dt_grammar_free_rows(w->grammar, item->index, w->bound), row = 0;
    uint32_t at = dt_rng_below(w->rng, (uint32_t)left);
    while (at > 0 || w->used[table] >> row & 1)
        at -= !(w->used[table] >> row++ & 1);
    w->used[table] |= (uint64_t)1 << row;
    w->bound |= (uint32_t)1 << item->index;
    w->row[item->index] = row;
    w->logprob -= dt_math_log(left);
    return &w->grammar->tables[table].rows[row].column[item->column];
}

static const struct dt_grammar_text *value(const struct dt_grammar *g, const int *row,
                                           const struct dt_grammar_item *item)
{
    const struct dt_grammar_rows *table = &g->tables[g->variables[item->index].table];
    return &table->rows[row[item->index]].column[item->column];
}

static void write_rule(struct writer *w, int index)
{
    const struct dt_grammar_alternative *alternative = choose(w, index);
    w->logprob += alternative->log_probability;
    for (int i = 0; i < alternative->count; i++) {
        const struct dt_grammar_item *item = &alternative->items[i];
        switch (item->kind) {
        case DT_ITEM_TEXT:
            write_text(w, &item->text);
            break;
        case DT_ITEM_RULE:
            write_rule(w, item->index);
            break;
        case DT_ITEM_BIND:
            write_text(w, bind(w, item));
            break;
        case DT_ITEM_USE:
            write_text(w, value(w->grammar, w->row, item));
            break;
        }
    }
}

double dt_grammar_generate(const struct dt_grammar *grammar, struct dt_rng *rng,
                           struct dt_buffer *text)
{
    uint64_t used[DT_GRAMMAR_TABLES] = {0};
    struct writer w = {.grammar = grammar, .rng = rng, .text = text, .used = used};
    write_rule(&w, 0);
    return w.logprob;
}

/* --- parsing: all derivations are tried and counted ------------------------ */

struct reader {
    const struct dt_grammar *grammar;
    const char *text;
    size_t size;
    long found;
    double logprob;
    uint32_t bound;
    int row[DT_GRAMMAR_VARIABLES];
};

static void read_rest(struct reader *r, const struct dt_grammar_rest *rest, size_t at,
                      double logprob);

static bool starts_with(const struct reader *r, size_t at, const struct dt_grammar_text *text)
{
    return r->size - at >= text->size && memcmp(r->text + at, text->data, text->size) == 0;
}

static bool row_is_free(const struct reader *r, int variable, int row)
{
    for (int v = 0; v < r->grammar->variable_count; v++)
        if (r->bound >> v & 1 && r->row[v] == row &&
            r->grammar->variables[v].table == r->grammar->variables[variable].table)
            return false;
    return true;
}

static void read_bind(struct reader *r, const struct dt_grammar_item *item,
                      const struct dt_grammar_rest *rest, size_t at, double logprob)
{
    const struct dt_grammar_rows *table =
        &r->grammar->tables[r->grammar->variables[item->index].table];
    logprob -= dt_math_log(dt_grammar_free_rows(r->grammar, item->index, r->bound));
    for (int row = 0; row < table->count; row++) {
        const struct dt_grammar_text *text = &table->rows[row].column[item->column];
        if (!starts_with(r, at, text) || !row_is_free(r, item->index, row))
            continue;
        r->bound |= (uint32_t)1 << item->index;
        r->row[item->index] = row;
        read_rest(r, rest, at + text->size, logprob);
        r->bound &= ~((uint32_t)1 << item->index);
    }
}

static void read_rule(struct reader *r, int index, const struct dt_grammar_rest *rest, size_t at,
                      double logprob)
{
    const struct dt_grammar_choice *rule = &r->grammar->rules[index];
    for (int a = 0; a < rule->count; a++) {
        const struct dt_grammar_alternative *alternative = &rule->alternatives[a];
        struct dt_grammar_rest next = {alternative->items, alternative->items + alternative->count,
                                       rest};
        read_rest(r, &next, at, logprob + alternative->log_probability);
    }
}

static void read_rest(struct reader *r, const struct dt_grammar_rest *rest, size_t at,
                      double logprob)
{
    while (rest && rest->next == rest->end)
        rest = rest->up;
    if (!rest) {
        if (at == r->size)
            r->logprob =
                r->found++ ? dt_math_log(dt_math_exp(r->logprob) + dt_math_exp(logprob)) : logprob;
        return;
    }
    const struct dt_grammar_item *item = rest->next;
    struct dt_grammar_rest after = {item + 1, rest->end, rest->up};
    const struct dt_grammar_text *text = &item->text;
    switch (item->kind) {
    case DT_ITEM_RULE:
        read_rule(r, item->index, &after, at, logprob);
        return;
    case DT_ITEM_BIND:
        read_bind(r, item, &after, at, logprob);
        return;
    case DT_ITEM_USE:
        text = value(r->grammar, r->row, item);
        break;
    case DT_ITEM_TEXT:
        break;
    }
    if (starts_with(r, at, text))
        read_rest(r, &after, at + text->size, logprob);
}

long dt_grammar_parse(const struct dt_grammar *grammar, const char *text, size_t size,
                      double *logprob)
{
    struct reader r = {.grammar = grammar, .text = text, .size = size};
    struct dt_grammar_item start = {.kind = DT_ITEM_RULE};
    struct dt_grammar_rest rest = {&start, &start + 1, NULL};
    read_rest(&r, &rest, 0, 0);
    *logprob = r.logprob;
    return r.found;
}
