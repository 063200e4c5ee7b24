/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "json/json-scan.h"
#include "json/json.h"

/* The letter of the escape for c; 0 if it needs \u. */
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

static void add_line(struct dt_buffer *b, int level, enum dt_json_style style)
{
    if (style == DT_JSON_COMPACT)
        return;
    dt_buffer_add_char(b, '\n');
    for (int i = 0; i < level; i++)
        dt_buffer_add_string(b, "  ");
}

/* With 17 digits, and with a fraction where the number is whole, unless its digits were given. */
static void add_double(struct dt_buffer *b, struct json_object *value)
{
    const char *digits = json_object_get_userdata(value);
    double x = json_object_get_double(value);
    char text[40];
    snprintf(text, sizeof text, "%.17g", x);
    if (digits)
        dt_buffer_add_string(b, digits);
    else
        dt_buffer_printf(b, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void add_integer(struct dt_buffer *b, struct json_object *value)
{
    int64_t x = json_object_get_int64(value);
    if (x < INT64_MAX)
        dt_buffer_printf(b, "%" PRId64, x);
    else
        dt_buffer_printf(b, "%" PRIu64, json_object_get_uint64(value));
}

static void add_value(struct dt_buffer *b, struct json_object *value, int level,
                      enum dt_json_style style);

static void add_members(struct dt_buffer *b, struct json_object *object, int level,
                        enum dt_json_style style)
{
    const char *comma = "";
    json_object_object_foreach(object, name, value)
    {
        dt_buffer_add_string(b, comma);
        add_line(b, level + 1, style);
        dt_json_add_string(b, name, strlen(name));
        dt_buffer_add_string(b, style == DT_JSON_SPACED ? ": " : ":");
        add_value(b, value, level + 1, style);
        comma = ",";
    }
}

static void add_elements(struct dt_buffer *b, struct json_object *array, int level,
                         enum dt_json_style style)
{
    for (size_t i = 0; i < json_object_array_length(array); i++) {
        dt_buffer_add_string(b, i > 0 ? "," : "");
        add_line(b, level + 1, style);
        add_value(b, json_object_array_get_idx(array, i), level + 1, style);
    }
}

/* level: objects and arrays around the value. */
static void add_value(struct dt_buffer *b, struct json_object *value, int level,
                      enum dt_json_style style)
{
    enum json_type type = json_object_get_type(value);
    bool is_object = type == json_type_object;
    if (is_object || type == json_type_array) {
        dt_buffer_add_char(b, is_object ? '{' : '[');
        (is_object ? add_members : add_elements)(b, value, level, style);
        add_line(b, level, style);
        dt_buffer_add_char(b, is_object ? '}' : ']');
    } else if (type == json_type_string) {
        size_t size = (size_t)json_object_get_string_len(value);
        dt_json_add_string(b, dt_json_text(value), size);
    } else if (type == json_type_int) {
        add_integer(b, value);
    } else if (type == json_type_double) {
        add_double(b, value);
    } else {
        bool is_true = json_object_get_boolean(value);
        dt_buffer_add_string(b, type == json_type_null ? "null" : is_true ? "true" : "false");
    }
}

void dt_json_add_value(struct dt_buffer *b, struct json_object *value, enum dt_json_style style)
{
    add_value(b, value, 0, style);
}

int dt_json_write(const char *path, struct json_object *value, struct dt_error *err)
{
    struct dt_buffer b = DT_BUFFER_EMPTY;
    dt_json_add_value(&b, value, DT_JSON_SPACED);
    dt_buffer_add_char(&b, '\n');
    int rc = dt_file_write(path, b.data, b.size, err);
    dt_buffer_release(&b);
    return rc;
}
