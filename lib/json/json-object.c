/* SPDX-License-Identifier: MIT */
#define DT_JSON_UNCHECKED
#include "json/json.h"

#include <limits.h>
#include <stdlib.h>

struct json_object *dt_json_new_object(void)
{
    return dt_checked(json_object_new_object());
}

struct json_object *dt_json_new_array(void)
{
    return dt_checked(json_object_new_array_ext(2));
}

struct json_object *dt_json_new_string(const char *text)
{
    return dt_checked(json_object_new_string(text));
}

struct json_object *dt_json_new_string_len(const char *text, size_t size)
{
    if (size > INT_MAX)
        dt_out_of_memory();
    return dt_checked(json_object_new_string_len(text, (int)size));
}

struct json_object *dt_json_new_int(int64_t value)
{
    return dt_checked(json_object_new_int64(value));
}

struct json_object *dt_json_new_uint(uint64_t value)
{
    return dt_checked(json_object_new_uint64(value));
}

struct json_object *dt_json_new_double_s(double value, const char *text)
{
    return dt_checked(json_object_new_double_s(value, text));
}

struct json_object *dt_json_new_boolean(bool value)
{
    return dt_checked(json_object_new_boolean(value));
}

void dt_json_object_add(struct json_object *object, const char *name, struct json_object *value)
{
    if (json_object_object_add(object, name, value) < 0)
        dt_out_of_memory();
}

void dt_json_array_add(struct json_object *array, struct json_object *value)
{
    if (json_object_array_add(array, value) < 0)
        dt_out_of_memory();
}

static void free_text(struct json_object *value, void *text)
{
    (void)value;
    free(text);
}

const char *dt_json_text(struct json_object *value)
{
    if (value == NULL || json_object_is_type(value, json_type_string))
        return json_object_get_string(value);
    struct dt_buffer text = DT_BUFFER_EMPTY;
    dt_json_add_value(&text, value, DT_JSON_COMPACT);
    json_object_set_userdata(value, text.data, free_text);
    return text.data;
}
