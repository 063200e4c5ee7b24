/* SPDX-License-Identifier: MIT */
#include "json/meta.h"

#include <string.h>

#include "json/json.h"

/* Whether the text has the name in quotation marks, or may have it with escapes. */
static bool may_have(const char *text, const char *name)
{
    size_t size = strlen(name);
    bool found = false;
    for (const char *p = text; *p && (p = strstr(p, name)) != NULL; p++, found = true)
        if (p > text && p[-1] == '"' && p[size] == '"')
            return true;
    return found && strchr(text, '\\') != NULL;
}

/* The object if it may have the member: texts are searched before they are parsed. Owned by the
 * caller; NULL if not. */
static struct json_object *parse(const struct dt_buffer *meta, const char *name)
{
    struct json_object *object;
    struct dt_error ignored;
    if (meta->size == 0 || !may_have(meta->data, name) ||
        dt_json_parse(meta->data, meta->size, "meta", &object, &ignored) < 0)
        return NULL;
    return object;
}

static void remove_member(struct dt_buffer *meta, const char *name)
{
    struct json_object *object = parse(meta, name);
    if (object && json_object_object_get_ex(object, name, NULL)) {
        json_object_object_del(object, name);
        dt_buffer_clear(meta);
        dt_json_add_value(meta, object, DT_JSON_COMPACT);
    }
    json_object_put(object);
}

void dt_meta_set(struct dt_buffer *meta, const char *name, const char *value)
{
    if (meta->size == 0)
        dt_buffer_add_string(meta, "{}");
    remove_member(meta, name);
    size_t used = --meta->size; /* without the brace at the end */
    while (strchr(" \t\r\n", meta->data[used - 1]))
        used--;
    const char *comma = meta->data[used - 1] == '{' ? "" : ",";
    dt_buffer_printf(meta, "%s\"%s\":%s}", comma, name, value);
}

void dt_meta_get_string(const struct dt_buffer *meta, const char *name, struct dt_buffer *value)
{
    struct json_object *object = parse(meta, name), *member;
    dt_buffer_clear(value);
    dt_buffer_add_string(value, "");
    if (object && json_object_object_get_ex(object, name, &member) &&
        json_object_is_type(member, json_type_string))
        dt_buffer_add_string(value, dt_json_text(member));
    json_object_put(object);
}

double dt_meta_get_number(const struct dt_buffer *meta, const char *name, double missing)
{
    struct json_object *object = parse(meta, name), *member;
    if (object && json_object_object_get_ex(object, name, &member) &&
        (json_object_is_type(member, json_type_double) ||
         json_object_is_type(member, json_type_int)))
        missing = json_object_get_double(member);
    json_object_put(object);
    return missing;
}
