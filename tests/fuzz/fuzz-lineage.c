/* SPDX-License-Identifier: MIT */
/* Records of commands. The fuzzer cannot guess ids, so those of all records are mended first, if
 * the text begins with a space. */
#include "fuzz.h"
#include "io/lineage-internal.h"

static void mend(struct json_object *records)
{
    for (size_t i = 0;
         json_object_is_type(records, json_type_array) && i < json_object_array_length(records);
         i++) {
        struct json_object *record = json_object_array_get_idx(records, i);
        char id[DT_SHA256_HEX];
        if (!json_object_is_type(record, json_type_object))
            continue;
        json_object_object_del(record, "id");
        dt_lineage_hash(record, id);
        dt_json_object_add(record, "id", dt_json_new_string(id));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_object *records;
    struct dt_error err;
    if (size == 0 || dt_json_parse((const char *)data, size, "fuzz", &records, &err) < 0)
        return 0;
    if (data[0] == ' ')
        mend(records);
    if (dt_lineage_check(records, "fuzz", &err) == 0) {
        struct dt_lineage *l = dt_lineage_new();
        dt_lineage_add_input(l, "-", 0, "", records);
        if (dt_lineage_check(dt_lineage_records(l), "fuzz", &err) < 0)
            __builtin_trap();
        dt_lineage_free(l);
    }
    json_object_put(records);
    return 0;
}
