/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "io/lineage-internal.h"

/* The SHA-256 of a record without its id. */
void dt_lineage_hash(struct json_object *record, char hex[DT_SHA256_HEX])
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_sha256 hash;
    dt_json_add_value(&text, record, DT_JSON_COMPACT);
    dt_sha256_init(&hash);
    dt_sha256_add(&hash, text.data, text.size);
    dt_sha256_finish(&hash, hex);
    dt_buffer_release(&text);
}

const char *dt_lineage_id(struct json_object *record)
{
    struct json_object *id;
    return json_object_object_get_ex(record, "id", &id) ? dt_json_text(id) : "";
}

bool dt_lineage_has(struct json_object *records, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(dt_lineage_id(json_object_array_get_idx(records, i)), id) == 0)
            return true;
    return false;
}

static int check_strings(struct json_object *record, const char *subject, struct dt_error *err)
{
    const char *text;
    struct json_object *arguments;
    DT_TRY(dt_json_get_string(record, "program", subject, &text, err));
    DT_TRY(dt_json_get_string(record, "version", subject, &text, err));
    DT_TRY(dt_json_get(record, "arguments", json_type_array, subject, &arguments, err));
    for (size_t i = 0; i < json_object_array_length(arguments); i++)
        if (!json_object_is_type(json_object_array_get_idx(arguments, i), json_type_string))
            return dt_fail(err, DT_EFORMAT, "%s: an argument is not a string", subject);
    return 0;
}

/* Inputs of record i name only records before it, whose ids are the members of earlier. */
static int check_inputs(struct json_object *records, size_t i, struct json_object *earlier,
                        const char *subject, struct dt_error *err)
{
    struct json_object *inputs, *from;
    const char *text;
    DT_TRY(dt_json_get(json_object_array_get_idx(records, i), "inputs", json_type_array, subject,
                       &inputs, err));
    for (size_t k = 0; k < json_object_array_length(inputs); k++) {
        struct json_object *input = json_object_array_get_idx(inputs, k);
        if (!json_object_is_type(input, json_type_object))
            return dt_fail(err, DT_EFORMAT, "%s: an input is not an object", subject);
        DT_TRY(dt_json_get_string(input, "path", subject, &text, err));
        if (!json_object_object_get_ex(input, "from", &from))
            continue;
        DT_TRY(dt_json_get_string(input, "from", subject, &text, err));
        if (!json_object_object_get_ex(earlier, text, NULL))
            return dt_fail(err, DT_EFORMAT,
                           "%s: record %zu names a record that does not come before it", subject,
                           i + 1);
    }
    return 0;
}

static int check_id(struct json_object *record, const char *subject, size_t number,
                    struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    const char *id;
    DT_TRY(dt_json_get_string(record, "id", subject, &id, err));
    struct json_object *kept = json_object_get(json_object_object_get(record, "id"));
    json_object_object_del(record, "id");
    dt_lineage_hash(record, hex);
    bool same = strcmp(hex, dt_json_text(kept)) == 0;
    dt_json_object_add(record, "id", kept);
    return same ? 0
                : dt_fail(err, DT_EFORMAT,
                          "%s: record %zu was changed: its id is not that of its content", subject,
                          number);
}

static int check_records(struct json_object *records, struct json_object *earlier,
                         const char *subject, struct dt_error *err)
{
    for (size_t i = 0; i < json_object_array_length(records); i++) {
        struct json_object *record = json_object_array_get_idx(records, i);
        if (!json_object_is_type(record, json_type_object))
            return dt_fail(err, DT_EFORMAT, "%s: record %zu is not an object", subject, i + 1);
        DT_TRY(check_strings(record, subject, err));
        DT_TRY(check_id(record, subject, i + 1, err));
        DT_TRY(check_inputs(records, i, earlier, subject, err));
        dt_json_object_add(earlier, dt_lineage_id(record), dt_json_new_boolean(true));
    }
    return 0;
}

int dt_lineage_check(struct json_object *records, const char *subject, struct dt_error *err)
{
    if (!json_object_is_type(records, json_type_array))
        return dt_fail(err, DT_EFORMAT, "%s: the lineage is not an array", subject);
    struct json_object *earlier = dt_json_new_object();
    int rc = check_records(records, earlier, subject, err);
    json_object_put(earlier);
    return rc;
}
