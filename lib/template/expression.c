/* SPDX-License-Identifier: MIT */
/* Expressions: from "a if b" down to names and constants, each op at its level. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"

#define MOST_DEPTH 200

struct token *dt_template_peek(struct parser *p)
{
    return &p->tokens.items[p->at];
}

int dt_template_parse_error(struct parser *p, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return dt_fail(p->err, DT_EFORMAT, "%s, line %ld: %s", p->subject, dt_template_peek(p)->line,
                   text);
}

static const char *token_text(const struct token *t)
{
    switch (t->kind) {
    case TOKEN_END:
        return "the end of the template";
    case TOKEN_EXPRESSION_END:
        return "}}";
    case TOKEN_BLOCK_END:
        return "%}";
    default:
        return t->text;
    }
}

bool dt_template_at(struct parser *p, enum token_kind kind, const char *text)
{
    const struct token *t = dt_template_peek(p);
    return t->kind == kind && (text == NULL || strcmp(t->text, text) == 0);
}

bool dt_template_accept(struct parser *p, enum token_kind kind, const char *text)
{
    bool there = dt_template_at(p, kind, text);
    p->at += there;
    return there;
}

int dt_template_expect(struct parser *p, enum token_kind kind, const char *text)
{
    if (dt_template_accept(p, kind, text))
        return 0;
    return dt_template_parse_error(p, "expected '%s', found '%s'",
                                   text                           ? text
                                   : kind == TOKEN_BLOCK_END      ? "%}"
                                   : kind == TOKEN_EXPRESSION_END ? "}}"
                                                                  : "a name",
                                   token_text(dt_template_peek(p)));
}

struct node *dt_template_node(struct parser *p, enum node_kind kind)
{
    struct node *node = dt_template_alloc(p->arena, sizeof *node);
    node->kind = kind;
    node->line = dt_template_peek(p)->line;
    return node;
}

void dt_template_add_node(struct parser *p, struct nodes *nodes, struct node *node)
{
    if (nodes->count == nodes->capacity) {
        size_t capacity = nodes->capacity ? 2 * nodes->capacity : 4;
        struct node **items = dt_template_alloc(p->arena, capacity * sizeof *items);
        if (nodes->count > 0)
            memcpy(items, nodes->items, nodes->count * sizeof *items);
        nodes->items = items;
        nodes->capacity = capacity;
    }
    nodes->items[nodes->count++] = node;
}

static struct value token_value(const struct token *t)
{
    return (struct value){.kind = VALUE_STRING, .text = t->text, .size = t->size};
}

static int parse(struct parser *p, struct node **node)
{
    return dt_template_parse_expression(p, false, true, node);
}

/* --- constants and names ----------------------------------------------------------------------*/

static int parse_number(struct parser *p, struct node **node)
{
    const struct token *t = &p->tokens.items[p->at];
    char digits[64];
    size_t count = 0;
    for (size_t i = 0; i < t->size && count < sizeof digits - 1; i++)
        if (t->text[i] != '_')
            digits[count++] = t->text[i];
    digits[count] = 0;
    errno = 0;
    *node = dt_template_node(p, NODE_CONSTANT);
    (*node)->value = t->kind == TOKEN_INT ? dt_template_int(strtoll(digits, NULL, 10))
                                          : dt_template_float(strtod(digits, NULL));
    if (errno || count == sizeof digits - 1)
        return dt_template_parse_error(p, "the number %s is too large", digits);
    p->at++;
    return 0;
}

/* "a" "b" is one string. */
static void parse_string(struct parser *p, struct node **node)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    *node = dt_template_node(p, NODE_CONSTANT);
    while (dt_template_at(p, TOKEN_STRING, NULL)) {
        dt_buffer_append(&b, dt_template_peek(p)->text, dt_template_peek(p)->size);
        p->at++;
    }
    (*node)->value = (struct value){
        .kind = VALUE_STRING, .text = dt_template_copy(p->arena, b.data, b.size), .size = b.size};
    dt_buffer_release(&b);
}

static int parse_name(struct parser *p, struct node **node)
{
    static const struct {
        const char *name;
        enum value_kind kind;
        bool boolean;
    } constants[] = {{"true", VALUE_BOOL, true},   {"True", VALUE_BOOL, true},
                     {"false", VALUE_BOOL, false}, {"False", VALUE_BOOL, false},
                     {"none", VALUE_NONE, false},  {"None", VALUE_NONE, false}};
    const struct token *t = dt_template_peek(p);
    *node = dt_template_node(p, NODE_NAME);
    (*node)->value = token_value(t);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (strcmp(t->text, constants[i].name) == 0) {
            (*node)->kind = NODE_CONSTANT;
            (*node)->value =
                (struct value){.kind = constants[i].kind, .boolean = constants[i].boolean};
        }
    p->at++;
    return 0;
}

/* Elements up to the bracket `close`; a dictionary has a ":" in each. */
static int parse_elements(struct parser *p, const char *close, struct node *node)
{
    while (!dt_template_at(p, TOKEN_OPERATOR, close)) {
        struct node *item;
        if (node->items.count > 0)
            DT_TRY(dt_template_expect(p, TOKEN_OPERATOR, ","));
        if (dt_template_at(p, TOKEN_OPERATOR, close))
            break;
        DT_TRY(parse(p, &item));
        dt_template_add_node(p, &node->items, item);
        if (node->kind != NODE_DICT)
            continue;
        DT_TRY(dt_template_expect(p, TOKEN_OPERATOR, ":"));
        DT_TRY(parse(p, &item));
        dt_template_add_node(p, &node->items, item);
    }
    return dt_template_expect(p, TOKEN_OPERATOR, close);
}

static int parse_brackets(struct parser *p, struct node **node)
{
    if (dt_template_accept(p, TOKEN_OPERATOR, "(")) {
        if (dt_template_at(p, TOKEN_OPERATOR, ")")) {
            *node = dt_template_node(p, NODE_LIST);
            (*node)->flag = true;
        } else {
            DT_TRY(dt_template_parse_expression(p, true, true, node));
        }
        return dt_template_expect(p, TOKEN_OPERATOR, ")");
    }
    bool list = dt_template_accept(p, TOKEN_OPERATOR, "[");
    *node = dt_template_node(p, list ? NODE_LIST : NODE_DICT);
    if (!list)
        DT_TRY(dt_template_expect(p, TOKEN_OPERATOR, "{"));
    return parse_elements(p, list ? "]" : "}", *node);
}

static int parse_primary(struct parser *p, struct node **node)
{
    switch (dt_template_peek(p)->kind) {
    case TOKEN_NAME:
        return parse_name(p, node);
    case TOKEN_STRING:
        parse_string(p, node);
        return 0;
    case TOKEN_INT:
    case TOKEN_FLOAT:
        return parse_number(p, node);
    default:
        if (!dt_template_at(p, TOKEN_OPERATOR, "(") && !dt_template_at(p, TOKEN_OPERATOR, "[") &&
            !dt_template_at(p, TOKEN_OPERATOR, "{"))
            return dt_template_parse_error(p, "expected an expression, found '%s'",
                                           token_text(dt_template_peek(p)));
        return parse_brackets(p, node);
    }
}

/* --- what follows a primary -------------------------------------------------------------------*/

/* Arguments after "(": positional ones, then NAME=VALUE. */
static int parse_arguments(struct parser *p, struct node *node)
{
    size_t capacity = 0;
    while (!dt_template_at(p, TOKEN_OPERATOR, ")")) {
        struct node *item;
        if (node->items.count > 0)
            DT_TRY(dt_template_expect(p, TOKEN_OPERATOR, ","));
        if (dt_template_at(p, TOKEN_OPERATOR, ")"))
            break;
        if (dt_template_at(p, TOKEN_OPERATOR, "*") || dt_template_at(p, TOKEN_OPERATOR, "**"))
            return dt_template_parse_error(p, "*arguments and **arguments are not supported");
        const struct token *next = &p->tokens.items[p->at + 1];
        bool named = dt_template_at(p, TOKEN_NAME, NULL) && next->kind == TOKEN_OPERATOR &&
                     strcmp(next->text, "=") == 0;
        if (!named && node->name_count > 0)
            return dt_template_parse_error(p, "a positional argument follows a named one");
        if (named) {
            if (node->name_count == capacity) {
                const char **old = node->names;
                capacity = capacity ? 2 * capacity : 4;
                node->names = dt_template_alloc(p->arena, capacity * sizeof *node->names);
                if (node->name_count > 0)
                    memcpy(node->names, old, node->name_count * sizeof *old);
            }
            node->names[node->name_count++] = dt_template_peek(p)->text;
            p->at += 2;
        }
        DT_TRY(parse(p, &item));
        dt_template_add_node(p, &node->items, item);
    }
    return dt_template_expect(p, TOKEN_OPERATOR, ")");
}

static int parse_subscript(struct parser *p, struct node **node)
{
    struct node *of = *node, *parts[3] = {NULL};
    int colons = 0;
    *node = dt_template_node(p, NODE_SLICE);
    (*node)->first = of;
    while (!dt_template_at(p, TOKEN_OPERATOR, "]")) {
        if (colons < 2 && dt_template_accept(p, TOKEN_OPERATOR, ":")) {
            colons++;
            continue;
        }
        if (parts[colons])
            return dt_template_parse_error(p, "expected ']', found '%s'",
                                           token_text(dt_template_peek(p)));
        DT_TRY(dt_template_parse_expression(p, colons == 0, true, &parts[colons]));
    }
    p->at++;
    if (colons == 0 && parts[0] == NULL)
        return dt_template_parse_error(p, "[] without an index");
    (*node)->kind = colons ? NODE_SLICE : NODE_ITEM;
    (*node)->second = parts[0];
    for (int i = 0; i < 3; i++)
        dt_template_add_node(p, &(*node)->items, parts[i]);
    return 0;
}

static int parse_attribute(struct parser *p, struct node **node)
{
    struct node *of = *node;
    *node = dt_template_node(p, NODE_ATTRIBUTE);
    (*node)->first = of;
    (*node)->value = token_value(dt_template_peek(p));
    if (dt_template_at(p, TOKEN_INT, NULL)) { /* a.0 is a[0] */
        (*node)->kind = NODE_ITEM;
        return parse_number(p, &(*node)->second);
    }
    return dt_template_expect(p, TOKEN_NAME, NULL);
}

static int parse_call(struct parser *p, struct node **node)
{
    struct node *of = *node;
    *node = dt_template_node(p, NODE_CALL);
    (*node)->first = of;
    return parse_arguments(p, *node);
}

static int parse_postfix(struct parser *p, struct node **node)
{
    for (;;) {
        if (dt_template_accept(p, TOKEN_OPERATOR, "."))
            DT_TRY(parse_attribute(p, node));
        else if (dt_template_accept(p, TOKEN_OPERATOR, "["))
            DT_TRY(parse_subscript(p, node));
        else if (dt_template_accept(p, TOKEN_OPERATOR, "("))
            DT_TRY(parse_call(p, node));
        else
            return 0;
    }
}

/* After "|": NAME or NAME(ARGUMENTS). */
static int parse_filter(struct parser *p, struct node **node)
{
    struct node *of = *node;
    *node = dt_template_node(p, NODE_FILTER);
    (*node)->first = of;
    (*node)->value = token_value(dt_template_peek(p));
    (*node)->function = dt_template_find_filter((*node)->value.text);
    DT_TRY(dt_template_expect(p, TOKEN_NAME, NULL));
    return dt_template_accept(p, TOKEN_OPERATOR, "(") ? parse_arguments(p, *node) : 0;
}

/* The operand of a test without parentheses: "x is divisibleby 3". */
static bool operand_follows(struct parser *p)
{
    static const char *const words[] = {"else", "or", "and", "is"};
    const struct token *t = dt_template_peek(p);
    for (size_t i = 0; t->kind == TOKEN_NAME && i < sizeof words / sizeof *words; i++)
        if (strcmp(t->text, words[i]) == 0)
            return false;
    return t->kind == TOKEN_NAME || t->kind == TOKEN_STRING || t->kind == TOKEN_INT ||
           t->kind == TOKEN_FLOAT ||
           (t->kind == TOKEN_OPERATOR && (t->text[0] == '[' || t->text[0] == '{'));
}

static struct node *negated(struct parser *p, struct node *node, enum operation op)
{
    struct node *outer = dt_template_node(p, NODE_UNARY);
    outer->op = op;
    outer->first = node;
    return outer;
}

/* After "is": [not] NAME [operand]. */
static int parse_test(struct parser *p, struct node **node)
{
    bool not = dt_template_accept(p, TOKEN_NAME, "not");
    struct node *of = *node, *operand;
    struct node *test = dt_template_node(p, NODE_TEST);
    test->first = of;
    test->value = token_value(dt_template_peek(p));
    test->function = dt_template_find_test(test->value.text);
    DT_TRY(dt_template_expect(p, TOKEN_NAME, NULL));
    if (dt_template_accept(p, TOKEN_OPERATOR, "(")) {
        DT_TRY(parse_arguments(p, test));
    } else if (operand_follows(p)) {
        DT_TRY(parse_primary(p, &operand));
        DT_TRY(parse_postfix(p, &operand));
        dt_template_add_node(p, &test->items, operand);
    } else if (dt_template_at(p, TOKEN_NAME, "is")) {
        return dt_template_parse_error(p, "a test follows another one: use parentheses");
    }
    *node = not ? negated(p, test, OPERATOR_NOT) : test;
    return 0;
}

int dt_template_parse_filters(struct parser *p, struct node **node)
{
    for (;;) {
        if (dt_template_accept(p, TOKEN_OPERATOR, "|"))
            DT_TRY(parse_filter(p, node));
        else if (*node && dt_template_accept(p, TOKEN_NAME, "is"))
            DT_TRY(parse_test(p, node));
        else if (*node && dt_template_accept(p, TOKEN_OPERATOR, "("))
            DT_TRY(parse_call(p, node));
        else
            return 0;
    }
}

/* --- operators --------------------------------------------------------------------------------*/

static int parse_unary(struct parser *p, bool filters, struct node **node)
{
    bool minus = dt_template_accept(p, TOKEN_OPERATOR, "-");
    if (++p->depth > MOST_DEPTH)
        return dt_template_parse_error(p, "expressions are nested more than %d deep", MOST_DEPTH);
    if (minus || dt_template_accept(p, TOKEN_OPERATOR, "+")) {
        DT_TRY(parse_unary(p, false, node));
        *node = negated(p, *node, minus ? OPERATOR_NEGATE : OPERATOR_PLUS);
    } else {
        DT_TRY(parse_primary(p, node));
    }
    DT_TRY(parse_postfix(p, node));
    if (filters)
        DT_TRY(dt_template_parse_filters(p, node));
    p->depth--;
    return 0;
}

struct level {
    struct {
        const char *text;
        enum operation op;
    } operators[5];
    bool words;
};

/* Left-associative binary operators, from the weakest level to the strongest. */
static const struct level levels[] = {
    {{{"or", OPERATOR_OR}}, true},
    {{{"and", OPERATOR_AND}}, true},
    {{{NULL, OPERATOR_NONE}}, false}, /* not */
    {{{NULL, OPERATOR_NONE}}, false}, /* comparisons */
    {{{"+", OPERATOR_ADD}, {"-", OPERATOR_SUBTRACT}}, false},
    {{{"~", OPERATOR_CONCATENATE}}, false},
    {{{"*", OPERATOR_MULTIPLY},
      {"/", OPERATOR_DIVIDE},
      {"//", OPERATOR_FLOOR_DIVIDE},
      {"%", OPERATOR_MODULO}},
     false},
    {{{"**", OPERATOR_POWER}}, false},
};
enum { NOT_LEVEL = 2, COMPARE_LEVEL = 3, LEVELS = sizeof levels / sizeof *levels };

static int parse_level(struct parser *p, int level, struct node **node);

static enum operation accept_operator(struct parser *p, const struct level *level)
{
    for (int i = 0; i < 5 && level->operators[i].text; i++)
        if (dt_template_accept(p, level->words ? TOKEN_NAME : TOKEN_OPERATOR,
                               level->operators[i].text))
            return level->operators[i].op;
    return OPERATOR_NONE;
}

static enum operation accept_comparison(struct parser *p)
{
    static const struct level comparisons = {{{"==", OPERATOR_EQUAL},
                                              {"!=", OPERATOR_UNEQUAL},
                                              {">", OPERATOR_GREATER},
                                              {">=", OPERATOR_GREATER_EQUAL},
                                              {"<", OPERATOR_LESS}},
                                             false};
    const struct token *next = &p->tokens.items[p->at];
    if (dt_template_accept(p, TOKEN_OPERATOR, "<="))
        return OPERATOR_LESS_EQUAL;
    if (dt_template_accept(p, TOKEN_NAME, "in"))
        return OPERATOR_IN;
    if (dt_template_at(p, TOKEN_NAME, "not") && next[1].kind == TOKEN_NAME &&
        strcmp(next[1].text, "in") == 0) {
        p->at += 2;
        return OPERATOR_NOT_IN;
    }
    return accept_operator(p, &comparisons);
}

static int parse_comparisons(struct parser *p, struct node **node)
{
    enum operation op;
    DT_TRY(parse_level(p, COMPARE_LEVEL + 1, node));
    while ((op = accept_comparison(p)) != OPERATOR_NONE) {
        struct node *first = *node, *operand;
        if (first->kind != NODE_COMPARE || first->flag) {
            *node = dt_template_node(p, NODE_COMPARE);
            (*node)->first = first;
        }
        DT_TRY(parse_level(p, COMPARE_LEVEL + 1, &operand));
        dt_template_add_node(p, &(*node)->items, negated(p, operand, op));
    }
    if ((*node)->kind == NODE_COMPARE)
        (*node)->flag = true; /* complete: "(a < b) < c" is not a chain */
    return 0;
}

static int parse_level(struct parser *p, int level, struct node **node)
{
    enum operation op;
    if (level == LEVELS)
        return parse_unary(p, true, node);
    if (level == COMPARE_LEVEL)
        return parse_comparisons(p, node);
    if (level == NOT_LEVEL) {
        if (!dt_template_accept(p, TOKEN_NAME, "not"))
            return parse_level(p, level + 1, node);
        if (++p->depth > MOST_DEPTH)
            return dt_template_parse_error(p, "'not' is nested more than %d deep", MOST_DEPTH);
        DT_TRY(parse_level(p, level, node));
        p->depth--;
        *node = negated(p, *node, OPERATOR_NOT);
        return 0;
    }
    DT_TRY(parse_level(p, level + 1, node));
    while ((op = accept_operator(p, &levels[level])) != OPERATOR_NONE) {
        struct node *left = *node;
        *node = dt_template_node(p, NODE_BINARY);
        (*node)->op = op;
        (*node)->first = left;
        DT_TRY(parse_level(p, level + 1, &(*node)->second));
    }
    return 0;
}

static int parse_choice(struct parser *p, bool choice, struct node **node)
{
    DT_TRY(parse_level(p, 0, node));
    while (choice && dt_template_accept(p, TOKEN_NAME, "if")) {
        struct node *first = *node;
        *node = dt_template_node(p, NODE_CHOICE);
        (*node)->first = first;
        DT_TRY(parse_level(p, 0, &(*node)->second));
        if (dt_template_accept(p, TOKEN_NAME, "else"))
            DT_TRY(dt_template_parse_expression(p, false, true, &(*node)->third));
    }
    return 0;
}

int dt_template_parse_expression(struct parser *p, bool tuples, bool choice, struct node **node)
{
    if (++p->depth > MOST_DEPTH)
        return dt_template_parse_error(p, "expressions are nested more than %d deep", MOST_DEPTH);
    DT_TRY(parse_choice(p, choice, node));
    if (tuples && dt_template_at(p, TOKEN_OPERATOR, ",")) {
        struct node *tuple = dt_template_node(p, NODE_LIST);
        tuple->flag = true;
        dt_template_add_node(p, &tuple->items, *node);
        *node = tuple;
        while (dt_template_accept(p, TOKEN_OPERATOR, ",")) {
            struct node *item;
            const struct token *t = dt_template_peek(p);
            if (t->kind == TOKEN_BLOCK_END || t->kind == TOKEN_EXPRESSION_END ||
                (t->kind == TOKEN_OPERATOR && strchr(")]", t->text[0])))
                break;
            DT_TRY(parse_choice(p, choice, &item));
            dt_template_add_node(p, &tuple->items, item);
        }
    }
    p->depth--;
    return 0;
}
