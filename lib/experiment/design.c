/* SPDX-License-Identifier: MIT */
#include "experiment/design.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "json/yaml.h"

int dt_design_open(struct json_object **design, const char *path, struct dt_error *err)
{
    if (path == NULL) {
        *design = dt_json_new_object();
        return 0;
    }
    DT_TRY(dt_yaml_read(path, design, err));
    if (json_object_is_type(*design, json_type_object))
        return 0;
    json_object_put(*design);
    return dt_fail(err, DT_EFORMAT, "%s: must be a mapping of keys to values", path);
}

void dt_design_set(struct json_object *design, const char *key, const char *value)
{
    dt_json_object_add(design, key, dt_json_new_string(value));
}

void dt_design_set_list(struct json_object *design, const char *key, const char *const *items,
                        int count)
{
    struct json_object *list = dt_json_new_array();
    for (int i = 0; i < count; i++)
        dt_json_array_add(list, dt_json_new_string(items[i]));
    dt_json_object_add(design, key, list);
}

static struct json_object *split(const char *text)
{
    struct json_object *list = dt_json_new_array();
    for (bool more = true; more;) {
        size_t size = strcspn(text, ",");
        dt_json_array_add(list, dt_json_new_string_len(text, size));
        more = text[size] == ',';
        text += size + 1;
    }
    return list;
}

int dt_design_add(struct json_object *design, const char *key, const char *pair, bool list,
                  const char *option, struct dt_error *err)
{
    const char *sign = strchr(pair, '=');
    struct json_object *mapping;
    if (sign == NULL || sign == pair)
        return dt_fail(err, DT_EINVALID, "%s takes NAME=VALUE, not '%s'", option, pair);
    if (!json_object_object_get_ex(design, key, &mapping) ||
        !json_object_is_type(mapping, json_type_object)) {
        mapping = dt_json_new_object();
        dt_json_object_add(design, key, mapping);
    }
    char *name = dt_strndup(pair, (size_t)(sign - pair));
    dt_json_object_add(mapping, name, list ? split(sign + 1) : dt_json_new_string(sign + 1));
    free(name);
    return 0;
}
