/* SPDX-License-Identifier: MIT */
#include "json/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json-scan.h"

#define JSON_LIMIT  ((size_t)1 << 30)
#define JSON_MEMORY ((size_t)2 << 30)

/* Bytes that json-c takes for a value besides its text, rounded up. */
enum { SCALAR = 96, ARRAY = 160, OBJECT = 800, MEMBER = 160 };

static int line_of(const char *text, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

struct reader {
    struct dt_json_scan scan;
    struct dt_buffer text; /* the last string or number, or the reason of an error */
    const char *member;    /* the innermost one around the value, NULL if none is */
    bool strict;           /* NaN and Infinity are errors */
    bool takes_zeros;      /* in names: DT_JSON_ZERO */
    size_t taken;          /* memory */
};

/* A whole number of 64 bits is an integer; any other number keeps its digits beside its value. */
static struct json_object *number_of(const char *digits)
{
    errno = 0;
    long long whole = strtoll(digits, NULL, 10);
    unsigned long long positive = errno == 0 ? 0 : (errno = 0, strtoull(digits, NULL, 10));
    if (strpbrk(digits, ".eE") || errno != 0 || (positive > 0 && *digits == '-'))
        return dt_json_new_double_s(strtod(digits, NULL), digits);
    return positive > 0 ? dt_json_new_uint(positive) : dt_json_new_int(whole);
}

/* The length of text that resembles a number but is not one: 0x10, 01, 1.5.2. */
static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

static bool read_number(struct reader *r, struct json_object **value)
{
    const char *from = r->scan.p;
    if (!dt_json_skip_number(&r->scan) || is_word(dt_json_peek(&r->scan))) {
        r->scan.p = from;
        return dt_json_scan_fail(&r->scan, "is not a number of JSON");
    }
    dt_buffer_clear(&r->text);
    dt_buffer_append(&r->text, from, (size_t)(r->scan.p - from));
    *value = number_of(r->text.data);
    return true;
}

/* Before the memory is taken. */
static bool take(struct reader *r, size_t bytes)
{
    r->taken += bytes;
    return r->taken <= JSON_MEMORY ||
           dt_json_scan_fail(&r->scan, "the values so far would take more than 2 GiB of memory");
}

static bool read_value(struct reader *r, int depth, struct json_object **value);

/* The name of a member, the last string that was read, of which the caller owns a copy; NULL: its
 * zero bytes are not supported. */
static char *copy_name(struct reader *r)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    const char *p = r->text.data, *end = p + r->text.size;
    if (strlen(p) == r->text.size)
        return dt_strdup(p);
    if (!r->takes_zeros || memchr(p, DT_JSON_ZERO[0], r->text.size))
        return NULL;
    for (; p < end; p += strlen(p) + 1) {
        dt_buffer_add_string(&name, p);
        if (p + strlen(p) < end)
            dt_buffer_add_string(&name, DT_JSON_ZERO);
    }
    return name.data;
}

/* What follows the bracket of an object. */
static bool read_members(struct reader *r, int depth, struct json_object *object)
{
    bool good = true;
    if (dt_json_skip_char(&r->scan, '}'))
        return true;
    do {
        struct dt_json_span span;
        struct json_object *member = NULL;
        if (!dt_json_skip_name(&r->scan, &span))
            return false;
        if (!take(r, MEMBER + (size_t)(span.to - span.from)))
            return false;
        dt_json_unescape(span, &r->text);
        char *name = copy_name(r);
        if (name == NULL)
            return dt_json_scan_fail(&r->scan, "a member's name contains a zero byte");
        const char *outer = r->member;
        r->member = name;
        good = read_value(r, depth, &member);
        r->member = outer;
        dt_json_object_add(object, name, member);
        free(name);
    } while (good && dt_json_skip_char(&r->scan, ','));
    return good &&
           (dt_json_skip_char(&r->scan, '}') || dt_json_scan_fail(&r->scan, "',' or '}' expected"));
}

static bool read_elements(struct reader *r, int depth, struct json_object *array)
{
    bool good = true;
    if (dt_json_skip_char(&r->scan, ']'))
        return true;
    do {
        struct json_object *element = NULL;
        good = read_value(r, depth, &element);
        dt_json_array_add(array, element);
    } while (good && dt_json_skip_char(&r->scan, ','));
    return good &&
           (dt_json_skip_char(&r->scan, ']') || dt_json_scan_fail(&r->scan, "',' or ']' expected"));
}

/* NaN and Infinity are not JSON, but Python's json writes them: read as null, or refused. */
static const char *const nulls[] = {"null", "NaN", "Infinity", "-Infinity"};
#define NULLS (sizeof nulls / sizeof *nulls)

static bool check_word(struct reader *r)
{
    const char *from = r->scan.p;
    for (size_t i = 1; i < NULLS; i++) {
        if (!dt_json_skip_word(&r->scan, nulls[i]))
            continue;
        r->scan.p = from;
        dt_buffer_clear(&r->text);
        if (r->member)
            dt_buffer_printf(&r->text, "member \"%s\": ", r->member);
        dt_buffer_printf(&r->text, "%s is not a value of JSON", nulls[i]);
        return dt_json_scan_fail(&r->scan, r->text.data);
    }
    return true;
}

static bool read_word(struct reader *r, struct json_object **value)
{
    for (size_t i = 0; i < NULLS; i++)
        if (dt_json_skip_word(&r->scan, nulls[i]))
            return true;
    bool is_true = dt_json_skip_word(&r->scan, "true");
    if (!is_true && !dt_json_skip_word(&r->scan, "false"))
        return false;
    *value = dt_json_new_boolean(is_true);
    return true;
}

/* depth: objects and arrays around the value. Of a value with an error *value is the part before
 * it. */
static bool read_value(struct reader *r, int depth, struct json_object **value)
{
    struct dt_json_span span;
    dt_json_skip_space(&r->scan);
    char c = dt_json_peek(&r->scan);
    if ((c == '{' || c == '[') && depth == DT_JSON_DEEPEST)
        return dt_json_scan_fail(&r->scan, "nesting too deep");
    switch (c) {
    case '{':
        if (!take(r, OBJECT))
            return false;
        r->scan.p++;
        return read_members(r, depth + 1, *value = dt_json_new_object());
    case '[':
        if (!take(r, ARRAY))
            return false;
        r->scan.p++;
        return read_elements(r, depth + 1, *value = dt_json_new_array());
    case '"':
        if (!dt_json_skip_string(&r->scan, &span) ||
            !take(r, SCALAR + (size_t)(span.to - span.from)))
            return false;
        dt_json_unescape(span, &r->text);
        *value = dt_json_new_string_len(r->text.data, r->text.size);
        return true;
    default:
        if (!take(r, SCALAR) || (r->strict && !check_word(r)))
            return false;
        if (read_word(r, value))
            return true;
        return c == '-' || (c >= '0' && c <= '9') ? read_number(r, value) : false;
    }
}

/* good: a value was read. */
static int refuse_text(const struct reader *r, const char *text, bool good, const char *subject,
                       struct dt_error *err)
{
    size_t place = (size_t)(r->scan.p - text);
    const char *reason = good                       ? "text follows the JSON value"
                         : r->scan.p == r->scan.end ? "JSON text ends too early"
                                                    : r->scan.reason;
    int line = line_of(text, place);
    if (line == 1)
        return dt_fail(err, DT_EFORMAT, "%s: byte %zu: %s", subject, place, reason);
    return dt_fail(err, DT_EFORMAT, "%s: line %d: %s", subject, line, reason);
}

static int parse(struct reader *r, const char *text, size_t size, const char *subject,
                 struct json_object **value, struct dt_error *err)
{
    r->scan = (struct dt_json_scan){.p = text, .end = text + size};
    *value = NULL;
    bool good = read_value(r, 0, value);
    dt_json_skip_space(&r->scan);
    size_t place = (size_t)(r->scan.p - text);
    int rc = 0;
    if (!good || place < size) {
        rc = refuse_text(r, text, good, subject, err);
        json_object_put(*value);
        *value = NULL;
    }
    dt_buffer_release(&r->text);
    return rc;
}

int dt_json_parse(const char *text, size_t size, const char *subject, struct json_object **value,
                  struct dt_error *err)
{
    return parse(&(struct reader){.strict = false}, text, size, subject, value, err);
}

static int read_file(const char *path, bool takes_zeros, struct json_object **value,
                     struct dt_error *err)
{
    struct reader r = {.strict = true, .takes_zeros = takes_zeros};
    char *text;
    size_t size;
    *value = NULL;
    DT_TRY(dt_file_read(path, JSON_LIMIT, &text, &size, err));
    int rc = parse(&r, text, size, path, value, err);
    free(text);
    return rc;
}

int dt_json_read(const char *path, struct json_object **value, struct dt_error *err)
{
    return read_file(path, false, value, err);
}

int dt_json_read_with_zeros(const char *path, struct json_object **value, struct dt_error *err)
{
    return read_file(path, true, value, err);
}

static const char *type_name(enum json_type type)
{
    return type == json_type_object   ? "an object"
           : type == json_type_array  ? "an array"
           : type == json_type_string ? "a string"
           : type == json_type_int    ? "a whole number"
           : type == json_type_double ? "a number"
                                      : "true or false";
}

int dt_json_get(struct json_object *object, const char *name, enum json_type type,
                const char *subject, struct json_object **value, struct dt_error *err)
{
    *value = NULL;
    if (!json_object_is_type(object, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", subject);
    if (!json_object_object_get_ex(object, name, value))
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is missing", subject, name);
    if (!json_object_is_type(*value, type))
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is not %s", subject, name,
                       type_name(type));
    return 0;
}

int dt_json_get_int(struct json_object *object, const char *name, const char *subject,
                    int64_t *value, struct dt_error *err)
{
    struct json_object *v;
    bool has_type = dt_json_get(object, name, json_type_int, subject, &v, err) == 0;
    bool too_large =
        json_object_is_type(v, json_type_double) && strpbrk(dt_json_text(v), ".eE") == NULL;
    *value = json_object_get_int64(v); /* json-c clamps what does not fit */
    if (!has_type && !too_large)
        return err->code;
    if (too_large || *value == INT64_MAX || *value == INT64_MIN)
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is too large a number", subject, name);
    return 0;
}

int dt_json_get_string(struct json_object *object, const char *name, const char *subject,
                       const char **value, struct dt_error *err)
{
    struct json_object *v;
    DT_TRY(dt_json_get(object, name, json_type_string, subject, &v, err));
    *value = dt_json_text(v);
    if (strlen(*value) != (size_t)json_object_get_string_len(v))
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" holds a zero byte", subject, name);
    return 0;
}

int dt_json_get_real(struct json_object *object, const char *name, const char *subject,
                     double *value, struct dt_error *err)
{
    struct json_object *v;
    if (dt_json_get(object, name, json_type_int, subject, &v, err) < 0)
        DT_TRY(dt_json_get(object, name, json_type_double, subject, &v, err));
    *value = json_object_get_double(v);
    if (!isfinite(*value))
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is too large a number", subject, name);
    return 0;
}

int dt_json_check_flags(struct json_object *object, const char *const *names, const char *subject,
                        struct dt_error *err)
{
    for (; *names; names++) {
        struct json_object *value = json_object_object_get(object, *names);
        if (value && !json_object_is_type(value, json_type_boolean))
            return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is not true or false", subject,
                           *names);
    }
    return 0;
}
