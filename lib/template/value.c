/* SPDX-License-Identifier: MIT */
/* Values, with the truth, equality, order and text that Python gives them. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/template-internal.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

#define MOST_MEMORY ((size_t)256 << 20)
#define MOST_NESTED 1000
#define MOST_PARTS  ((size_t)1 << 24)
#define MOST_WORK   1000000000u
#define COMPARISON  4 /* bytes of text that are read in its time */

int dt_template_error(struct render *r, const char *fmt, ...)
{
    char text[DT_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->line == 0) /* in what the template is given */
        return dt_fail(r->err, DT_EFORMAT, "%s: %s", r->template->subject, text);
    return dt_fail(r->err, DT_EFORMAT, "%s, line %ld: %s", r->template->subject, r->line, text);
}

int dt_template_may_use(struct render *r, size_t count, size_t size)
{
    size_t free = MOST_MEMORY - (r->arena.used < MOST_MEMORY ? r->arena.used : MOST_MEMORY);
    if (count > free / size)
        return dt_template_error(r, "needs more than %zu MB of memory", MOST_MEMORY >> 20);
    return 0;
}

void dt_template_spend(struct render *r, size_t count)
{
    r->work += count;
}

bool dt_template_is_spent(const struct render *r)
{
    return r->work > MOST_WORK;
}

int dt_template_check_spent(struct render *r)
{
    return dt_template_is_spent(r)
               ? dt_template_error(r, "reads more than %u bytes and items in all", MOST_WORK)
               : 0;
}

struct value dt_template_none(void)
{
    return (struct value){.kind = VALUE_NONE};
}

struct value dt_template_bool(bool boolean)
{
    return (struct value){.kind = VALUE_BOOL, .boolean = boolean};
}

struct value dt_template_int(int64_t integer)
{
    return (struct value){.kind = VALUE_INT, .integer = integer};
}

struct value dt_template_float(double real)
{
    return (struct value){.kind = VALUE_FLOAT, .real = real};
}

struct value dt_template_text(const char *text)
{
    return (struct value){.kind = VALUE_STRING, .text = text, .size = strlen(text)};
}

struct value dt_template_undefined(struct render *r, const char *name)
{
    size_t size = strlen(name);
    return (struct value){
        .kind = VALUE_UNDEFINED, .text = dt_template_copy(&r->arena, name, size), .size = size};
}

int dt_template_string(struct render *r, const char *text, size_t size, struct value *value)
{
    DT_TRY(dt_template_may_use(r, size, 1));
    *value = (struct value){
        .kind = VALUE_STRING, .text = dt_template_copy(&r->arena, text, size), .size = size};
    return 0;
}

int dt_template_buffer(struct render *r, struct dt_buffer *b, struct value *value)
{
    int rc = dt_template_string(r, b->data, b->size, value);
    dt_buffer_release(b);
    return rc;
}

/* --- lists and dictionaries -------------------------------------------------------------------*/

struct value dt_template_list(struct render *r, enum list_kind kind)
{
    struct list *list = dt_template_alloc(&r->arena, sizeof *list);
    list->kind = kind;
    return (struct value){.kind = VALUE_LIST, .list = list};
}

/* Room for one more of count elements; the old array stays in the arena. */
static void *grow(struct arena *a, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 4;
    void *grown = dt_template_alloc(a, *capacity * size);
    if (count > 0)
        memcpy(grown, items, count * size);
    return grown;
}

static struct nesting nesting_of(struct value v)
{
    if (v.kind == VALUE_FUNCTION) /* equal ones have equal subjects */
        v = v.bound->subject;
    return v.kind == VALUE_LIST   ? v.list->nesting
           : v.kind == VALUE_DICT ? v.dict->nesting
                                  : (struct nesting){0};
}

/* Adds a part to what holds it. */
static void nest(struct nesting *n, struct value part)
{
    struct nesting inner = nesting_of(part);
    n->depth = n->depth > inner.depth ? n->depth : inner.depth + 1;
    n->parts += inner.parts + 1;
}

int dt_template_check_nesting(struct render *r, struct nesting nesting)
{
    if (nesting.depth > MOST_NESTED)
        return dt_template_error(r, "a value is nested more than %d deep", MOST_NESTED);
    if (nesting.parts > MOST_PARTS)
        return dt_template_error(r, "a value has more than %zu parts", MOST_PARTS);
    return 0;
}

int dt_template_append(struct render *r, struct list *list, struct value value)
{
    DT_TRY(dt_template_may_use(r, 2 * list->count + 4, sizeof value));
    nest(&list->nesting, value);
    DT_TRY(dt_template_check_nesting(r, list->nesting));
    list->items = grow(&r->arena, list->items, list->count, &list->capacity, sizeof value);
    list->items[list->count++] = value;
    return 0;
}

struct value dt_template_dict(struct render *r)
{
    return (struct value){.kind = VALUE_DICT,
                          .dict = dt_template_alloc(&r->arena, sizeof(struct dict))};
}

struct value *dt_template_dict_find(struct render *r, const struct dict *d, struct value key)
{
    for (size_t i = 0; i < d->count; i++)
        if (dt_template_equal(r, d->entries[i].key, key))
            return &d->entries[i].value;
    return NULL;
}

struct value *dt_template_dict_get(struct render *r, const struct dict *d, const char *name,
                                   size_t size)
{
    return dt_template_dict_find(r, d,
                                 (struct value){.kind = VALUE_STRING, .text = name, .size = size});
}

void dt_template_dict_set(struct render *r, struct dict *d, struct value key, struct value value)
{
    struct value *old = dt_template_dict_find(r, d, key);
    nest(&d->nesting, value);
    if (old) {
        *old = value;
        return;
    }
    d->entries = grow(&r->arena, d->entries, d->count, &d->capacity, sizeof *d->entries);
    d->entries[d->count++] = (struct entry){key, value};
}

/* Filters and methods read characters, of which the template's own texts consist. */
static int from_string(struct render *r, const char *text, size_t size, struct value *value)
{
    if (dt_utf8_valid_prefix(text, size) != size)
        return dt_template_error(r, "a text that the template is given is not UTF-8");
    return dt_template_string(r, text, size, value);
}

static int from_object(struct render *r, struct json_object *json, struct value *value)
{
    *value = dt_template_dict(r);
    json_object_object_foreach(json, name, member)
    {
        struct value key, item;
        DT_TRY(from_string(r, name, strlen(name), &key));
        DT_TRY(dt_template_from_json(r, member, &item));
        struct dict *d = value->dict; /* names differ, and are not looked for */
        nest(&d->nesting, item);
        d->entries = grow(&r->arena, d->entries, d->count, &d->capacity, sizeof *d->entries);
        d->entries[d->count++] = (struct entry){key, item};
    }
    return 0;
}

static int from_number(struct render *r, struct json_object *json, struct value *value)
{
    if (json_object_is_type(json, json_type_int)) {
        *value = dt_template_int(json_object_get_int64(json));
        if (value->integer < INT64_MAX || strcmp(dt_json_text(json), "9223372036854775807") == 0)
            return 0;
        return dt_template_error(r, "the number %s is beyond 64 bits", dt_json_text(json));
    }
    *value = dt_template_float(json_object_get_double(json));
    if (strpbrk(dt_json_text(json), ".eE") == NULL)
        return dt_template_error(r, "the number %s is beyond 64 bits", dt_json_text(json));
    return 0;
}

int dt_template_from_json(struct render *r, struct json_object *json, struct value *value)
{
    *value = dt_template_none();
    switch (json_object_get_type(json)) {
    case json_type_boolean:
        *value = dt_template_bool(json_object_get_boolean(json));
        return 0;
    case json_type_int:
    case json_type_double:
        return from_number(r, json, value);
    case json_type_string:
        return from_string(r, dt_json_text(json), (size_t)json_object_get_string_len(json), value);
    case json_type_object:
        return from_object(r, json, value);
    case json_type_array:
        *value = dt_template_list(r, LIST_PLAIN);
        for (size_t i = 0; i < json_object_array_length(json); i++) {
            struct value item;
            DT_TRY(dt_template_from_json(r, json_object_array_get_idx(json, i), &item));
            DT_TRY(dt_template_append(r, value->list, item));
        }
        return 0;
    case json_type_null:
        break;
    }
    return 0;
}

/* --- truth, equality, order -------------------------------------------------------------------*/

bool dt_template_is_true(struct value v)
{
    switch (v.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
        return v.boolean;
    case VALUE_INT:
        return v.integer != 0;
    case VALUE_FLOAT:
        return v.real != 0;
    case VALUE_STRING:
        return v.size > 0;
    case VALUE_LIST:
        return v.list->count > 0 || v.list->kind == LIST_GENERATOR;
    case VALUE_DICT:
        return v.dict->count > 0;
    case VALUE_NAMESPACE:
    case VALUE_LOOP:
    case VALUE_MACRO:
    case VALUE_FUNCTION:
        break;
    }
    return true;
}

bool dt_template_is_number(struct value v)
{
    return v.kind == VALUE_BOOL || v.kind == VALUE_INT || v.kind == VALUE_FLOAT;
}

int64_t dt_template_integer_of(struct value v)
{
    return v.kind == VALUE_BOOL ? v.boolean : v.integer;
}

double dt_template_real_of(struct value v)
{
    return v.kind == VALUE_FLOAT ? v.real : (double)dt_template_integer_of(v);
}

/* < 0, 0, > 0; 2 if one is not a number. */
static int compare_numbers(struct value a, struct value b)
{
    if (a.kind != VALUE_FLOAT && b.kind != VALUE_FLOAT)
        return (dt_template_integer_of(a) > dt_template_integer_of(b)) -
               (dt_template_integer_of(a) < dt_template_integer_of(b));
    double x = dt_template_real_of(a), y = dt_template_real_of(b);
    return x == y ? 0 : x < y ? -1 : x > y ? 1 : 2;
}

static bool equal_lists(struct render *r, const struct list *a, const struct list *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!dt_template_equal(r, a->items[i], b->items[i]))
            return false;
    return true;
}

static bool equal_dicts(struct render *r, const struct dict *a, const struct dict *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct value *other = dt_template_dict_find(r, b, a->entries[i].key);
        if (other == NULL || !dt_template_equal(r, a->entries[i].value, *other))
            return false;
    }
    return true;
}

bool dt_template_equal(struct render *r, struct value a, struct value b)
{
    if (dt_template_is_spent(r))
        return false;
    dt_template_spend(r, COMPARISON);
    if (dt_template_is_number(a) && dt_template_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case VALUE_STRING:
        dt_template_spend(r, a.size == b.size ? a.size : 0);
        return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
    case VALUE_LIST:
        return equal_lists(r, a.list, b.list);
    case VALUE_DICT:
        return equal_dicts(r, a.dict, b.dict);
    case VALUE_NAMESPACE:
        return a.dict == b.dict;
    case VALUE_LOOP:
        return a.loop == b.loop;
    case VALUE_MACRO:
        return a.macro == b.macro;
    case VALUE_FUNCTION:
        return a.bound->function == b.bound->function &&
               dt_template_equal(r, a.bound->subject, b.bound->subject);
    default:
        return true;
    }
}

static int compare_lists(struct render *r, const struct list *a, const struct list *b, int *order)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (!dt_template_equal(r, a->items[i], b->items[i]))
            return dt_template_compare(r, a->items[i], b->items[i], order);
    *order = (a->count > b->count) - (a->count < b->count);
    return 0;
}

int dt_template_compare(struct render *r, struct value a, struct value b, int *order)
{
    if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
        return dt_template_error(r, "%s is undefined", (a.kind ? b : a).text);
    DT_TRY(dt_template_check_spent(r));
    dt_template_spend(r, COMPARISON);
    if (a.kind == VALUE_STRING && b.kind == VALUE_STRING) {
        size_t size = a.size < b.size ? a.size : b.size;
        dt_template_spend(r, size);
        int bytes = size ? memcmp(a.text, b.text, size) : 0;
        *order = bytes ? bytes : (a.size > b.size) - (a.size < b.size);
        return 0;
    }
    if (a.kind == VALUE_LIST && b.kind == VALUE_LIST && a.list->kind == b.list->kind &&
        a.list->kind <= LIST_TUPLE)
        return compare_lists(r, a.list, b.list, order);
    if (!dt_template_is_number(a) || !dt_template_is_number(b))
        return dt_template_error(r, "cannot compare %s with %s", dt_template_kind_name(a),
                                 dt_template_kind_name(b));
    *order = compare_numbers(a, b);
    return *order == 2 ? dt_template_error(r, "cannot compare a NaN") : 0;
}

/* --- text -------------------------------------------------------------------------------------*/

const char *dt_template_kind_name(struct value v)
{
    static const char *const names[] = {
        [VALUE_UNDEFINED] = "an undefined value",
        [VALUE_NONE] = "None",
        [VALUE_BOOL] = "a boolean",
        [VALUE_INT] = "an integer",
        [VALUE_FLOAT] = "a float",
        [VALUE_STRING] = "a string",
        [VALUE_LIST] = "a list",
        [VALUE_DICT] = "a dictionary",
        [VALUE_NAMESPACE] = "a namespace",
        [VALUE_LOOP] = "a loop",
        [VALUE_MACRO] = "a macro",
        [VALUE_FUNCTION] = "a function",
    };
    return names[v.kind];
}

int dt_template_want_string(struct render *r, struct value v, const char *who)
{
    if (v.kind == VALUE_STRING)
        return 0;
    if (v.kind == VALUE_UNDEFINED)
        return dt_template_error(r, "%s is undefined", v.text);
    return dt_template_error(r, "%s wants a string, not %s", who, dt_template_kind_name(v));
}

int dt_template_want_usable(struct render *r, struct value v)
{
    bool refused =
        v.kind == VALUE_UNDEFINED && r->template->kind == DT_TEMPLATE_TASK && !v.optional;
    return refused ? dt_template_error(r, "%s is undefined", v.text) : 0;
}

void dt_template_add_float(struct dt_buffer *b, double x)
{
    char text[40];
    int precision = 1;
    if (isinf(x) || isnan(x)) {
        dt_buffer_add_string(b, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(text, sizeof text, "%.*e", precision - 1, x);
    while (strtod(text, NULL) != x && ++precision <= 17);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent >= -4 && exponent < 16) {
        int decimals = precision - 1 - exponent;
        snprintf(text, sizeof text, "%.*f", decimals > 1 ? decimals : 1, x);
    }
    dt_buffer_add_string(b, text);
}

static bool is_printable(uint32_t code)
{
    static const unsigned hidden =
        1u << DT_CATEGORY_CC | 1u << DT_CATEGORY_CF | 1u << DT_CATEGORY_CS | 1u << DT_CATEGORY_CO |
        1u << DT_CATEGORY_CN | 1u << DT_CATEGORY_ZL | 1u << DT_CATEGORY_ZP | 1u << DT_CATEGORY_ZS;
    return code == ' ' || !(hidden >> dt_unicode_category(code) & 1);
}

static void add_escaped(struct dt_buffer *b, const char *text, size_t length, uint32_t code,
                        char quote)
{
    static const char letters[] = "\n\r\t\\", meanings[] = "nrt\\";
    const char *letter = code && code < 128 ? strchr(letters, (int)code) : NULL;
    if (letter || code == (uint32_t)quote)
        dt_buffer_printf(b, "\\%c", letter ? meanings[letter - letters] : quote);
    else if (is_printable(code))
        dt_buffer_append(b, text, length);
    else if (code < 0x100)
        dt_buffer_printf(b, "\\x%02" PRIx32, code);
    else
        dt_buffer_printf(b, code < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, code);
}

static void add_string_repr(struct dt_buffer *b, const char *text, size_t size)
{
    bool single = memchr(text, '\'', size) != NULL, twice = memchr(text, '"', size) != NULL;
    char quote = single && !twice ? '"' : '\'';
    dt_buffer_add_char(b, quote);
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        length = dt_utf8_next(text + i, size - i, &code);
        add_escaped(b, text + i, length, code, quote);
    }
    dt_buffer_add_char(b, quote);
}

static int add_list(struct render *r, const struct list *l, struct dt_buffer *b)
{
    bool tuple = l->kind == LIST_TUPLE;
    if (l->kind > LIST_TUPLE)
        return dt_template_error(r, "a generator or view has no text: use |list or |join");
    dt_buffer_add_char(b, tuple ? '(' : '[');
    for (size_t i = 0; i < l->count; i++) {
        dt_buffer_add_string(b, i ? ", " : "");
        DT_TRY(dt_template_add_repr(r, l->items[i], b));
    }
    dt_buffer_add_string(b, tuple ? l->count == 1 ? ",)" : ")" : "]");
    return 0;
}

static int add_dict(struct render *r, const struct dict *d, struct dt_buffer *b)
{
    dt_buffer_add_char(b, '{');
    for (size_t i = 0; i < d->count; i++) {
        dt_buffer_add_string(b, i ? ", " : "");
        DT_TRY(dt_template_add_repr(r, d->entries[i].key, b));
        dt_buffer_add_string(b, ": ");
        DT_TRY(dt_template_add_repr(r, d->entries[i].value, b));
    }
    dt_buffer_add_char(b, '}');
    return 0;
}

int dt_template_add_repr(struct render *r, struct value v, struct dt_buffer *b)
{
    DT_TRY(dt_template_may_use(r, b->size, 1));
    switch (v.kind) {
    case VALUE_NONE:
        dt_buffer_add_string(b, "None");
        return 0;
    case VALUE_BOOL:
        dt_buffer_add_string(b, v.boolean ? "True" : "False");
        return 0;
    case VALUE_INT:
        dt_buffer_printf(b, "%" PRId64, v.integer);
        return 0;
    case VALUE_FLOAT:
        dt_template_add_float(b, v.real);
        return 0;
    case VALUE_STRING:
        if (v.safe)
            return dt_template_error(r, "the text of a list with a 'safe' string is not supported");
        add_string_repr(b, v.text, v.size);
        return 0;
    case VALUE_LIST:
        return add_list(r, v.list, b);
    case VALUE_DICT:
        return add_dict(r, v.dict, b);
    case VALUE_UNDEFINED:
        dt_buffer_add_string(b, "Undefined");
        return 0;
    case VALUE_NAMESPACE:
    case VALUE_LOOP:
    case VALUE_MACRO:
    case VALUE_FUNCTION:
        break;
    }
    return dt_template_error(r, "%s has no text", dt_template_kind_name(v));
}

int dt_template_add_text(struct render *r, struct value v, struct dt_buffer *b)
{
    DT_TRY(dt_template_may_use(r, b->size + (v.kind == VALUE_STRING ? v.size : 0), 1));
    if (v.kind == VALUE_STRING)
        dt_buffer_append(b, v.text, v.size);
    else if (v.kind != VALUE_UNDEFINED)
        return dt_template_add_repr(r, v, b);
    else
        return dt_template_want_usable(r, v);
    return 0;
}
