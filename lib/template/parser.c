/* SPDX-License-Identifier: MIT */
/* Statements. */
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"

static int end_block(struct parser *p)
{
    return dt_template_expect(p, TOKEN_BLOCK_END, NULL);
}

/* {% name %}, of which the parser stands at "{%". */
static bool at_block(struct parser *p, const char *name)
{
    const struct token *t = dt_template_peek(p);
    return t->kind == TOKEN_BLOCK && t[1].kind == TOKEN_NAME && strcmp(t[1].text, name) == 0;
}

static int parse_end(struct parser *p, const char *name)
{
    if (!at_block(p, name))
        return dt_template_parse_error(p, "expected {%% %s %%}", name);
    p->at += 2;
    return end_block(p);
}

/* Fails at a name of a constant. */
static int want_variable(struct parser *p)
{
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (dt_template_at(p, TOKEN_NAME, constants[i]))
            return dt_template_parse_error(p, "cannot assign to '%s'", constants[i]);
    return 0;
}

int dt_template_parse_target(struct parser *p, struct nodes *targets)
{
    bool brackets = dt_template_accept(p, TOKEN_OPERATOR, "(");
    do {
        DT_TRY(want_variable(p));
        struct node *target = dt_template_node(p, NODE_NAME);
        target->value = (struct value){.kind = VALUE_STRING,
                                       .text = dt_template_peek(p)->text,
                                       .size = dt_template_peek(p)->size};
        DT_TRY(dt_template_expect(p, TOKEN_NAME, NULL));
        if (dt_template_accept(p, TOKEN_OPERATOR, ".")) {
            struct node *name = target;
            target = dt_template_node(p, NODE_ATTRIBUTE);
            target->first = name;
            target->value = (struct value){.kind = VALUE_STRING,
                                           .text = dt_template_peek(p)->text,
                                           .size = dt_template_peek(p)->size};
            DT_TRY(dt_template_expect(p, TOKEN_NAME, NULL));
        }
        dt_template_add_node(p, targets, target);
    } while (dt_template_accept(p, TOKEN_OPERATOR, ","));
    return brackets ? dt_template_expect(p, TOKEN_OPERATOR, ")") : 0;
}

/* The rest of {% if %}, from its condition to {% endif %}. */
static int parse_if(struct parser *p, struct node *node)
{
    for (struct node *other;; node = other) {
        DT_TRY(dt_template_parse_expression(p, true, false, &node->first));
        DT_TRY(end_block(p));
        DT_TRY(dt_template_parse_statements(p, &node->body));
        if (!at_block(p, "elif"))
            break;
        other = dt_template_node(p, NODE_IF);
        p->at += 2;
        dt_template_add_node(p, &node->otherwise, other);
    }
    if (at_block(p, "else")) {
        p->at += 2;
        DT_TRY(end_block(p));
        DT_TRY(dt_template_parse_statements(p, &node->otherwise));
    }
    return parse_end(p, "endif");
}

static int parse_for(struct parser *p, struct node *node)
{
    DT_TRY(dt_template_parse_target(p, &node->items));
    DT_TRY(dt_template_expect(p, TOKEN_NAME, "in"));
    DT_TRY(dt_template_parse_expression(p, true, false, &node->first));
    if (dt_template_accept(p, TOKEN_NAME, "if"))
        DT_TRY(dt_template_parse_expression(p, false, true, &node->second));
    if (dt_template_at(p, TOKEN_NAME, "recursive"))
        return dt_template_parse_error(p, "recursive loops are not supported");
    DT_TRY(end_block(p));
    p->loops++;
    DT_TRY(dt_template_parse_statements(p, &node->body));
    p->loops--;
    if (at_block(p, "else")) {
        p->at += 2;
        DT_TRY(end_block(p));
        DT_TRY(dt_template_parse_statements(p, &node->otherwise));
    }
    return parse_end(p, "endfor");
}

static int parse_set(struct parser *p, struct node *node)
{
    DT_TRY(dt_template_parse_target(p, &node->items));
    if (dt_template_accept(p, TOKEN_OPERATOR, "=")) {
        DT_TRY(dt_template_parse_expression(p, true, true, &node->first));
        return end_block(p);
    }
    if (node->items.count > 1)
        return dt_template_parse_error(p, "{%% set %%} of a block has one name");
    DT_TRY(dt_template_parse_filters(p, &node->second));
    DT_TRY(end_block(p));
    DT_TRY(dt_template_parse_statements(p, &node->body));
    return parse_end(p, "endset");
}

/* NAME(a, b=DEFAULT) ... {% endmacro %} */
static int parse_macro(struct parser *p, struct node *node)
{
    node->value = (struct value){
        .kind = VALUE_STRING, .text = dt_template_peek(p)->text, .size = dt_template_peek(p)->size};
    DT_TRY(dt_template_expect(p, TOKEN_NAME, NULL));
    DT_TRY(dt_template_expect(p, TOKEN_OPERATOR, "("));
    while (!dt_template_at(p, TOKEN_OPERATOR, ")")) {
        if (node->items.count > 0)
            DT_TRY(dt_template_expect(p, TOKEN_OPERATOR, ","));
        if (dt_template_at(p, TOKEN_OPERATOR, ")"))
            break;
        struct node *parameter = dt_template_node(p, NODE_NAME);
        parameter->value = (struct value){.kind = VALUE_STRING,
                                          .text = dt_template_peek(p)->text,
                                          .size = dt_template_peek(p)->size};
        DT_TRY(dt_template_expect(p, TOKEN_NAME, NULL));
        if (dt_template_accept(p, TOKEN_OPERATOR, "="))
            DT_TRY(dt_template_parse_expression(p, false, true, &parameter->first));
        dt_template_add_node(p, &node->items, parameter);
    }
    p->at++;
    DT_TRY(end_block(p));
    int loops = p->loops;
    p->loops = 0;
    DT_TRY(dt_template_parse_statements(p, &node->body));
    p->loops = loops;
    return parse_end(p, "endmacro");
}

static int parse_filtered(struct parser *p, struct node *node)
{
    p->at--; /* the filters begin as after a "|" */
    p->tokens.items[p->at].kind = TOKEN_OPERATOR;
    p->tokens.items[p->at].text = "|";
    DT_TRY(dt_template_parse_filters(p, &node->first));
    DT_TRY(end_block(p));
    DT_TRY(dt_template_parse_statements(p, &node->body));
    return parse_end(p, "endfilter");
}

static int parse_generation(struct parser *p, struct node *node)
{
    int loops = p->loops;
    p->marks_generation = true;
    DT_TRY(end_block(p));
    p->loops = 0; /* the block is a macro of Jinja, which {% break %} does not leave */
    DT_TRY(dt_template_parse_statements(p, &node->body));
    p->loops = loops;
    return parse_end(p, "endgeneration");
}

static int parse_jump(struct parser *p, struct node *node)
{
    if (p->loops == 0)
        return dt_template_parse_error(p, "{%% %s %%} stands outside of a loop",
                                       node->kind == NODE_BREAK ? "break" : "continue");
    return end_block(p);
}

static const struct {
    const char *name;
    enum node_kind kind;
    int (*parse)(struct parser *p, struct node *node);
} statements[] = {
    {"if", NODE_IF, parse_if},
    {"for", NODE_FOR, parse_for},
    {"set", NODE_SET, parse_set},
    {"macro", NODE_MACRO, parse_macro},
    {"filter", NODE_FILTERED, parse_filtered},
    {"generation", NODE_GENERATION, parse_generation},
    {"break", NODE_BREAK, parse_jump},
    {"continue", NODE_CONTINUE, parse_jump},
};

/* Words that end the body of another statement. */
static bool ends_body(const char *name)
{
    return strncmp(name, "end", 3) == 0 || strcmp(name, "else") == 0 || strcmp(name, "elif") == 0;
}

static int parse_statement(struct parser *p, struct nodes *body)
{
    const struct token *name = dt_template_peek(p) + 1;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (name->kind == TOKEN_NAME && strcmp(name->text, statements[i].name) == 0) {
            struct node *node = dt_template_node(p, statements[i].kind);
            p->at += 2;
            dt_template_add_node(p, body, node);
            return statements[i].parse(p, node);
        }
    return dt_template_parse_error(p, "the statement '%s' is not supported", name->text);
}

/* Text and {{ }}. */
static int parse_output(struct parser *p, struct nodes *body)
{
    struct token *t = dt_template_peek(p);
    struct node *node = dt_template_node(p, t->kind == TOKEN_TEXT ? NODE_TEXT : NODE_OUTPUT);
    dt_template_add_node(p, body, node);
    p->at++;
    if (t->kind == TOKEN_TEXT) {
        node->value = (struct value){.kind = VALUE_STRING, .text = t->text, .size = t->size};
        return 0;
    }
    DT_TRY(dt_template_parse_expression(p, true, true, &node->first));
    return dt_template_expect(p, TOKEN_EXPRESSION_END, NULL);
}

int dt_template_parse_statements(struct parser *p, struct nodes *body)
{
    enum { MOST_DEPTH = 100 };
    if (++p->depth > MOST_DEPTH)
        return dt_template_parse_error(p, "statements are nested more than %d deep", MOST_DEPTH);
    for (;;) {
        const struct token *t = dt_template_peek(p);
        if (t->kind == TOKEN_END || (t->kind == TOKEN_BLOCK && ends_body(t[1].text)))
            break;
        if (t->kind == TOKEN_BLOCK)
            DT_TRY(parse_statement(p, body));
        else
            DT_TRY(parse_output(p, body));
    }
    p->depth--;
    return 0;
}

int dt_template_parse(struct dt_template **t, const char *text, size_t size, const char *subject,
                      struct dt_error *err)
{
    return dt_template_parse_as(t, DT_TEMPLATE_CHAT, text, size, subject, err);
}

int dt_template_parse_as(struct dt_template **t, enum dt_template_kind kind, const char *text,
                         size_t size, const char *subject, struct dt_error *err)
{
    struct dt_template *new = dt_alloc(1, sizeof *new);
    new->kind = kind;
    new->subject = dt_strdup(subject);
    struct parser p = {.arena = &new->arena, .subject = new->subject, .err = err};
    int rc = dt_template_tokens(&new->arena, kind, text, size, new->subject, &p.tokens, err);
    if (rc == 0)
        rc = dt_template_parse_statements(&p, &new->body);
    if (rc == 0 && dt_template_peek(&p)->kind != TOKEN_END)
        rc = dt_template_parse_error(&p, "{%% %s %%} ends nothing", dt_template_peek(&p)[1].text);
    new->marks_generation = p.marks_generation;
    free(p.tokens.items);
    *t = new;
    if (rc < 0) {
        dt_template_free(new);
        *t = NULL;
    }
    return rc;
}

bool dt_template_marks_generation(const struct dt_template *t)
{
    return t->marks_generation;
}

void dt_template_free(struct dt_template *t)
{
    if (t == NULL)
        return;
    dt_template_arena_free(&t->arena);
    free(t->subject);
    free(t);
}
