/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "math/math.h"
#include "synth/grammar-internal.h"

/* --- tables ----------------------------------------------------------------------------------- */

static struct dt_grammar_text make_text(const char *data, size_t size)
{
    return (struct dt_grammar_text){dt_strndup(data, size), size};
}

static struct dt_grammar_text make_capitalised(struct dt_grammar_text text)
{
    struct dt_grammar_text copy = make_text(text.data, text.size);
    copy.data[0] = (char)toupper((unsigned char)copy.data[0]);
    return copy;
}

/* Splits "a/b/c" into at most capacity texts; returns their number, or -1. */
static int split_fields(const char *fields, struct dt_grammar_text *out, int capacity)
{
    int count = 0;
    for (const char *end;; fields = end + 1) {
        end = strchr(fields, '/');
        size_t size = end ? (size_t)(end - fields) : strlen(fields);
        if (size == 0 || count == capacity)
            return -1;
        out[count++] = make_text(fields, size);
        if (!end)
            return count;
    }
}

static int add_row(struct dt_grammar_rows *table, const char *fields, struct dt_error *err)
{
    DT_GROW(table->rows, table->count, table->capacity);
    struct dt_grammar_row *row = &table->rows[table->count++];
    memset(row, 0, sizeof *row);
    if (split_fields(fields, row->column, table->columns) != table->columns)
        return dt_fail(err, DT_EINVALID, "table '%s': row '%s' has not %d fields", table->name,
                       fields, table->columns);
    for (int c = 0; c < table->columns; c++)
        row->column[table->columns + c] = make_capitalised(row->column[c]);
    return 0;
}

static int add_table(struct dt_grammar *g, const struct dt_grammar_table *source,
                     struct dt_error *err)
{
    if (g->table_count == DT_GRAMMAR_TABLES)
        return dt_fail(err, DT_EINVALID, "more than %d tables", DT_GRAMMAR_TABLES);
    DT_GROW(g->tables, g->table_count, g->table_capacity);
    struct dt_grammar_rows *table = &g->tables[g->table_count++];
    memset(table, 0, sizeof *table);
    table->name = dt_strdup(source->name);
    struct dt_grammar_text columns[DT_GRAMMAR_COLUMNS / 2] = {{NULL, 0}};
    table->columns = split_fields(source->columns, columns, DT_GRAMMAR_COLUMNS / 2);
    for (int c = 0; c < DT_GRAMMAR_COLUMNS / 2; c++)
        table->column[c] = columns[c].data;
    if (table->columns < 0)
        return dt_fail(err, DT_EINVALID, "table '%s': bad columns '%s'", table->name,
                       source->columns);
    for (const char *const *row = source->rows; *row; row++)
        DT_TRY(add_row(table, *row, err));
    if (table->count > DT_GRAMMAR_ROWS)
        return dt_fail(err, DT_EINVALID, "table '%s' has more than %d rows", table->name,
                       DT_GRAMMAR_ROWS);
    return 0;
}

/* --- rules ------------------------------------------------------------------------------------ */

static bool equal(const char *name, const char *text, size_t size)
{
    return strlen(name) == size && memcmp(name, text, size) == 0;
}

static int find_table(const struct dt_grammar *g, const char *name, size_t size)
{
    for (int i = 0; i < g->table_count; i++)
        if (equal(g->tables[i].name, name, size))
            return i;
    return -1;
}

static int find_rule(const struct dt_grammar *g, const char *name, size_t size)
{
    for (int i = 0; i < g->rule_count; i++)
        if (equal(g->rules[i].name, name, size))
            return i;
    return -1;
}

static int find_variable(const struct dt_grammar *g, const char *name, size_t size)
{
    for (int i = 0; i < g->variable_count; i++)
        if (equal(g->variables[i].name, name, size))
            return i;
    return -1;
}

/* "he" finds the column, "He" its capitalised copy. */
static int find_column(const struct dt_grammar_rows *table, const char *name, size_t size)
{
    for (int c = 0; c < table->columns; c++) {
        const char *column = table->column[c];
        if (equal(column, name, size))
            return c;
        if (strlen(column) == size && name[0] == toupper((unsigned char)column[0]) &&
            memcmp(column + 1, name + 1, size - 1) == 0)
            return table->columns + c;
    }
    return -1;
}

static int declare_variable(struct dt_grammar *g, const char *name, size_t size, int table,
                            struct dt_error *err)
{
    int v = find_variable(g, name, size);
    if (v >= 0 && g->variables[v].table == table)
        return v;
    if (v >= 0)
        return dt_fail(err, DT_EINVALID, "variable '%.*s' is bound to two tables", (int)size, name);
    if (find_rule(g, name, size) >= 0)
        return dt_fail(err, DT_EINVALID, "variable '%.*s' has the name of a rule", (int)size, name);
    if (g->variable_count == DT_GRAMMAR_VARIABLES)
        return dt_fail(err, DT_EINVALID, "more than %d variables", DT_GRAMMAR_VARIABLES);
    g->variables[g->variable_count] = (struct dt_grammar_variable){dt_strndup(name, size), table};
    return g->variable_count++;
}

/* {hero=people.name} */
static int parse_bind(struct dt_grammar *g, const char *symbol, size_t size, const char *equals,
                      struct dt_grammar_item *item, struct dt_error *err)
{
    const char *end = symbol + size, *name = equals + 1;
    const char *dot = memchr(name, '.', (size_t)(end - name));
    int table = dot ? find_table(g, name, (size_t)(dot - name)) : -1;
    if (table < 0)
        return dt_fail(err, DT_EINVALID, "no table for '{%.*s}'", (int)size, symbol);
    item->kind = DT_ITEM_BIND;
    item->column = find_column(&g->tables[table], dot + 1, (size_t)(end - dot - 1));
    if (item->column < 0)
        return dt_fail(err, DT_EINVALID, "no column for '{%.*s}'", (int)size, symbol);
    item->index = declare_variable(g, symbol, (size_t)(equals - symbol), table, err);
    return item->index < 0 ? item->index : 0;
}

/* {hero.he} or {hero}: the variable may be declared further down, so the name
 * is kept and resolved by resolve_uses. */
static int parse_symbol(struct dt_grammar *g, const char *symbol, size_t size,
                        struct dt_grammar_item *item, struct dt_error *err)
{
    const char *equals = memchr(symbol, '=', size);
    if (equals)
        return parse_bind(g, symbol, size, equals, item, err);
    item->index = find_rule(g, symbol, size);
    item->kind = item->index >= 0 ? DT_ITEM_RULE : DT_ITEM_USE;
    if (item->kind == DT_ITEM_USE)
        item->text = make_text(symbol, size);
    return 0;
}

static int resolve_use(const struct dt_grammar *g, struct dt_grammar_item *item,
                       struct dt_error *err)
{
    const char *name = item->text.data, *dot = strchr(name, '.');
    item->index = find_variable(g, name, dot ? (size_t)(dot - name) : item->text.size);
    if (item->index < 0)
        return dt_fail(err, DT_EINVALID, "no rule or variable '{%s}'", name);
    if (dot)
        item->column =
            find_column(&g->tables[g->variables[item->index].table], dot + 1, strlen(dot + 1));
    if (item->column < 0)
        return dt_fail(err, DT_EINVALID, "no column for '{%s}'", name);
    return 0;
}

static int resolve_uses(struct dt_grammar *g, struct dt_error *err)
{
    for (int r = 0; r < g->rule_count; r++)
        for (int a = 0; a < g->rules[r].count; a++) {
            struct dt_grammar_alternative *alternative = &g->rules[r].alternatives[a];
            for (int i = 0; i < alternative->count; i++)
                if (alternative->items[i].kind == DT_ITEM_USE)
                    DT_TRY(resolve_use(g, &alternative->items[i], err));
        }
    return 0;
}

static struct dt_grammar_item *add_item(struct dt_grammar_alternative *alternative)
{
    DT_GROW(alternative->items, alternative->count, alternative->capacity);
    struct dt_grammar_item *item = &alternative->items[alternative->count++];
    memset(item, 0, sizeof *item);
    return item;
}

static int parse_alternative(struct dt_grammar *g, const char *source,
                             struct dt_grammar_alternative *out, struct dt_error *err)
{
    char *after;
    unsigned long weight = strtoul(source, &after, 10);
    bool weighted = after != source && *after == '*';
    out->weight = weighted ? (uint32_t)weight : 1;
    if (weighted && (weight == 0 || weight > 1000000))
        return dt_fail(err, DT_EINVALID, "bad weight in '%s'", source);
    for (const char *p = weighted ? after + 1 : source; *p;) {
        struct dt_grammar_item *item = add_item(out);
        if (*p != '{') {
            size_t size = strcspn(p, "{");
            item->text = make_text(p, size);
            p += size;
            continue;
        }
        const char *end = strchr(p, '}');
        if (!end)
            return dt_fail(err, DT_EINVALID, "no '}' in '%s'", source);
        DT_TRY(parse_symbol(g, p + 1, (size_t)(end - p - 1), item, err));
        p = end + 1;
    }
    return 0;
}

static int parse_rule(struct dt_grammar *g, struct dt_grammar_choice *rule,
                      const char *const *alternatives, struct dt_error *err)
{
    for (; *alternatives; alternatives++) {
        DT_GROW(rule->alternatives, rule->count, rule->capacity);
        struct dt_grammar_alternative *out = &rule->alternatives[rule->count++];
        memset(out, 0, sizeof *out);
        if (parse_alternative(g, *alternatives, out, err) < 0)
            return dt_fail_context(err, "rule '%s'", rule->name);
        rule->total += out->weight;
    }
    if (rule->count == 0)
        return dt_fail(err, DT_EINVALID, "rule '%s' needs an alternative", rule->name);
    for (int a = 0; a < rule->count; a++)
        rule->alternatives[a].log_probability =
            dt_math_log((double)rule->alternatives[a].weight / (double)rule->total);
    return 0;
}

static int add_rules(struct dt_grammar *g, const struct dt_grammar_rule *rules,
                     struct dt_error *err)
{
    for (const struct dt_grammar_rule *r = rules; r->name; r++) {
        DT_GROW(g->rules, g->rule_count, g->rule_capacity);
        g->rules[g->rule_count++] = (struct dt_grammar_choice){.name = dt_strdup(r->name)};
    }
    for (int r = 0; r < g->rule_count; r++)
        DT_TRY(parse_rule(g, &g->rules[r], rules[r].alternatives, err));
    return g->rule_count > 0 ? 0 : dt_fail(err, DT_EINVALID, "a grammar without rules");
}

static int compile(struct dt_grammar *g, const struct dt_grammar_table *tables,
                   const struct dt_grammar_rule *rules, struct dt_error *err)
{
    for (; tables->name; tables++)
        DT_TRY(add_table(g, tables, err));
    DT_TRY(add_rules(g, rules, err));
    DT_TRY(resolve_uses(g, err));
    return dt_grammar_measure(g, err);
}

int dt_grammar_new(struct dt_grammar **grammar, const struct dt_grammar_table *tables,
                   const struct dt_grammar_rule *rules, struct dt_error *err)
{
    struct dt_grammar *g = dt_alloc(1, sizeof *g);
    int rc = compile(g, tables, rules, err);
    if (rc < 0) {
        dt_grammar_free(g);
        g = NULL;
    }
    *grammar = g;
    return rc;
}

/* --- release ---------------------------------------------------------------------------------- */

static void free_table(struct dt_grammar_rows *table)
{
    for (int r = 0; r < table->count; r++)
        for (int c = 0; c < DT_GRAMMAR_COLUMNS; c++)
            free(table->rows[r].column[c].data);
    for (int c = 0; c < DT_GRAMMAR_COLUMNS; c++)
        free(table->column[c]);
    free(table->rows);
    free(table->name);
}

static void free_rule(struct dt_grammar_choice *rule)
{
    for (int a = 0; a < rule->count; a++) {
        for (int i = 0; i < rule->alternatives[a].count; i++)
            free(rule->alternatives[a].items[i].text.data);
        free(rule->alternatives[a].items);
    }
    free(rule->alternatives);
    free(rule->name);
}

void dt_grammar_free(struct dt_grammar *g)
{
    if (!g)
        return;
    for (int t = 0; t < g->table_count; t++)
        free_table(&g->tables[t]);
    for (int r = 0; r < g->rule_count; r++)
        free_rule(&g->rules[r]);
    for (int v = 0; v < g->variable_count; v++)
        free(g->variables[v].name);
    free(g->tables);
    free(g->rules);
    free(g);
}
