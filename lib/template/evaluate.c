/* SPDX-License-Identifier: MIT */
/* Expressions -> values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"
#include "unicode/utf8.h"

#define MOST_STEPS 50000000
#define MOST_DEPTH 1500

/* --- items and attributes ---------------------------------------------------------------------*/

static size_t characters(struct value v)
{
    return (size_t)dt_utf8_count(v.text, v.size);
}

/* Byte offset of a character. */
static size_t offset_of(struct value v, size_t character)
{
    size_t at = 0;
    while (character-- > 0)
        at += dt_utf8_length(v.text[at]);
    return at;
}

static struct value substring(struct value v, size_t from, size_t to)
{
    size_t begin = offset_of(v, from), end = offset_of(v, to);
    v.text += begin; /* shares the bytes; nothing needs a zero after them */
    v.size = end - begin;
    return v;
}

/* An index of Python, negative ones from the end; false if there is none. */
static bool find_index(int64_t index, size_t count, size_t *at)
{
    index += index < 0 ? (int64_t)count : 0;
    *at = (size_t)index;
    return index >= 0 && (size_t)index < count;
}

static int get_loop(struct render *r, const struct loop *l, const char *name, struct value *value)
{
    int64_t index = (int64_t)l->index, count = (int64_t)l->items->count;
    const struct {
        const char *name;
        struct value value;
    } members[] = {
        {"index", dt_template_int(index + 1)},
        {"index0", dt_template_int(index)},
        {"first", dt_template_bool(index == 0)},
        {"last", dt_template_bool(index + 1 == count)},
        {"length", dt_template_int(count)},
        {"revindex", dt_template_int(count - index)},
        {"revindex0", dt_template_int(count - index - 1)},
        {"depth", dt_template_int(1)},
        {"depth0", dt_template_int(0)}, /* only recursive loops have more */
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(name, members[i].name) == 0) {
            *value = members[i].value;
            return 0;
        }
    bool before = strcmp(name, "previtem") == 0, after = strcmp(name, "nextitem") == 0;
    if (!before && !after)
        return dt_template_error(r, "loop.%s is not supported", name);
    bool there = before ? index > 0 : index + 1 < count;
    *value = there ? l->items->items[before ? index - 1 : index + 1]
                   : dt_template_undefined(r, "an item that does not exist");
    return 0;
}

static int no_member(struct render *r, struct value of, const char *name, struct value *value)
{
    char *text = dt_asprintf("'%s' of %s", name, dt_template_kind_name(of));
    *value = dt_template_undefined(r, text);
    free(text);
    return 0;
}

static int get_method(struct render *r, struct value of, const char *name, struct value *value,
                      bool *found)
{
    const struct function *method;
    DT_TRY(dt_template_find_method(r, of, name, &method));
    *found = method != NULL;
    if (method) {
        struct bound *bound = dt_template_alloc(&r->arena, sizeof *bound);
        *bound = (struct bound){method, of};
        *value = (struct value){.kind = VALUE_FUNCTION, .bound = bound};
    }
    return 0;
}

static int want_defined(struct render *r, struct value v)
{
    return v.kind == VALUE_UNDEFINED ? dt_template_error(r, "%s is undefined", v.text) : 0;
}

/* a.name: methods come before the items of a dictionary. */
int dt_template_attribute(struct render *r, struct value of, const char *name, size_t size,
                          struct value *value)
{
    bool found;
    DT_TRY(want_defined(r, of));
    if (of.kind == VALUE_LOOP)
        return get_loop(r, of.loop, name, value);
    DT_TRY(get_method(r, of, name, value, &found));
    if (found)
        return 0;
    const struct value *item = of.kind == VALUE_DICT || of.kind == VALUE_NAMESPACE
                                   ? dt_template_dict_get(r, of.dict, name, size)
                                   : NULL;
    if (item == NULL)
        return no_member(r, of, name, value);
    *value = *item;
    return 0;
}

static int get_index(struct render *r, struct value of, int64_t index, struct value *value)
{
    bool string = of.kind == VALUE_STRING;
    size_t at;
    if (!string && of.list->kind > LIST_TUPLE)
        return dt_template_error(r, "a generator or view has no index: use |list");
    dt_template_spend(r, string ? of.size : 0);
    if (!find_index(index, string ? characters(of) : of.list->count, &at)) {
        *value = dt_template_undefined(r, "an index out of range");
        return 0;
    }
    *value = string ? substring(of, at, at + 1) : of.list->items[at];
    return 0;
}

int dt_template_item(struct render *r, struct value of, struct value key, struct value *value)
{
    bool found;
    DT_TRY(want_defined(r, of));
    DT_TRY(want_defined(r, key));
    if (of.kind == VALUE_DICT) {
        const struct value *item = dt_template_dict_find(r, of.dict, key);
        if (item) {
            *value = *item;
            return 0;
        }
    }
    if ((of.kind == VALUE_LIST || of.kind == VALUE_STRING) &&
        (key.kind == VALUE_INT || key.kind == VALUE_BOOL))
        return get_index(r, of, dt_template_integer_of(key), value);
    if (key.kind != VALUE_STRING)
        return no_member(r, of, "an item", value);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)key.size, key.text);
    if (of.kind == VALUE_LOOP || of.kind == VALUE_NAMESPACE)
        return dt_template_attribute(r, of, name, strlen(name), value);
    DT_TRY(get_method(r, of, name, value, &found));
    return found ? 0 : no_member(r, of, name, value);
}

/* A bound of a slice, clamped to 0..count (or -1..count-1 for steps backwards). */
static int slice_bound(struct render *r, const struct node *node, int64_t count, bool backwards,
                       int64_t absent, int64_t *bound)
{
    struct value v = dt_template_none();
    if (node)
        DT_TRY(dt_template_evaluate(r, node, &v));
    *bound = absent;
    if (v.kind == VALUE_NONE)
        return 0;
    if (v.kind != VALUE_INT)
        return dt_template_error(r, "a slice wants integers, not %s", dt_template_kind_name(v));
    int64_t low = backwards ? -1 : 0, high = backwards ? count - 1 : count;
    int64_t at = v.integer + (v.integer < 0 ? count : 0);
    *bound = at < low ? low : at > high ? high : at;
    return 0;
}

static int slice_step(struct render *r, const struct node *node, int64_t *step)
{
    struct value v = dt_template_none();
    if (node)
        DT_TRY(dt_template_evaluate(r, node, &v));
    *step = v.kind == VALUE_NONE ? 1 : v.integer;
    if ((v.kind != VALUE_INT && v.kind != VALUE_NONE) || *step == 0 || *step == INT64_MIN)
        return dt_template_error(r, "the step of a slice is an integer other than 0");
    return 0;
}

static int evaluate_slice(struct render *r, const struct node *node, struct value *value)
{
    struct value of;
    int64_t step, from, to;
    DT_TRY(dt_template_evaluate(r, node->first, &of));
    DT_TRY(want_defined(r, of));
    if (of.kind != VALUE_STRING && (of.kind != VALUE_LIST || of.list->kind > LIST_TUPLE))
        return dt_template_error(r, "cannot slice %s", dt_template_kind_name(of));
    int64_t count = (int64_t)(of.kind == VALUE_STRING ? characters(of) : of.list->count);
    dt_template_spend(r, of.kind == VALUE_STRING ? of.size : 0);
    DT_TRY(slice_step(r, node->items.items[2], &step));
    DT_TRY(slice_bound(r, node->items.items[0], count, step < 0, step < 0 ? count - 1 : 0, &from));
    DT_TRY(slice_bound(r, node->items.items[1], count, step < 0, step < 0 ? -1 : count, &to));
    if (of.kind == VALUE_STRING && step == 1) {
        *value = substring(of, (size_t)from, (size_t)(to > from ? to : from));
        return 0;
    }
    const struct list *items;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    DT_TRY(dt_template_iterate(r, of, &items));
    if (of.kind == VALUE_LIST)
        *value = dt_template_list(r, of.list->kind);
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
        if (of.kind == VALUE_LIST)
            DT_TRY(dt_template_append(r, value->list, items->items[i]));
        else
            dt_buffer_append(&b, items->items[i].text, items->items[i].size);
    }
    return of.kind == VALUE_LIST ? 0 : dt_template_buffer(r, &b, value);
}

static int add_characters(struct render *r, struct value v, struct list *items)
{
    for (size_t i = 0, length; i < v.size; i += length) {
        struct value c = {.kind = VALUE_STRING, .text = v.text + i};
        c.size = length = dt_utf8_length(v.text[i]);
        DT_TRY(dt_template_append(r, items, c));
    }
    return 0;
}

int dt_template_iterate(struct render *r, struct value of, const struct list **items)
{
    if (of.kind == VALUE_LIST && of.list->kind != LIST_GENERATOR) {
        dt_template_spend(r, of.list->count);
        *items = of.list;
        return 0;
    }
    struct list *copy = dt_template_list(r, LIST_PLAIN).list;
    *items = copy;
    switch (of.kind) {
    case VALUE_LIST: /* a generator ends */
        *copy = *of.list;
        copy->kind = LIST_PLAIN;
        *of.list = (struct list){.kind = LIST_GENERATOR};
        return 0;
    case VALUE_UNDEFINED:
        return 0;
    case VALUE_STRING:
        return add_characters(r, of, copy);
    case VALUE_DICT:
        for (size_t i = 0; i < of.dict->count; i++)
            DT_TRY(dt_template_append(r, copy, of.dict->entries[i].key));
        return 0;
    default:
        return dt_template_error(r, "cannot iterate over %s", dt_template_kind_name(of));
    }
}

/* What a generator has left after the first `used` of its items. */
static void put_back(struct value of, const struct list *items, size_t used)
{
    if (of.kind == VALUE_LIST && of.list->kind == LIST_GENERATOR)
        *of.list = (struct list){.items = items->items + used,
                                 .count = items->count - used,
                                 .kind = LIST_GENERATOR,
                                 .nesting = items->nesting};
}

int dt_template_contains(struct render *r, struct value in, struct value what, bool *found)
{
    const struct list *items;
    *found = false;
    if (in.kind == VALUE_DICT) {
        *found = dt_template_dict_find(r, in.dict, what) != NULL;
        return 0;
    }
    if (in.kind == VALUE_STRING) {
        if (what.kind != VALUE_STRING)
            return dt_template_error(r, "'in' of a string wants a string, not %s",
                                     dt_template_kind_name(what));
        dt_template_spend(r, in.size);
        *found = what.size == 0 || memmem(in.text, in.size, what.text, what.size) != NULL;
        return 0;
    }
    DT_TRY(dt_template_iterate(r, in, &items));
    for (size_t i = 0; i < items->count && !*found; i++)
        if (dt_template_equal(r, items->items[i], what)) {
            *found = true;
            put_back(in, items, i + 1);
        }
    return 0;
}

/* --- operators --------------------------------------------------------------------------------*/

static int overflow(struct render *r)
{
    return dt_template_error(r, "a result is beyond 64 bits");
}

static int divide(struct render *r, enum operation op, int64_t a, int64_t b, struct value *value)
{
    if (b == 0)
        return dt_template_error(r, "division by zero");
    if (op == OPERATOR_DIVIDE) {
        *value = dt_template_float((double)a / (double)b);
        return 0;
    }
    if (b == -1) {
        if (a == INT64_MIN)
            return overflow(r);
        *value = dt_template_int(op == OPERATOR_MODULO ? 0 : -a);
        return 0;
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *value = dt_template_int(op == OPERATOR_MODULO ? rest : quotient);
    return 0;
}

static int power(struct render *r, int64_t a, int64_t b, struct value *value)
{
    int64_t result = 1;
    if (b < 0)
        return dt_template_error(r, "'**' with a negative exponent is not supported");
    for (; b > 0 && (a < -1 || a > 1); b--)
        if (__builtin_mul_overflow(result, a, &result))
            return overflow(r);
    *value = dt_template_int(a == 0 && b > 0 ? 0 : a == -1 && b % 2 ? -1 : result);
    return 0;
}

static int integers(struct render *r, enum operation op, int64_t a, int64_t b, struct value *value)
{
    int64_t result = 0;
    bool over = false;
    switch (op) {
    case OPERATOR_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case OPERATOR_SUBTRACT:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case OPERATOR_MULTIPLY:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case OPERATOR_POWER:
        return power(r, a, b, value);
    default:
        return divide(r, op, a, b, value);
    }
    *value = dt_template_int(result);
    return over ? overflow(r) : 0;
}

static int reals(struct render *r, enum operation op, double a, double b, struct value *value)
{
    double result = 0;
    if ((op == OPERATOR_DIVIDE || op == OPERATOR_FLOOR_DIVIDE || op == OPERATOR_MODULO) && b == 0)
        return dt_template_error(r, "division by zero");
    switch (op) {
    case OPERATOR_ADD:
        result = a + b;
        break;
    case OPERATOR_SUBTRACT:
        result = a - b;
        break;
    case OPERATOR_MULTIPLY:
        result = a * b;
        break;
    case OPERATOR_DIVIDE:
        result = a / b;
        break;
    default:
        return dt_template_error(r, "'//', '%%' and '**' of floats are not supported");
    }
    *value = dt_template_float(result);
    return 0;
}

static int repeat(struct render *r, struct value v, int64_t times, struct value *value)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    size_t count = times > 0 ? (size_t)times : 0;
    DT_TRY(dt_template_may_use(
        r, count, v.kind == VALUE_STRING ? v.size + 1 : (v.list->count + 1) * 2 * sizeof v));
    if (v.kind == VALUE_STRING) {
        for (size_t i = 0; i < count; i++)
            dt_buffer_append(&b, v.text, v.size);
        DT_TRY(dt_template_buffer(r, &b, value));
        value->safe = v.safe;
        return 0;
    }
    *value = dt_template_list(r, v.list->kind);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < v.list->count; j++)
            DT_TRY(dt_template_append(r, value->list, v.list->items[j]));
    return 0;
}

static void add_escaped(struct dt_buffer *b, struct value v, bool escape)
{
    static const struct {
        char character;
        const char *text;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    for (size_t i = 0; i < v.size; i++) {
        const char *text = NULL;
        for (size_t j = 0; escape && j < sizeof escapes / sizeof *escapes; j++)
            text = v.text[i] == escapes[j].character ? escapes[j].text : text;
        dt_buffer_append(b, text ? text : v.text + i, text ? strlen(text) : 1);
    }
}

/* A "safe" string escapes the other one. */
static int join_strings(struct render *r, struct value a, struct value b, struct value *value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    DT_TRY(dt_template_may_use(r, a.size + b.size, 5));
    add_escaped(&text, a, b.safe && !a.safe);
    add_escaped(&text, b, a.safe && !b.safe);
    DT_TRY(dt_template_buffer(r, &text, value));
    value->safe = a.safe || b.safe;
    return 0;
}

static int join_lists(struct render *r, const struct list *a, const struct list *b,
                      struct value *value)
{
    *value = dt_template_list(r, a->kind);
    for (size_t i = 0; i < a->count + b->count; i++)
        DT_TRY(dt_template_append(r, value->list,
                                  i < a->count ? a->items[i] : b->items[i - a->count]));
    return 0;
}

static bool is_sequence(struct value v)
{
    return v.kind == VALUE_STRING || (v.kind == VALUE_LIST && v.list->kind <= LIST_TUPLE);
}

static int arithmetic(struct render *r, enum operation op, struct value a, struct value b,
                      struct value *value)
{
    DT_TRY(want_defined(r, a));
    DT_TRY(want_defined(r, b));
    if (dt_template_is_number(a) && dt_template_is_number(b)) {
        if (a.kind == VALUE_FLOAT || b.kind == VALUE_FLOAT)
            return reals(r, op, dt_template_real_of(a), dt_template_real_of(b), value);
        return integers(r, op, dt_template_integer_of(a), dt_template_integer_of(b), value);
    }
    if (op == OPERATOR_ADD && a.kind == b.kind && a.kind == VALUE_STRING)
        return join_strings(r, a, b, value);
    if (op == OPERATOR_ADD && a.kind == b.kind && a.kind == VALUE_LIST &&
        a.list->kind == b.list->kind && a.list->kind <= LIST_TUPLE)
        return join_lists(r, a.list, b.list, value);
    if (op == OPERATOR_MULTIPLY && is_sequence(a) && b.kind == VALUE_INT)
        return repeat(r, a, b.integer, value);
    if (op == OPERATOR_MULTIPLY && is_sequence(b) && a.kind == VALUE_INT)
        return repeat(r, b, a.integer, value);
    if (op == OPERATOR_MODULO && a.kind == VALUE_STRING)
        return dt_template_error(r, "formatting by '%%' is not supported");
    return dt_template_error(r, "cannot apply an op to %s and %s", dt_template_kind_name(a),
                             dt_template_kind_name(b));
}

/* a ~ b: as text. */
static int concatenate(struct render *r, struct value a, struct value b, struct value *value)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    int rc = dt_template_add_text(r, a, &text);
    rc = rc == 0 ? dt_template_add_text(r, b, &text) : rc;
    if (rc == 0)
        return dt_template_buffer(r, &text, value);
    dt_buffer_release(&text);
    return rc;
}

static int evaluate_binary(struct render *r, const struct node *node, struct value *value)
{
    struct value a, b;
    DT_TRY(dt_template_evaluate(r, node->first, &a));
    if (node->op == OPERATOR_AND || node->op == OPERATOR_OR) {
        *value = a;
        return dt_template_is_true(a) == (node->op == OPERATOR_OR)
                   ? 0
                   : dt_template_evaluate(r, node->second, value);
    }
    DT_TRY(dt_template_evaluate(r, node->second, &b));
    return node->op == OPERATOR_CONCATENATE ? concatenate(r, a, b, value)
                                            : arithmetic(r, node->op, a, b, value);
}

static int evaluate_unary(struct render *r, const struct node *node, struct value *value)
{
    struct value v;
    DT_TRY(dt_template_evaluate(r, node->first, &v));
    if (node->op == OPERATOR_NOT) {
        *value = dt_template_bool(!dt_template_is_true(v));
        return 0;
    }
    return arithmetic(r, node->op == OPERATOR_NEGATE ? OPERATOR_SUBTRACT : OPERATOR_ADD,
                      v.kind == VALUE_FLOAT && node->op == OPERATOR_NEGATE ? dt_template_float(-0.0)
                                                                           : dt_template_int(0),
                      v, value);
}

static int compare(struct render *r, enum operation op, struct value a, struct value b, bool *holds)
{
    int order;
    switch (op) {
    case OPERATOR_EQUAL:
    case OPERATOR_UNEQUAL:
        *holds = dt_template_equal(r, a, b) == (op == OPERATOR_EQUAL);
        return 0;
    case OPERATOR_IN:
    case OPERATOR_NOT_IN:
        DT_TRY(dt_template_contains(r, b, a, holds));
        *holds = *holds == (op == OPERATOR_IN);
        return 0;
    default:
        DT_TRY(dt_template_compare(r, a, b, &order));
        *holds = (op == OPERATOR_LESS && order < 0) || (op == OPERATOR_LESS_EQUAL && order <= 0) ||
                 (op == OPERATOR_GREATER && order > 0) ||
                 (op == OPERATOR_GREATER_EQUAL && order >= 0);
        return 0;
    }
}

static int evaluate_comparisons(struct render *r, const struct node *node, struct value *value)
{
    struct value a, b;
    bool holds = true;
    DT_TRY(dt_template_evaluate(r, node->first, &a));
    for (size_t i = 0; holds && i < node->items.count; i++) {
        DT_TRY(dt_template_evaluate(r, node->items.items[i]->first, &b));
        DT_TRY(compare(r, node->items.items[i]->op, a, b, &holds));
        a = b;
    }
    *value = dt_template_bool(holds);
    return 0;
}

/* --- calls ------------------------------------------------------------------------------------*/

int dt_template_call(struct render *r, struct value function, const struct value *arguments,
                     size_t count, const char *const *names, size_t name_count,
                     struct value *result)
{
    DT_TRY(want_defined(r, function));
    if (function.kind == VALUE_MACRO)
        return dt_template_call_macro(r, function.macro, arguments, count, names, name_count,
                                      result);
    if (function.kind != VALUE_FUNCTION)
        return dt_template_error(r, "cannot call %s", dt_template_kind_name(function));
    return dt_template_invoke(r, function.bound->function, function.bound->subject, arguments,
                              count, names, name_count, result);
}

static int evaluate_call(struct render *r, const struct node *node, struct value *value)
{
    struct value subject = {.kind = VALUE_UNDEFINED};
    struct value *arguments = dt_template_alloc(&r->arena, node->items.count * sizeof *arguments);
    r->lenient = node->kind != NODE_CALL && dt_template_takes_undefined(node->function);
    if (node->first)
        DT_TRY(dt_template_evaluate(r, node->first, &subject));
    r->lenient = false;
    for (size_t i = 0; i < node->items.count; i++)
        DT_TRY(dt_template_evaluate(r, node->items.items[i], &arguments[i]));
    size_t count = node->items.count - node->name_count;
    if (node->kind != NODE_CALL && node->function == NULL)
        return dt_template_error(r, "the %s '%s' is not supported",
                                 node->kind == NODE_TEST ? "test" : "filter", node->value.text);
    if (node->kind == NODE_CALL)
        return dt_template_call(r, subject, arguments, count, node->names, node->name_count, value);
    return dt_template_invoke(r, node->function, subject, arguments, count, node->names,
                              node->name_count, value);
}

static int evaluate_elements(struct render *r, const struct node *node, struct value *value)
{
    struct value key = dt_template_none(), item;
    *value = node->kind == NODE_DICT ? dt_template_dict(r)
                                     : dt_template_list(r, node->flag ? LIST_TUPLE : LIST_PLAIN);
    for (size_t i = 0; i < node->items.count; i++) {
        DT_TRY(dt_template_evaluate(r, node->items.items[i], &item));
        if (node->kind == NODE_LIST)
            DT_TRY(dt_template_append(r, value->list, item));
        else if (i % 2)
            dt_template_dict_set(r, value->dict, key, item);
        else if (item.kind == VALUE_LIST || item.kind == VALUE_DICT)
            return dt_template_error(r, "%s cannot be a key", dt_template_kind_name(item));
        key = item;
    }
    return node->kind == NODE_DICT ? dt_template_check_nesting(r, value->dict->nesting) : 0;
}

static int evaluate_name(struct render *r, const struct node *node, struct value *value)
{
    if (!dt_template_lookup(r, node->value.text, value)) {
        char *name = dt_asprintf("'%s'", node->value.text);
        *value = dt_template_undefined(r, name);
        free(name);
    }
    return 0;
}

static int evaluate_choice(struct render *r, const struct node *node, struct value *value)
{
    DT_TRY(dt_template_evaluate(r, node->second, value));
    if (dt_template_is_true(*value))
        return dt_template_evaluate(r, node->first, value);
    if (node->third)
        return dt_template_evaluate(r, node->third, value);
    *value = dt_template_undefined(r, "the value of 'if' without 'else'");
    value->optional = true;
    return 0;
}

static int evaluate_item(struct render *r, const struct node *node, struct value *value)
{
    struct value of, key;
    DT_TRY(dt_template_evaluate(r, node->first, &of));
    if (node->kind == NODE_ATTRIBUTE)
        return dt_template_attribute(r, of, node->value.text, node->value.size, value);
    DT_TRY(dt_template_evaluate(r, node->second, &key));
    return dt_template_item(r, of, key, value);
}

static int evaluate(struct render *r, const struct node *node, struct value *value)
{
    switch (node->kind) {
    case NODE_CONSTANT:
        *value = node->value;
        return 0;
    case NODE_NAME:
        return evaluate_name(r, node, value);
    case NODE_LIST:
    case NODE_DICT:
        return evaluate_elements(r, node, value);
    case NODE_ATTRIBUTE:
    case NODE_ITEM:
        return evaluate_item(r, node, value);
    case NODE_SLICE:
        return evaluate_slice(r, node, value);
    case NODE_CALL:
    case NODE_FILTER:
    case NODE_TEST:
        return evaluate_call(r, node, value);
    case NODE_UNARY:
        return evaluate_unary(r, node, value);
    case NODE_BINARY:
        return evaluate_binary(r, node, value);
    case NODE_COMPARE:
        return evaluate_comparisons(r, node, value);
    case NODE_CHOICE:
        return evaluate_choice(r, node, value);
    default:
        return dt_template_error(r, "a statement is not an expression");
    }
}

int dt_template_enter(struct render *r)
{
    return ++r->depth > MOST_DEPTH
               ? dt_template_error(
                     r, "statements, expressions and macros are nested more than %d deep",
                     MOST_DEPTH)
               : 0;
}

int dt_template_evaluate(struct render *r, const struct node *node, struct value *value)
{
    r->line = node->line;
    if (++r->steps > MOST_STEPS)
        return dt_template_error(r, "takes more than %d steps", MOST_STEPS);
    DT_TRY(dt_template_enter(r));
    bool lenient = r->lenient;
    r->lenient = false;
    int rc = evaluate(r, node, value);
    r->depth--;
    rc = rc < 0 ? rc : dt_template_check_spent(r);
    return rc < 0 || lenient ? rc : dt_template_want_usable(r, *value);
}
