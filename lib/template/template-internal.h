/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of lib/template:
 *
 *     lexer.c       text -> tokens, with the rules of white space
 *     expression.c  tokens -> expressions
 *     parser.c      tokens -> statements
 *     value.c       values: Python's truth, equality, order and text
 *     function.c    calls of functions, filters, tests and methods, found in tables
 *     evaluate.c    expressions -> values
 *     render.c      statements -> text
 */
#ifndef DT_TEMPLATE_TEMPLATE_INTERNAL_H
#define DT_TEMPLATE_TEMPLATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "template/template.h"

/* --- memory: freed as a whole -----------------------------------------------------------------*/

struct arena {
    struct arena_chunk *last;
    size_t used; /* bytes in all chunks */
};
void *dt_template_alloc(struct arena *a, size_t size); /* zeroed */
char *dt_template_copy(struct arena *a, const char *data, size_t size);
void dt_template_arena_free(struct arena *a);

/* --- tokens -----------------------------------------------------------------------------------*/

enum token_kind {
    TOKEN_END,
    TOKEN_TEXT,           /* outside of {{ }} and {% %} */
    TOKEN_EXPRESSION,     /* {{ */
    TOKEN_EXPRESSION_END, /* }} */
    TOKEN_BLOCK,          /* {% */
    TOKEN_BLOCK_END,      /* %} */
    TOKEN_NAME,
    TOKEN_STRING, /* text: its content */
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_OPERATOR /* text: "==", "(", ... */
};

struct token {
    enum token_kind kind;
    const char *text; /* ends with a zero byte */
    size_t size;
    long line; /* from 1 */
};

struct tokens {
    struct token *items;
    size_t count, capacity;
};

int dt_template_tokens(struct arena *a, enum dt_template_kind kind, const char *text, size_t size,
                       const char *subject, struct tokens *tokens,
                       struct dt_error *err) DT_MUST_CHECK;

/* --- values -----------------------------------------------------------------------------------*/

enum value_kind {
    VALUE_UNDEFINED, /* text: its name, for errors */
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_DICT,
    VALUE_NAMESPACE, /* dict that {% set a.b = %} may change */
    VALUE_LOOP,
    VALUE_MACRO,
    VALUE_FUNCTION, /* of the table of functions, or a method with its subject */
};

enum list_kind {
    LIST_PLAIN,
    LIST_TUPLE,    /* printed as (1, 2) */
    LIST_VIEW,     /* dict.items(): without index and text */
    LIST_RANGE,    /* range(): without index and text, but a sequence for tests */
    LIST_GENERATOR /* always true, read once, without length, index and text */
};

/* Of a value, whose parts it may hold several times. */
struct nesting {
    size_t depth, parts;
};

struct list {
    struct value *items;
    size_t count, capacity;
    enum list_kind kind;
    struct nesting nesting;
};

struct dict {
    struct entry *entries; /* in the order of insertion */
    size_t count, capacity;
    struct nesting nesting;
};

struct value {
    enum value_kind kind;
    bool safe;     /* a string that was marked with |safe */
    bool optional; /* an undefined value that tasks may use */
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct {
            const char *text;
            size_t size;
        };
        struct list *list;
        struct dict *dict;
        struct loop *loop;
        struct macro *macro;
        struct bound *bound;
    };
};

struct entry {
    struct value key, value;
};

struct loop {
    const struct list *items;
    size_t index; /* from 0 */
};

struct bound {
    const struct function *function;
    struct value subject; /* of a method */
};

/* --- syntax trees -----------------------------------------------------------------------------*/

enum node_kind {
    /* expressions */
    NODE_CONSTANT,
    NODE_NAME,
    NODE_LIST,      /* items; flag: a tuple */
    NODE_DICT,      /* items: key, value, key, ... */
    NODE_ATTRIBUTE, /* first.text */
    NODE_ITEM,      /* first[second] */
    NODE_SLICE,     /* first[items[0]:items[1]:items[2]], NULL where absent */
    NODE_CALL,      /* first(items) */
    NODE_FILTER,    /* first | function(items); first is NULL in {% filter %} */
    NODE_TEST,      /* first is function(items) */
    NODE_UNARY,     /* op first */
    NODE_BINARY,    /* first op second */
    NODE_COMPARE,   /* first, then items: NODE_UNARY of op and operand */
    NODE_CHOICE,    /* first if second else third (or undefined) */
    /* statements */
    NODE_TEXT,
    NODE_OUTPUT,     /* {{ first }} */
    NODE_IF,         /* if first: body, otherwise */
    NODE_FOR,        /* for items in first if second: body, otherwise */
    NODE_SET,        /* items = first; without first: the text of body through second */
    NODE_MACRO,      /* text, items (names), defaults, body */
    NODE_FILTERED,   /* {% filter first %} body */
    NODE_GENERATION, /* body */
    NODE_BREAK,
    NODE_CONTINUE
};

enum operation {
    OPERATOR_NONE,
    OPERATOR_ADD,
    OPERATOR_SUBTRACT,
    OPERATOR_MULTIPLY,
    OPERATOR_DIVIDE,
    OPERATOR_FLOOR_DIVIDE,
    OPERATOR_MODULO,
    OPERATOR_POWER,
    OPERATOR_CONCATENATE,
    OPERATOR_EQUAL,
    OPERATOR_UNEQUAL,
    OPERATOR_LESS,
    OPERATOR_LESS_EQUAL,
    OPERATOR_GREATER,
    OPERATOR_GREATER_EQUAL,
    OPERATOR_IN,
    OPERATOR_NOT_IN,
    OPERATOR_AND,
    OPERATOR_OR,
    OPERATOR_NOT,
    OPERATOR_NEGATE,
    OPERATOR_PLUS
};

struct nodes {
    struct node **items;
    size_t count, capacity;
};

struct node {
    enum node_kind kind;
    enum operation op;
    bool flag;
    long line;
    struct value value; /* of a constant; its text: of a name, attribute, text, macro */
    struct node *first, *second, *third;
    struct nodes items, body, otherwise;
    const struct function *function; /* NULL: the filter or test is not known */
    const char **names; /* of the last name_count of items: keyword arguments, or a macro's
                           parameters with a default */
    size_t name_count;
};

struct parser {
    struct arena *arena;
    const char *subject;
    struct tokens tokens;
    size_t at;
    bool marks_generation;
    int depth, loops;
    struct dt_error *err;
};

struct token *dt_template_peek(struct parser *p);
int dt_template_expect(struct parser *p, enum token_kind kind, const char *text) DT_MUST_CHECK;
bool dt_template_accept(struct parser *p, enum token_kind kind, const char *text);
bool dt_template_at(struct parser *p, enum token_kind kind, const char *text);
struct node *dt_template_node(struct parser *p, enum node_kind kind);
void dt_template_add_node(struct parser *p, struct nodes *nodes, struct node *node);
int dt_template_parse_error(struct parser *p, const char *fmt, ...) DT_PRINTF(2, 3) DT_MUST_CHECK;
/* tuples: "a, b" without parentheses is one; choice: "a if b" is read as a whole. */
int dt_template_parse_expression(struct parser *p, bool tuples, bool choice,
                                 struct node **node) DT_MUST_CHECK;
/* A target of {% for %} and {% set %}: names, or one attribute of a namespace. */
int dt_template_parse_target(struct parser *p, struct nodes *targets) DT_MUST_CHECK;
int dt_template_parse_filters(struct parser *p, struct node **node) DT_MUST_CHECK;
int dt_template_parse_statements(struct parser *p, struct nodes *body) DT_MUST_CHECK;

struct dt_template {
    struct arena arena;
    char *subject;
    struct nodes body;
    enum dt_template_kind kind;
    bool marks_generation;
};

/* --- rendering --------------------------------------------------------------------------------*/

struct scope {
    struct scope *outer;
    struct dict names;
};

struct macro {
    const struct node *node;
    struct scope *scope; /* where it was defined */
};

struct render {
    const struct dt_template *template;
    struct arena arena;
    struct json_object *context;
    time_t now;
    struct scope *scope;
    struct dt_buffer *out;
    struct dt_template_spans *spans; /* NULL within a captured text */
    long line, steps, depth;
    uint64_t work; /* bytes and items that were read */
    bool lenient;  /* the expression that is next may be undefined */
    enum { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE } flow;
    struct dt_error *err;
};

int dt_template_error(struct render *r, const char *fmt, ...) DT_PRINTF(2, 3) DT_MUST_CHECK;
/* Fails if size more bytes are above the limit. */
int dt_template_may_use(struct render *r, size_t count, size_t size) DT_MUST_CHECK;
/* Counts bytes or items that are read without memory for a result. After too many,
 * dt_template_evaluate fails, and loops end early with any result. */
void dt_template_spend(struct render *r, size_t count);
bool dt_template_is_spent(const struct render *r);
int dt_template_check_spent(struct render *r) DT_MUST_CHECK;
/* Adds 1 to depth, which the caller subtracts; fails if it is too deep. */
int dt_template_enter(struct render *r) DT_MUST_CHECK;
int dt_template_evaluate(struct render *r, const struct node *node,
                         struct value *value) DT_MUST_CHECK;
int dt_template_call(struct render *r, struct value function, const struct value *arguments,
                     size_t count, const char *const *names, size_t name_count,
                     struct value *result) DT_MUST_CHECK;
int dt_template_call_macro(struct render *r, const struct macro *macro,
                           const struct value *arguments, size_t count, const char *const *names,
                           size_t name_count, struct value *result) DT_MUST_CHECK;
void dt_template_assign(struct render *r, const char *name, struct value value);
bool dt_template_lookup(struct render *r, const char *name, struct value *value);
int dt_template_attribute(struct render *r, struct value of, const char *name, size_t size,
                          struct value *value) DT_MUST_CHECK;
int dt_template_item(struct render *r, struct value of, struct value key,
                     struct value *value) DT_MUST_CHECK;
/* The elements of any iterable: characters, keys, items. */
int dt_template_iterate(struct render *r, struct value of, const struct list **items) DT_MUST_CHECK;

/* --- functions --------------------------------------------------------------------------------*/

#define MOST_ARGUMENTS 6

struct call {
    const struct function *function;
    struct render *r;
    struct value subject;           /* of a method, filter or test */
    struct value a[MOST_ARGUMENTS]; /* in the order of the parameters */
    bool given[MOST_ARGUMENTS];
    const struct value *arguments; /* all, as written */
    size_t count;                  /* positional ones */
    const char *const *names;      /* of those after count */
    size_t name_count;
};

/* A row of the tables of filters, tests, methods and global functions. */
struct function {
    const char *name;
    const char *parameters; /* "sep maxsplit"; "*": any; the first ones, before a "/", are needed */
    int (*call)(struct call *c, struct value *result);
    int number; /* what tells functions of one implementation apart */
    /* Of a safe string the result is safe, plain, or an error, as Jinja would escape arguments. */
    enum { SAFE_STAYS, SAFE_IS_LOST, SAFE_IS_REFUSED } safe;
};

/* Tables, which end with a row of NULL, and functions of rows that several files have. */
extern const struct function dt_template_string_filters[], dt_template_sequence_filters[],
    dt_template_string_methods[], dt_template_dict_methods[];
int dt_template_join(struct call *c, struct value *result);
int dt_template_index(struct call *c, struct value *result);
int dt_template_count(struct call *c, struct value *result);
int dt_template_tojson(struct call *c, struct value *result);

/* Argument i, if it is an integer or boolean. */
int64_t dt_template_int_or(const struct call *c, int i, int64_t otherwise);
/* The subject as text, as filters of strings want it. */
int dt_template_subject_text(struct call *c, struct value *text) DT_MUST_CHECK;
/* Ends a function that writes text: *result is that of b, which is released, or rc is returned. */
int dt_template_finish(struct call *c, struct dt_buffer *b, int rc,
                       struct value *result) DT_MUST_CHECK;

const struct function *dt_template_find_filter(const char *name);
const struct function *dt_template_find_test(const char *name);
const struct function *dt_template_find_global(const char *name);
/* Whether a filter or test is for values that may be undefined; function may be NULL. */
bool dt_template_takes_undefined(const struct function *function);
/* A method of Python that is not supported is an error; one that does not exist is NULL. */
int dt_template_find_method(struct render *r, struct value of, const char *name,
                            const struct function **method) DT_MUST_CHECK;
int dt_template_invoke(struct render *r, const struct function *f, struct value subject,
                       const struct value *arguments, size_t count, const char *const *names,
                       size_t name_count, struct value *result) DT_MUST_CHECK;

/* --- values -----------------------------------------------------------------------------------*/

struct value dt_template_none(void);
struct value dt_template_bool(bool boolean);
struct value dt_template_int(int64_t integer);
struct value dt_template_float(double real);
struct value dt_template_undefined(struct render *r, const char *name);
struct value dt_template_text(const char *text); /* borrowed */
/* Copies. */
int dt_template_string(struct render *r, const char *text, size_t size,
                       struct value *value) DT_MUST_CHECK;
/* Copies and releases the buffer, also after a failure. */
int dt_template_buffer(struct render *r, struct dt_buffer *b, struct value *value) DT_MUST_CHECK;
struct value dt_template_list(struct render *r, enum list_kind kind);
int dt_template_append(struct render *r, struct list *list, struct value value) DT_MUST_CHECK;
struct value dt_template_dict(struct render *r);
struct value *dt_template_dict_get(struct render *r, const struct dict *d, const char *name,
                                   size_t size);
struct value *dt_template_dict_find(struct render *r, const struct dict *d, struct value key);
void dt_template_dict_set(struct render *r, struct dict *d, struct value key, struct value value);
/* Fails for one that is nested too deep, or has too many parts, to be read as a whole. */
int dt_template_check_nesting(struct render *r, struct nesting nesting) DT_MUST_CHECK;
int dt_template_from_json(struct render *r, struct json_object *json,
                          struct value *value) DT_MUST_CHECK;

bool dt_template_is_true(struct value v);
bool dt_template_is_number(struct value v); /* a boolean is one, too */
double dt_template_real_of(struct value number);
int64_t dt_template_integer_of(struct value number); /* of an integer or boolean */
bool dt_template_equal(struct render *r, struct value a, struct value b);
/* *order: < 0, 0, > 0; an error for values without an order. */
int dt_template_compare(struct render *r, struct value a, struct value b, int *order) DT_MUST_CHECK;
int dt_template_contains(struct render *r, struct value in, struct value what,
                         bool *found) DT_MUST_CHECK;
/* Fails for an undefined value in a task, unless it is optional. */
int dt_template_want_usable(struct render *r, struct value v) DT_MUST_CHECK;
/* Python's str(), without ''; and repr(). */
int dt_template_add_text(struct render *r, struct value v, struct dt_buffer *b) DT_MUST_CHECK;
int dt_template_add_repr(struct render *r, struct value v, struct dt_buffer *b) DT_MUST_CHECK;
void dt_template_add_float(struct dt_buffer *b, double x); /* Python's repr */
const char *dt_template_kind_name(struct value v);
/* Fails for anything but a string, with the name of what wanted it. */
int dt_template_want_string(struct render *r, struct value v, const char *who) DT_MUST_CHECK;
/* A character that Python's str.strip() and str.split() take for white space. */
bool dt_template_is_space(uint32_t code);
static inline bool dt_template_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* Offset of the first character from `at` on that is not white space. */
size_t dt_template_skip_space(struct value text, size_t at);

#endif
