/* SPDX-License-Identifier: MIT */
/* What templates may call: filters, tests, methods of strings, lists and dictionaries, and global
 * functions, each a row of a table. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

/* --- arguments --------------------------------------------------------------------------------*/

int64_t dt_template_int_or(const struct call *c, int i, int64_t otherwise)
{
    return c->given[i] && (c->a[i].kind == VALUE_INT || c->a[i].kind == VALUE_BOOL)
               ? dt_template_integer_of(c->a[i])
               : otherwise;
}

/* The subject as text, as filters of text want it. */
int dt_template_subject_text(struct call *c, struct value *text)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    *text = c->subject;
    if (c->subject.kind == VALUE_STRING)
        return 0;
    int rc = dt_template_add_text(c->r, c->subject, &b);
    if (rc == 0)
        return dt_template_buffer(c->r, &b, text);
    dt_buffer_release(&b);
    return rc;
}

/* Ends a function that writes text: *result is b's, which is released. */
int dt_template_finish(struct call *c, struct dt_buffer *b, int rc, struct value *result)
{
    if (rc == 0)
        return dt_template_buffer(c->r, b, result);
    dt_buffer_release(b);
    return rc;
}

/* --- other filters ----------------------------------------------------------------------------*/

static int safe(struct call *c, struct value *result)
{
    DT_TRY(dt_template_subject_text(c, result));
    result->safe = true;
    return 0;
}

static int string(struct call *c, struct value *result)
{
    return dt_template_subject_text(c, result);
}

/* default(default_value, boolean) */
static int otherwise(struct call *c, struct value *result)
{
    bool boolean = c->given[1] && dt_template_is_true(c->a[1]);
    *result = c->subject;
    if (c->subject.kind == VALUE_UNDEFINED || (boolean && !dt_template_is_true(c->subject)))
        *result = c->given[0] ? c->a[0] : dt_template_text("");
    return 0;
}

/* Without underscores between digits; ends with a zero byte. */
static void add_digits(struct value text, struct dt_buffer *b)
{
    for (size_t i = dt_template_skip_space(text, 0); i < text.size; i++) {
        const char *at = text.text + i;
        if (*at != '_' || i == 0 || i + 1 == text.size || !dt_template_is_digit(at[-1]) ||
            !dt_template_is_digit(at[1]))
            dt_buffer_add_char(b, *at);
    }
    dt_buffer_add_char(b, 0);
}

/* A number of a string as Python's int() and float() read it. */
static bool read_number(struct value text, bool real, struct value *result)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    char *end;
    add_digits(text, &b);
    errno = 0;
    *result =
        real ? dt_template_float(strtod(b.data, &end)) : dt_template_int(strtoll(b.data, &end, 10));
    struct value rest = {
        .kind = VALUE_STRING, .text = end, .size = b.size - 1 - (size_t)(end - b.data)};
    bool whole = end > b.data && dt_template_skip_space(rest, 0) == rest.size &&
                 strpbrk(b.data, "xXpP(") == NULL && (real || errno != ERANGE);
    dt_buffer_release(&b);
    return whole;
}

/* number: 0 int(default, base), 1 float(default) */
static int number(struct call *c, struct value *result)
{
    struct value v = c->subject, read;
    bool real = c->function->number;
    if (v.kind == VALUE_UNDEFINED)
        return dt_template_error(c->r, "%s is undefined", v.text);
    if (!real && c->given[1] && dt_template_int_or(c, 1, 0) != 10)
        return dt_template_error(c->r, "int of another base than 10 is not supported");
    *result = c->given[0] ? c->a[0] : real ? dt_template_float(0) : dt_template_int(0);
    if (v.kind == VALUE_STRING) {
        if (!read_number(v, real, &read) && !read_number(v, true, &read))
            return 0;
        v = read;
    }
    double x = v.kind == VALUE_FLOAT ? v.real : v.kind == VALUE_INT ? (double)v.integer : 0;
    if (v.kind == VALUE_BOOL)
        *result = real ? dt_template_float(v.boolean) : dt_template_int(v.boolean);
    else if (real && (v.kind == VALUE_INT || v.kind == VALUE_FLOAT))
        *result = dt_template_float(x);
    else if (v.kind == VALUE_INT)
        *result = v;
    else if (v.kind == VALUE_FLOAT && fabs(x) < 9e18)
        *result = dt_template_int((int64_t)x);
    else if (v.kind == VALUE_FLOAT && isfinite(x))
        return dt_template_error(c->r, "the number %.17g is beyond 64 bits", x);
    return 0;
}

static int absolute(struct call *c, struct value *result)
{
    *result = c->subject;
    if (c->subject.kind == VALUE_FLOAT)
        result->real = fabs(result->real);
    else if (c->subject.kind != VALUE_INT || result->integer == INT64_MIN)
        return dt_template_error(c->r, "abs of %s", dt_template_kind_name(c->subject));
    else if (result->integer < 0)
        result->integer = -result->integer;
    return 0;
}

/* --- tests ------------------------------------------------------------------------------------*/

enum {
    TEST_DEFINED,
    TEST_UNDEFINED,
    TEST_NONE,
    TEST_STRING,
    TEST_MAPPING,
    TEST_ITERABLE,
    TEST_SEQUENCE,
    TEST_NUMBER,
    TEST_INTEGER,
    TEST_FLOAT,
    TEST_BOOLEAN,
    TEST_TRUE,
    TEST_FALSE,
    TEST_CALLABLE,
    TEST_TRUTHY
};

static bool has_kind(struct value v, int test)
{
    bool sequence = v.kind == VALUE_STRING || v.kind == VALUE_DICT || v.kind == VALUE_UNDEFINED;
    switch (test) {
    case TEST_DEFINED:
        return v.kind != VALUE_UNDEFINED;
    case TEST_UNDEFINED:
        return v.kind == VALUE_UNDEFINED;
    case TEST_NONE:
        return v.kind == VALUE_NONE;
    case TEST_STRING:
        return v.kind == VALUE_STRING;
    case TEST_MAPPING:
        return v.kind == VALUE_DICT;
    case TEST_ITERABLE:
        return sequence || v.kind == VALUE_LIST || v.kind == VALUE_LOOP;
    case TEST_SEQUENCE:
        return sequence ||
               (v.kind == VALUE_LIST && (v.list->kind <= LIST_TUPLE || v.list->kind == LIST_RANGE));
    case TEST_NUMBER:
        return v.kind == VALUE_INT || v.kind == VALUE_FLOAT || v.kind == VALUE_BOOL;
    case TEST_INTEGER:
        return v.kind == VALUE_INT;
    case TEST_FLOAT:
        return v.kind == VALUE_FLOAT;
    case TEST_BOOLEAN:
        return v.kind == VALUE_BOOL;
    case TEST_TRUE:
        return v.kind == VALUE_BOOL && v.boolean;
    case TEST_FALSE:
        return v.kind == VALUE_BOOL && !v.boolean;
    case TEST_CALLABLE:
        return v.kind == VALUE_MACRO || v.kind == VALUE_FUNCTION || v.kind == VALUE_LOOP ||
               v.kind == VALUE_UNDEFINED;
    default:
        return dt_template_is_true(v);
    }
}

static int test_kind(struct call *c, struct value *result)
{
    *result = dt_template_bool(has_kind(c->subject, c->function->number));
    return 0;
}

static int test_order(struct call *c, struct value *result)
{
    enum operation op = (enum operation)c->function->number;
    bool holds;
    int order = 0;
    if (op == OPERATOR_EQUAL || op == OPERATOR_UNEQUAL) {
        holds = dt_template_equal(c->r, c->subject, c->a[0]) == (op == OPERATOR_EQUAL);
    } else if (op == OPERATOR_IN) {
        DT_TRY(dt_template_contains(c->r, c->a[0], c->subject, &holds));
    } else {
        DT_TRY(dt_template_compare(c->r, c->subject, c->a[0], &order));
        holds = op == OPERATOR_LESS         ? order < 0
                : op == OPERATOR_LESS_EQUAL ? order <= 0
                : op == OPERATOR_GREATER    ? order > 0
                                            : order >= 0;
    }
    *result = dt_template_bool(holds);
    return 0;
}

/* number: 0 even, 1 odd, 2 divisibleby */
static int test_division(struct call *c, struct value *result)
{
    int64_t by = c->function->number == 2 ? dt_template_int_or(c, 0, 0) : 2;
    if (c->subject.kind != VALUE_INT || by == 0)
        return dt_template_error(c->r, "'%s' wants integers, and none that is 0",
                                 c->function->name);
    bool divides = by == -1 || c->subject.integer % by == 0;
    *result = dt_template_bool(divides == (c->function->number != 1));
    return 0;
}

/* --- methods and global functions -------------------------------------------------------------*/

static int range(struct call *c, struct value *result)
{
    int64_t from = c->given[1] ? dt_template_int_or(c, 0, 0) : 0,
            step = dt_template_int_or(c, 2, 1);
    int64_t to = c->given[1] ? dt_template_int_or(c, 1, 0) : dt_template_int_or(c, 0, 0);
    *result = dt_template_list(c->r, LIST_RANGE);
    for (int i = 0; i < 3; i++)
        if (c->given[i] && c->a[i].kind != VALUE_INT)
            return dt_template_error(c->r, "range wants integers, not %s",
                                     dt_template_kind_name(c->a[i]));
    if (step == 0)
        return dt_template_error(c->r, "range: the step is 0");
    double count = ceil(((double)to - (double)from) / (double)step);
    if (count > 100000)
        return dt_template_error(c->r, "range of more than 100000 numbers");
    for (int64_t i = 0; i < (int64_t)count; i++)
        DT_TRY(dt_template_append(c->r, result->list, dt_template_int(from + i * step)));
    return 0;
}

/* namespace() and dict() of named arguments, or of a dictionary. */
static int dictionary(struct call *c, struct value *result)
{
    *result = dt_template_dict(c->r);
    if (c->function->number)
        result->kind = VALUE_NAMESPACE;
    if (c->count > 1 || (c->count == 1 && c->arguments[0].kind != VALUE_DICT))
        return dt_template_error(c->r, "%s wants named arguments or a dictionary",
                                 c->function->name);
    for (size_t i = 0; c->count == 1 && i < c->arguments[0].dict->count; i++)
        dt_template_dict_set(c->r, result->dict, c->arguments[0].dict->entries[i].key,
                             c->arguments[0].dict->entries[i].value);
    for (size_t i = 0; i < c->name_count; i++)
        dt_template_dict_set(c->r, result->dict, dt_template_text(c->names[i]),
                             c->arguments[c->count + i]);
    return dt_template_check_nesting(c->r, result->dict->nesting);
}

static int raise_exception(struct call *c, struct value *result)
{
    struct value text;
    c->subject = c->a[0];
    DT_TRY(dt_template_subject_text(c, &text));
    *result = dt_template_none();
    return dt_template_error(c->r, "%.*s", (int)text.size, text.text);
}

/* Without %z and %Z, which are empty for Python's datetime.now(). */
static int without_zones(struct render *r, struct value from, char **pattern)
{
    size_t size = 0, step;
    *pattern = dt_template_copy(&r->arena, from.text, from.size);
    for (size_t i = 0; i < from.size; i += step) {
        char what = from.text[i] == '%' && i + 1 < from.size ? from.text[i + 1] : 0;
        step = what ? 2 : 1;
        if (what == 'f')
            return dt_template_error(r, "%%f in strftime_now is not supported");
        if (what == 'z' || what == 'Z')
            continue;
        memmove(*pattern + size, from.text + i, step);
        size += step;
    }
    (*pattern)[size] = 0;
    return 0;
}

static int strftime_now(struct call *c, struct value *result)
{
    char text[256], *pattern;
    struct tm tm;
    DT_TRY(dt_template_want_string(c->r, c->a[0], "strftime_now"));
    DT_TRY(without_zones(c->r, c->a[0], &pattern));
    localtime_r(&c->r->now, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t size = strftime(text, sizeof text, pattern, &tm);
#pragma GCC diagnostic pop
    if (size == 0 && *pattern)
        return dt_template_error(c->r, "strftime_now: a date of more than 255 bytes");
    return dt_template_string(c->r, text, size, result);
}

/* --- tables -----------------------------------------------------------------------------------*/

static const struct function other_filters[] = {
    {"abs", "", absolute, 0},
    {"d", "default_value boolean", otherwise, 0},
    {"default", "default_value boolean", otherwise, 0},
    {"float", "default", number, 1},
    {"int", "default base", number, 0},
    {"safe", "", safe, 0},
    {"string", "", string, 0},
    {"tojson", "ensure_ascii indent separators sort_keys", dt_template_tojson, 0, SAFE_IS_LOST},
    {NULL, NULL, NULL, 0},
};

static const struct function tests[] = {
    {"boolean", "", test_kind, TEST_BOOLEAN},
    {"callable", "", test_kind, TEST_CALLABLE},
    {"defined", "", test_kind, TEST_DEFINED},
    {"divisibleby", "num /", test_division, 2},
    {"eq", "b /", test_order, OPERATOR_EQUAL},
    {"equalto", "b /", test_order, OPERATOR_EQUAL},
    {"==", "b /", test_order, OPERATOR_EQUAL},
    {"even", "", test_division, 0},
    {"false", "", test_kind, TEST_FALSE},
    {"float", "", test_kind, TEST_FLOAT},
    {"ge", "b /", test_order, OPERATOR_GREATER_EQUAL},
    {"gt", "b /", test_order, OPERATOR_GREATER},
    {"greaterthan", "b /", test_order, OPERATOR_GREATER},
    {"in", "seq /", test_order, OPERATOR_IN},
    {"integer", "", test_kind, TEST_INTEGER},
    {"iterable", "", test_kind, TEST_ITERABLE},
    {"le", "b /", test_order, OPERATOR_LESS_EQUAL},
    {"lessthan", "b /", test_order, OPERATOR_LESS},
    {"lt", "b /", test_order, OPERATOR_LESS},
    {"mapping", "", test_kind, TEST_MAPPING},
    {"ne", "b /", test_order, OPERATOR_UNEQUAL},
    {"none", "", test_kind, TEST_NONE},
    {"number", "", test_kind, TEST_NUMBER},
    {"odd", "", test_division, 1},
    {"sequence", "", test_kind, TEST_SEQUENCE},
    {"string", "", test_kind, TEST_STRING},
    {"true", "", test_kind, TEST_TRUE},
    {"undefined", "", test_kind, TEST_UNDEFINED},
    {NULL, NULL, NULL, 0},
};

static const struct function list_methods[] = {
    {"count", "value /", dt_template_count, 0},
    {"index", "value /", dt_template_index, 0},
    {NULL, NULL, NULL, 0},
};

static const struct function globals[] = {
    {"dict", "*", dictionary, 0},
    {"namespace", "*", dictionary, 1},
    {"raise_exception", "message /", raise_exception, 0},
    {"range", "start / stop step", range, 0},
    {"strftime_now", "format /", strftime_now, 0},
    {NULL, NULL, NULL, 0},
};

/* Methods of Python's types that the tables lack: a dictionary's key of such a name would be
 * hidden by the method in Jinja. The sandbox refuses those that change their object. */
static const char *const other_methods[][40] = {
    {"casefold", "center",     "encode",   "expandtabs",   "format_map", "isalnum",   "isalpha",
     "isascii",  "isdecimal",  "isdigit",  "isidentifier", "islower",    "isnumeric", "isprintable",
     "isspace",  "istitle",    "isupper",  "ljust",        "maketrans",  "partition", "rindex",
     "rjust",    "rpartition", "swapcase", "title",        "translate",  "zfill"},
    {"append", "clear", "copy", "extend", "insert", "pop", "remove", "reverse", "sort"},
    {"clear", "copy", "fromkeys", "pop", "popitem", "setdefault", "update"},
};

static const struct function *find_in(const struct function *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

const struct function *dt_template_find_filter(const char *name)
{
    static const struct function *const tables[] = {dt_template_string_filters,
                                                    dt_template_sequence_filters, other_filters};
    const struct function *found = NULL;
    for (int i = 0; i < 3 && found == NULL; i++)
        found = find_in(tables[i], name);
    return found;
}

bool dt_template_takes_undefined(const struct function *f)
{
    return f && (f->call == otherwise || (f->call == test_kind && (f->number == TEST_DEFINED ||
                                                                   f->number == TEST_UNDEFINED)));
}

const struct function *dt_template_find_test(const char *name)
{
    return find_in(tests, name);
}

const struct function *dt_template_find_global(const char *name)
{
    return find_in(globals, name);
}

int dt_template_find_method(struct render *r, struct value of, const char *name,
                            const struct function **method)
{
    static const struct function *const tables[] = {dt_template_string_methods, list_methods,
                                                    dt_template_dict_methods};
    *method = NULL;
    if (of.kind != VALUE_STRING && of.kind != VALUE_LIST && of.kind != VALUE_DICT)
        return 0;
    int type = of.kind == VALUE_STRING ? 0 : of.kind == VALUE_LIST ? 1 : 2;
    *method = find_in(tables[type], name);
    for (int i = 0; i < 40 && other_methods[type][i]; i++)
        if (strcmp(other_methods[type][i], name) == 0)
            return dt_template_error(r, "the method '%s' of %s is not supported", name,
                                     dt_template_kind_name(of));
    return 0;
}

/* --- calling ----------------------------------------------------------------------------------*/

/* Index of a parameter by name; -1 if there is none. */
static int find_parameter(const char *parameters, const char *name)
{
    int at = 0;
    size_t size = strlen(name);
    for (const char *p = parameters; *p; at += *p != '/', p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == size && memcmp(p, name, size) == 0)
            return at;
    return -1;
}

static void count_parameters(const char *parameters, size_t *needed, size_t *most)
{
    *needed = *most = 0;
    for (const char *p = parameters; *p; p += strcspn(p, " "), p += *p == ' ') {
        if (*p == '/')
            *needed = *most;
        else
            ++*most;
    }
}

static int bind(struct call *c)
{
    size_t needed, most;
    count_parameters(c->function->parameters, &needed, &most);
    if (c->count > most)
        return dt_template_error(c->r, "%s takes %zu argument%s, not %zu", c->function->name, most,
                                 dt_plural(most), c->count);
    for (size_t i = 0; i < c->count + c->name_count; i++) {
        int at = (int)i;
        if (i >= c->count)
            at = find_parameter(c->function->parameters, c->names[i - c->count]);
        if (at < 0 || c->given[at])
            return dt_template_error(c->r, "%s has no argument '%s', or has it twice",
                                     c->function->name, c->names[i - c->count]);
        c->a[at] = c->arguments[i];
        c->given[at] = true;
    }
    for (size_t i = 0; i < needed; i++)
        if (!c->given[i])
            return dt_template_error(c->r, "%s wants %zu argument%s", c->function->name, needed,
                                     dt_plural(needed));
    return 0;
}

int dt_template_invoke(struct render *r, const struct function *f, struct value subject,
                       const struct value *arguments, size_t count, const char *const *names,
                       size_t name_count, struct value *result)
{
    struct call c = {.r = r,
                     .function = f,
                     .subject = subject,
                     .arguments = arguments,
                     .count = count,
                     .names = names,
                     .name_count = name_count};
    bool safe = subject.kind == VALUE_STRING && subject.safe;
    if (safe && f->safe == SAFE_IS_REFUSED)
        return dt_template_error(r, "'%s' of a 'safe' string is not supported", f->name);
    if (strcmp(f->parameters, "*") != 0)
        DT_TRY(bind(&c));
    dt_template_spend(r, subject.kind == VALUE_STRING ? subject.size : 1);
    DT_TRY(dt_template_check_spent(r));
    DT_TRY(f->call(&c, result));
    if (safe && f->safe == SAFE_STAYS && result->kind == VALUE_STRING)
        result->safe = true;
    return 0;
}
