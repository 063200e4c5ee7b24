/* SPDX-License-Identifier: MIT */
/*
 * The compiled form of a grammar, shared by the compiler (grammar.c), the checker
 * (grammar-check.c), and the generator and parser (grammar-text.c).
 */
#ifndef DT_SYNTH_GRAMMAR_INTERNAL_H
#define DT_SYNTH_GRAMMAR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "synth/grammar.h"

enum {
    DT_GRAMMAR_COLUMNS = 16, /* of a table, capitalised copies included */
    DT_GRAMMAR_TABLES = 64,
    DT_GRAMMAR_ROWS = 64,     /* of a table: a set of rows is a uint64_t */
    DT_GRAMMAR_VARIABLES = 32 /* a set of variables is a uint32_t */
};

struct dt_grammar_text {
    char *data;
    size_t size;
};

struct dt_grammar_item {
    enum { DT_ITEM_TEXT, DT_ITEM_RULE, DT_ITEM_BIND, DT_ITEM_USE } kind;
    int index;  /* of the rule or the variable */
    int column; /* of the variable's table */
    struct dt_grammar_text text;
};

struct dt_grammar_alternative {
    uint32_t weight;
    double log_probability;
    struct dt_grammar_item *items;
    int count, capacity;
};

struct dt_grammar_choice { /* a rule */
    char *name;
    uint32_t total; /* of the weights */
    struct dt_grammar_alternative *alternatives;
    int count, capacity;
};

struct dt_grammar_row {
    struct dt_grammar_text column[DT_GRAMMAR_COLUMNS];
};

struct dt_grammar_rows { /* a table */
    char *name;
    char *column[DT_GRAMMAR_COLUMNS];
    int columns;
    struct dt_grammar_row *rows;
    int count, capacity;
};

struct dt_grammar_variable {
    char *name;
    int table;
};

struct dt_grammar {
    struct dt_grammar_rows *tables;
    int table_count, table_capacity;
    struct dt_grammar_choice *rules;
    int rule_count, rule_capacity;
    struct dt_grammar_variable variables[DT_GRAMMAR_VARIABLES];
    int variable_count;
    double entropy;
};

/* Rows of the variable's table that are not bound to a variable in bound. */
int dt_grammar_free_rows(const struct dt_grammar *grammar, int variable, uint32_t bound);

/* Walks all derivations: checks that variables are bound once and before use, that tables have
 * enough rows and rules do not recur; computes the entropy. */
int dt_grammar_measure(struct dt_grammar *grammar, struct dt_error *err) DT_MUST_CHECK;

/* What remains to be written: items next .. end, then those of the frames above. */
struct dt_grammar_rest {
    const struct dt_grammar_item *next, *end;
    const struct dt_grammar_rest *up;
};

#endif
