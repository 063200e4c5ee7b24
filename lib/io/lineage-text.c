/* SPDX-License-Identifier: MIT */
/* Paths and arguments of records, which need not be UTF-8, as JSON strings, which are. */
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "io/lineage-internal.h"
#include "unicode/utf8.h"

#define OPENING "$'"

struct json_object *dt_lineage_text(const char *text)
{
    const size_t size = strlen(text);
    char spelling[DT_SPELLING];
    if (dt_utf8_valid_prefix(text, size) == size && strncmp(text, OPENING, strlen(OPENING)) != 0)
        return dt_json_new_string_len(text, size);
    struct dt_buffer quoted = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&quoted, OPENING);
    for (size_t i = 0, n; i < size; i += n) {
        n = dt_printable_next(text + i, size - i, spelling);
        if (text[i] == '\'' || text[i] == '\\')
            dt_buffer_add_char(&quoted, '\\');
        if (n == 1 && *spelling)
            dt_buffer_add_string(&quoted, spelling);
        else
            dt_buffer_append(&quoted, text + i, n);
    }
    dt_buffer_add_char(&quoted, '\'');
    struct json_object *string = dt_json_new_string_len(quoted.data, quoted.size);
    dt_buffer_release(&quoted);
    return string;
}

static struct json_object *restored_text(struct json_object *string)
{
    const char *text = dt_json_text(string), *end = text + strlen(text) - 1;
    struct dt_buffer plain = DT_BUFFER_EMPTY;
    unsigned byte;
    if (strncmp(text, OPENING, strlen(OPENING)) != 0 || end - text < 3 || *end != '\'')
        return json_object_get(string);
    for (const char *p = text + strlen(OPENING); p < end; p++) {
        if (*p == '\\' && p[1] == 'x' && sscanf(p + 2, "%2x", &byte) == 1) {
            dt_buffer_add_char(&plain, (char)byte);
            p += 3;
        } else {
            p += *p == '\\';
            dt_buffer_add_char(&plain, *p);
        }
    }
    struct json_object *value = dt_json_new_string_len(plain.data, plain.size);
    dt_buffer_release(&plain);
    return value;
}

static struct json_object *restored(struct json_object *value);

static struct json_object *restored_members(struct json_object *object)
{
    struct json_object *copy = dt_json_new_object();
    json_object_object_foreach(object, name, value)
    {
        dt_json_object_add(copy, name, restored(value));
    }
    return copy;
}

static struct json_object *restored(struct json_object *value)
{
    if (json_object_is_type(value, json_type_string))
        return restored_text(value);
    if (json_object_is_type(value, json_type_object))
        return restored_members(value);
    if (!json_object_is_type(value, json_type_array))
        return json_object_get(value);
    struct json_object *copy = dt_json_new_array();
    for (size_t i = 0; i < json_object_array_length(value); i++)
        dt_json_array_add(copy, restored(json_object_array_get_idx(value, i)));
    return copy;
}

int dt_lineage_read_restored(const char *path, struct json_object **records, struct dt_error *err)
{
    struct json_object *written;
    *records = NULL;
    DT_TRY(dt_lineage_read(path, &written, err));
    *records = restored(written);
    json_object_put(written);
    return 0;
}
