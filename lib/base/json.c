/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte-scan.h"
#include "base/file.h"
#include "base/json-number.h"

#define JSON_LIMIT ((size_t)1 << 30)

static int line_of(const char *text, size_t offset)
{
    int line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static bool only_white_space(const char *p, size_t n)
{
    while (n > 0 && strchr(" \t\r\n", *p) && *p)
        p++, n--;
    return n == 0;
}

/* The number of four hexadecimal digits at p, -1 if they are none. */
static int hex4(const char *p, const char *end)
{
    int n = 0;
    for (int i = 0; i < 4; i++) {
        if (p + i >= end || !isxdigit((unsigned char)p[i]))
            return -1;
        n = 16 * n + (p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
    }
    return n;
}

/* Copies text, escaped surrogate pairs as the characters that they are: json-c
 * 0.16 makes U+FFFD of those whose low 16 bits are a surrogate's. */
static void resolve_pairs(const char *text, size_t size, struct dt_buffer *plain)
{
    const char *end = text + size;
    for (const char *p = text, *next; p < end; p = next) {
        next = memchr(p, '\\', (size_t)(end - p));
        next = next ? next : end;
        dt_buffer_append(plain, p, (size_t)(next - p));
        if (end - next < 2) {
            dt_buffer_append(plain, next, (size_t)(end - next));
            break;
        }
        int high = next[1] == 'u' ? hex4(next + 2, end) : -1;
        int low = high >= 0 && end - next >= 8 && memcmp(next + 6, "\\u", 2) == 0
                      ? hex4(next + 8, end)
                      : -1;
        if (high >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10) {
            int c = 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
            char utf8[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
                            (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))};
            dt_buffer_append(plain, utf8, 4);
            next += 12;
        } else {
            dt_buffer_append(plain, next, 2);
            next += 2;
        }
    }
}

/* Of the byte at offset. */
static int fail_at(const char *text, size_t size, size_t offset, const char *subject,
                   const char *reason, struct dt_error *err)
{
    int line = line_of(text, offset < size ? offset : size);
    if (line == 1)
        return dt_fail(err, DT_EFORMAT, "%s: byte %zu: %s", subject, offset, reason);
    return dt_fail(err, DT_EFORMAT, "%s: line %d: %s", subject, line, reason);
}

static int parse(const char *text, size_t size, const char *subject, struct json_object **value,
                 struct dt_error *err)
{
    *value = NULL;
    if (size > INT_MAX)
        return dt_fail(err, DT_EFORMAT, "%s: JSON text of %zu bytes is too long", subject, size);
    struct json_tokener *t = json_tokener_new();
    json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    struct json_object *v = json_tokener_parse_ex(t, text, (int)size);
    enum json_tokener_error e = json_tokener_get_error(t);
    size_t end = json_tokener_get_parse_end(t);
    if (e == json_tokener_continue && size > 0) /* a bare number ends only with the text */
        v = json_tokener_parse_ex(t, "", 1), e = json_tokener_get_error(t);
    json_tokener_free(t);
    if (e == json_tokener_success && only_white_space(text + end, size - end)) {
        *value = v;
        return 0;
    }
    bool ends_early = e == json_tokener_continue || e == json_tokener_error_parse_eof;
    const char *reason = e == json_tokener_success ? "text follows the JSON value"
                         : ends_early              ? "JSON text ends too early"
                                                   : json_tokener_error_desc(e);
    json_object_put(v);
    return fail_at(text, size, end, subject, reason, err);
}

static int parse_paired(const char *text, size_t size, const char *subject,
                        struct json_object **value, struct dt_error *err)
{
    if (memmem(text, size, "\\ud", 3) == NULL && memmem(text, size, "\\uD", 3) == NULL)
        return parse(text, size, subject, value, err);
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    resolve_pairs(text, size, &plain);
    int rc = parse(plain.data, plain.size, subject, value, err);
    dt_buffer_release(&plain);
    return rc;
}

int dt_json_parse(const char *text, size_t size, const char *subject, struct json_object **value,
                  struct dt_error *err)
{
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    size_t at = 0;
    *value = NULL;
    int rc = dt_json_resolve_numbers(text, size, &plain, &at);
    if (rc < 0)
        fail_at(text, size, at, subject, "is not a number of JSON", err);
    else if (plain.size > 0)
        rc = parse_paired(plain.data, plain.size, subject, value, err);
    else
        rc = parse_paired(text, size, subject, value, err);
    dt_buffer_release(&plain);
    return rc;
}

int dt_json_read(const char *path, struct json_object **value, struct dt_error *err)
{
    char *text;
    size_t size;
    *value = NULL;
    DT_TRY(dt_file_read(path, JSON_LIMIT, &text, &size, err));
    int rc = dt_json_parse(text, size, path, value, err);
    free(text);
    return rc;
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
        return dt_fail(err, DT_EFORMAT, "%s: has no member \"%s\"", subject, name);
    if (!json_object_is_type(*value, type))
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is not %s", subject, name,
                       type_name(type));
    return 0;
}

int dt_json_get_int(struct json_object *object, const char *name, const char *subject,
                    int64_t *value, struct dt_error *err)
{
    struct json_object *v;
    DT_TRY(dt_json_get(object, name, json_type_int, subject, &v, err));
    *value = json_object_get_int64(v); /* json-c clamps what does not fit */
    if (*value == INT64_MAX || *value == INT64_MIN)
        return dt_fail(err, DT_EFORMAT, "%s: member \"%s\" is too large a number", subject, name);
    return 0;
}

int dt_json_get_string(struct json_object *object, const char *name, const char *subject,
                       const char **value, struct dt_error *err)
{
    struct json_object *v;
    DT_TRY(dt_json_get(object, name, json_type_string, subject, &v, err));
    *value = json_object_get_string(v);
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

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

size_t dt_json_plain(const char *text, size_t size)
{
    size_t i = 0;
    for (; i + DT_BLOCK <= size; i += DT_BLOCK) {
        dt_block b = dt_block_load(text + i);
        size_t n = dt_block_first((dt_block)((b < 0x20) | (b == '"') | (b == '\\') | (b == 0x7f)));
        if (n < DT_BLOCK)
            return i + n;
    }
    while (i < size && is_plain((unsigned char)text[i]))
        i++;
    return i;
}

/* What stands behind the backslash for c; 0: only its number does. */
static char escape_letter(unsigned char c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return c == '"' || c == '\\' ? (char)c : 0;
    }
}

void dt_json_add_string(struct dt_buffer *b, const char *text, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    dt_buffer_reserve(b, b->size + size + 2);
    dt_buffer_add_char(b, '"');
    for (size_t i = 0; i < size; i++) {
        size_t plain = dt_json_plain(text + i, size - i);
        dt_buffer_append(b, text + i, plain);
        i += plain;
        if (i == size)
            break;
        unsigned char c = (unsigned char)text[i];
        char letter = escape_letter(c);
        char escape[6] = {'\\', letter ? letter : 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        dt_buffer_append(b, escape, letter ? 2 : 6);
    }
    dt_buffer_add_char(b, '"');
}

int dt_json_write(const char *path, struct json_object *value, struct dt_error *err)
{
    int flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&b, json_object_to_json_string_ext(value, flags));
    dt_buffer_add_char(&b, '\n');
    int rc = dt_file_write(path, b.data, b.size, err);
    dt_buffer_release(&b);
    return rc;
}
