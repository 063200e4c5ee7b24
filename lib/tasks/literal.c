/* SPDX-License-Identifier: MIT */
#include "tasks/literal.h"

#include <stdlib.h>
#include <string.h>

#include "unicode/utf8.h"
#include "json/json-number.h"

#define MOST_DEPTH 50

struct reader {
    const char *start, *p, *end;
    int depth;
    struct dt_error *err;
};

static int fail(const struct reader *r, const char *what)
{
    size_t size = (size_t)(r->end - r->start);
    return dt_fail(r->err, DT_EFORMAT, "%s at byte %zu of a list or value of Python: %.*s", what,
                   (size_t)(r->p - r->start), (int)(size < 100 ? size : 100), r->start);
}

static void skip_space(struct reader *r)
{
    while (r->p < r->end && strchr(" \t\r\n", *r->p))
        r->p++;
}

static int add_code(struct reader *r, int digits, struct dt_buffer *b)
{
    char text[9] = "", *rest, bytes[4];
    if (r->end - r->p < digits)
        return fail(r, "an escape that ends too early");
    memcpy(text, r->p, (size_t)digits);
    uint32_t code = (uint32_t)strtoul(text, &rest, 16);
    if (*rest || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return fail(r, "an escape of a wrong code point");
    r->p += digits;
    dt_buffer_append(b, bytes, dt_utf8_encode(code, bytes));
    return 0;
}

/* After the backslash. */
static int add_escape(struct reader *r, struct dt_buffer *b)
{
    static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    if (r->p == r->end)
        return fail(r, "an escape that ends too early");
    char c = *r->p++;
    const char *known = c ? strchr(letters, c) : NULL;
    if (c == 'x' || c == 'u' || c == 'U')
        return add_code(r, c == 'x' ? 2 : c == 'u' ? 4 : 8, b);
    if (known == NULL)
        return fail(r, "an escape that is not supported");
    dt_buffer_add_char(b, values[known - letters]);
    return 0;
}

static int read_string(struct reader *r, struct json_object **value)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    char quote = *r->p++;
    int rc = 0;
    while (rc == 0 && r->p < r->end && *r->p != quote)
        if (*r->p == '\\')
            r->p++, rc = add_escape(r, &b);
        else
            dt_buffer_add_char(&b, *r->p++);
    if (rc == 0 && r->p == r->end)
        rc = fail(r, "a string without an end");
    if (rc == 0)
        *value = dt_json_new_string_len(b.size ? b.data : "", b.size);
    r->p++;
    dt_buffer_release(&b);
    return rc;
}

static int read_value(struct reader *r, struct json_object **value);

static int read_list(struct reader *r, struct json_object **value)
{
    char close = *r->p++ == '[' ? ']' : ')';
    *value = dt_json_new_array();
    if (++r->depth > MOST_DEPTH)
        return fail(r, "lists too deep");
    for (;;) {
        struct json_object *item = NULL;
        skip_space(r);
        if (r->p < r->end && *r->p == close)
            break;
        int rc = read_value(r, &item);
        dt_json_array_add(*value, item);
        DT_TRY(rc);
        skip_space(r);
        if (r->p < r->end && *r->p == ',')
            r->p++;
        else if (r->p == r->end || *r->p != close)
            return fail(r, "a missing comma or bracket");
    }
    r->p++;
    r->depth--;
    return 0;
}

static int read_word(struct reader *r, struct json_object **value)
{
    static const char *const words[] = {"None", "False", "True"};
    char digits[64], *rest;
    size_t size = 0;
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(r->end - r->p) < length || memcmp(r->p, words[i], length) != 0)
            continue;
        r->p += length;
        *value = i == 0 ? NULL : dt_json_new_boolean(i == 2);
        return 0;
    }
    while (r->p + size < r->end && size < sizeof digits - 1 && r->p[size] &&
           strchr("+-.0123456789eE", r->p[size]))
        size++;
    memcpy(digits, r->p, size);
    digits[size] = 0;
    bool real = strpbrk(digits, ".eE") != NULL;
    double number = real ? strtod(digits, &rest) : 0;
    long long whole = real ? 0 : strtoll(digits, &rest, 10);
    if (size == 0 || *rest)
        return fail(r, "what is neither text, number nor list");
    r->p += size;
    *value = real ? dt_json_new_double_s(number, digits) : dt_json_new_int(whole);
    return 0;
}

static int read_value(struct reader *r, struct json_object **value)
{
    skip_space(r);
    if (r->p == r->end)
        return fail(r, "an end that is too early");
    if (*r->p == '\'' || *r->p == '"')
        return read_string(r, value);
    return *r->p == '[' || *r->p == '(' ? read_list(r, value) : read_word(r, value);
}

int dt_literal_parse(const char *text, size_t size, struct json_object **value,
                     struct dt_error *err)
{
    struct reader r = {.start = text, .p = text, .end = text + size, .err = err};
    *value = NULL;
    int rc = read_value(&r, value);
    skip_space(&r);
    if (rc == 0 && r.p < r.end)
        rc = fail(&r, "more text");
    if (rc == 0)
        return 0;
    json_object_put(*value);
    *value = NULL;
    return rc;
}
