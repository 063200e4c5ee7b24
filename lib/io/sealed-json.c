/* SPDX-License-Identifier: MIT */
#include "io/sealed-json.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "hash/sha256.h"

#define SEAL "seal"

static void hash_of(struct json_object *object, char hex[DT_SHA256_HEX])
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    struct dt_sha256 hash;
    dt_json_add_value(&text, object, DT_JSON_COMPACT);
    dt_sha256_init(&hash);
    dt_sha256_add(&hash, text.data, text.size);
    dt_sha256_finish(&hash, hex);
    dt_buffer_release(&text);
}

int dt_sealed_json_write(const char *path, struct json_object *object, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    hash_of(object, hex);
    dt_json_object_add(object, SEAL, dt_json_new_string(hex));
    return dt_json_write(path, object, err);
}

/* 1 if the bytes of the file are those that dt_sealed_json_write writes, 0 if not. */
static int is_as_written(const char *path, struct json_object *object, struct dt_error *err)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    char *bytes;
    size_t size;
    DT_TRY(dt_file_read(path, SIZE_MAX - 1, &bytes, &size, err));
    dt_json_add_value(&text, object, DT_JSON_SPACED);
    dt_buffer_add_char(&text, '\n');
    int same = size == text.size && memcmp(bytes, text.data, size) == 0;
    free(bytes);
    dt_buffer_release(&text);
    return same;
}

/* Whether a member has the form of a seal: its name was changed. */
static bool has_nameless_seal(struct json_object *object)
{
    json_object_object_foreach(object, name, value)
    {
        (void)name;
        if (json_object_is_type(value, json_type_string) &&
            strspn(dt_json_text(value), "0123456789abcdef") == DT_SHA256_HEX - 1)
            return true;
    }
    return false;
}

static int changed(const char *path, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: was changed: its seal is not that of its content", path);
}

/* Compares the hash without the seal, and the bytes with it. */
static int check(const char *path, struct json_object *object, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    struct json_object *seal;
    if (!json_object_is_type(object, json_type_object))
        return changed(path, err);
    if (!json_object_object_get_ex(object, SEAL, &seal))
        return has_nameless_seal(object) ? changed(path, err) : 0;
    int whole = is_as_written(path, object, err);
    if (whole < 0)
        return whole;
    seal = json_object_get(seal);
    json_object_object_del(object, SEAL);
    hash_of(object, hex);
    whole = whole && json_object_is_type(seal, json_type_string) &&
            strcmp(hex, dt_json_text(seal)) == 0;
    json_object_put(seal);
    return whole ? 1 : changed(path, err);
}

int dt_sealed_json_check(const char *path, struct dt_error *err)
{
    struct json_object *object = NULL;
    DT_TRY(dt_json_read(path, &object, err));
    int rc = check(path, object, err);
    json_object_put(object);
    return rc;
}
