/* SPDX-License-Identifier: MIT */
#include "model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"

#define MOST_HEADER 100000000u

/* --- writing -----------------------------------------------------------------------------------
 */

struct sink {
    struct dt_output out;
    ZSTD_CStream *zstd; /* NULL: bytes go out as they are */
    char *chunk;
};

static int put(struct sink *s, const void *data, size_t size, bool last, struct dt_error *err)
{
    if (s->zstd == NULL)
        return dt_output_write(&s->out, data, size, err);
    ZSTD_inBuffer in = {data, size, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {s->chunk, ZSTD_CStreamOutSize(), 0};
        left = ZSTD_compressStream2(s->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return dt_fail(err, DT_EIO, "cannot compress '%s': %s", s->out.path,
                           ZSTD_getErrorName(left));
        DT_TRY(dt_output_write(&s->out, out.dst, out.pos, err));
    } while (last ? left != 0 : in.pos < in.size);
    return 0;
}

static size_t bytes_of(const struct dt_named_tensor *t)
{
    return (size_t)t->shape[0] * (size_t)(t->rank == 2 ? t->shape[1] : 1) * sizeof(float);
}

static void make_header(const struct dt_named_tensor *tensors, int count, struct dt_buffer *b)
{
    uint64_t at = 0;
    dt_buffer_add_string(b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < count; i++) {
        const struct dt_named_tensor *t = &tensors[i];
        dt_buffer_printf(b, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%" PRId64, t->name, t->shape[0]);
        if (t->rank == 2)
            dt_buffer_printf(b, ",%" PRId64, t->shape[1]);
        dt_buffer_printf(b, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + bytes_of(t));
        at += bytes_of(t);
    }
    dt_buffer_add_char(b, '}');
    while (b->size % 8 != 0)
        dt_buffer_add_char(b, ' ');
}

static int write_all(struct sink *s, const struct dt_named_tensor *tensors, int count,
                     const struct dt_buffer *header, struct dt_error *err)
{
    uint64_t size = header->size; /* little-endian, as every machine dt runs on */
    DT_TRY(put(s, &size, sizeof size, false, err));
    DT_TRY(put(s, header->data, header->size, false, err));
    for (int i = 0; i < count; i++)
        DT_TRY(put(s, tensors[i].data, bytes_of(&tensors[i]), false, err));
    return put(s, "", 0, true, err);
}

int dt_safetensors_write(const char *path, const struct dt_named_tensor *tensors, int count,
                         bool compress, struct dt_error *err)
{
    struct sink s = {.zstd = NULL};
    struct dt_buffer header = DT_BUFFER_EMPTY;
    DT_TRY(dt_output_open(&s.out, path, err));
    if (compress) {
        s.zstd = ZSTD_createCStream();
        ZSTD_CCtx_setParameter(s.zstd, ZSTD_c_compressionLevel, 1);
        ZSTD_CCtx_setParameter(s.zstd, ZSTD_c_checksumFlag, 1);
        s.chunk = dt_alloc(ZSTD_CStreamOutSize(), 1);
    }
    make_header(tensors, count, &header);
    int rc = write_all(&s, tensors, count, &header, err);
    rc = rc < 0 ? rc : dt_output_commit(&s.out, err);
    dt_output_abandon(&s.out);
    dt_buffer_release(&header);
    ZSTD_freeCStream(s.zstd);
    free(s.chunk);
    return rc;
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* A tensor that the file names, and where its bytes lie behind the header. */
struct entry {
    const char *name;
    struct json_object *shape;
    uint64_t from, to;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

static bool is_ignored(const char *name, const char *const *ignored)
{
    size_t n = strlen(name);
    for (; ignored && *ignored; ignored++) {
        size_t suffix = strlen(*ignored);
        if (n >= suffix && strcmp(name + n - suffix, *ignored) == 0)
            return true;
    }
    return false;
}

static int bad(const char *path, const char *name, const char *reason, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: tensor '%s' %s", path, name, reason);
}

/* A whole number without sign; json-c would make one of anything. */
static bool get_size(struct json_object *value, uint64_t *size)
{
    *size = json_object_get_uint64(value);
    return json_object_is_type(value, json_type_int) &&
           (json_object_get_int64(value) >= 0 || *size > INT64_MAX);
}

static bool count_bytes(struct json_object *shape, uint64_t *bytes)
{
    *bytes = sizeof(float);
    for (size_t i = 0; i < json_object_array_length(shape); i++) {
        uint64_t size;
        if (!get_size(json_object_array_get_idx(shape, i), &size) ||
            __builtin_mul_overflow(*bytes, size, bytes))
            return false;
    }
    return true;
}

static int parse_entry(const char *path, const char *name, struct json_object *value,
                       struct entry *e, struct dt_error *err)
{
    struct json_object *offsets;
    const char *dtype;
    uint64_t bytes;
    if (!json_object_is_type(value, json_type_object))
        return bad(path, name, "is not a JSON object", err);
    DT_TRY(dt_json_get_string(value, "dtype", path, &dtype, err));
    DT_TRY(dt_json_get(value, "shape", json_type_array, path, &e->shape, err));
    DT_TRY(dt_json_get(value, "data_offsets", json_type_array, path, &offsets, err));
    e->name = name;
    if (json_object_array_length(offsets) != 2 ||
        !get_size(json_object_array_get_idx(offsets, 0), &e->from) ||
        !get_size(json_object_array_get_idx(offsets, 1), &e->to))
        return bad(path, name, "has no two data_offsets", err);
    if (strcmp(dtype, "F32") != 0)
        return bad(path, name, "is not of type F32", err);
    if (!count_bytes(e->shape, &bytes))
        return bad(path, name, "has a shape that cannot be", err);
    if (e->to < e->from || e->to - e->from != bytes)
        return bad(path, name, "has offsets that do not fit its shape", err);
    return 0;
}

static int check_metadata(const char *path, struct json_object *metadata, struct dt_error *err)
{
    bool good = json_object_is_type(metadata, json_type_object);
    if (good) {
        json_object_object_foreach(metadata, name, value)
        {
            (void)name;
            good = good && json_object_is_type(value, json_type_string);
        }
    }
    return good ? 0 : dt_fail(err, DT_EFORMAT, "%s: __metadata__ is not a map of strings", path);
}

/* Collects the entries in file order and checks that they cover it without gap or overlap. */
static int parse_header(const char *path, struct json_object *header, uint64_t data_size,
                        struct entry *entries, int *count, struct dt_error *err)
{
    uint64_t at = 0;
    *count = 0;
    json_object_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            DT_TRY(check_metadata(path, value, err));
            continue;
        }
        DT_TRY(parse_entry(path, name, value, &entries[*count], err));
        (*count)++;
    }
    qsort(entries, (size_t)*count, sizeof *entries, compare_entries);
    for (int i = 0; i < *count; i++) {
        if (entries[i].from != at)
            return bad(path, entries[i].name, "leaves a gap or overlaps another", err);
        at = entries[i].to;
    }
    if (at != data_size)
        return dt_fail(err, DT_EFORMAT,
                       "%s: holds %" PRIu64 " bytes of data, its header says %" PRIu64, path,
                       data_size, at);
    return 0;
}

static int find(const struct dt_named_tensor *tensors, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return i;
    return -1;
}

static bool same_shape(const struct dt_named_tensor *t, struct json_object *shape)
{
    if (json_object_array_length(shape) != (size_t)t->rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (json_object_get_int64(json_object_array_get_idx(shape, (size_t)i)) != t->shape[i])
            return false;
    return true;
}

static int copy_entries(const char *path, const struct entry *entries, int entry_count,
                        const struct dt_named_tensor *tensors, int count,
                        const char *const *ignored, const char *data, struct dt_error *err)
{
    bool *seen = dt_alloc((size_t)count, sizeof *seen);
    int rc = 0;
    for (int i = 0; rc == 0 && i < entry_count; i++) {
        const struct entry *e = &entries[i];
        int t = find(tensors, count, e->name);
        if (t < 0 && !is_ignored(e->name, ignored))
            rc = bad(path, e->name, "is not one of this model", err);
        else if (t >= 0 && !same_shape(&tensors[t], e->shape))
            rc = bad(path, e->name, "has another shape than the model's", err);
        if (t < 0 || rc < 0)
            continue;
        memcpy(tensors[t].data, data + e->from, e->to - e->from);
        seen[t] = true;
    }
    for (int t = 0; rc == 0 && t < count; t++)
        if (!seen[t])
            rc = dt_fail(err, DT_EFORMAT, "%s: has no tensor '%s'", path, tensors[t].name);
    free(seen);
    return rc;
}

/* Whole file in memory, decompressed if it is zstd. */
static int read_bytes(const char *path, char **data, size_t *size, struct dt_error *err)
{
    DT_TRY(dt_file_read(path, SIZE_MAX / 2, data, size, err));
    if (*size < 4 || memcmp(*data, "\x28\xb5\x2f\xfd", 4) != 0)
        return 0;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    ZSTD_DStream *zstd = ZSTD_createDStream();
    ZSTD_inBuffer in = {*data, *size, 0};
    size_t rc = 1;
    while (in.pos < in.size && !ZSTD_isError(rc)) {
        dt_buffer_reserve(&out, out.size + ZSTD_DStreamOutSize());
        ZSTD_outBuffer o = {out.data + out.size, ZSTD_DStreamOutSize(), 0};
        rc = ZSTD_decompressStream(zstd, &o, &in);
        out.size += o.pos;
    }
    ZSTD_freeDStream(zstd);
    free(*data);
    *data = out.data;
    *size = out.size;
    if (rc == 0)
        return 0;
    free(out.data);
    *data = NULL;
    return dt_fail(err, DT_EFORMAT, "%s: %s", path,
                   ZSTD_isError(rc) ? ZSTD_getErrorName(rc) : "ends too early");
}

/* Members of all objects in a JSON text: colons outside of strings. */
static size_t count_colons(const char *text, size_t size)
{
    size_t count = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else
            count += !quoted && text[i] == ':';
    }
    return count;
}

static size_t count_members(struct json_object *value)
{
    size_t count = 0;
    if (!json_object_is_type(value, json_type_object))
        return 0;
    json_object_object_foreach(value, name, member)
    {
        (void)name;
        count += 1 + count_members(member);
    }
    return count;
}

static bool is_utf8(const char *text, size_t size)
{
    struct json_tokener *t = json_tokener_new();
    json_tokener_set_flags(t, JSON_TOKENER_VALIDATE_UTF8);
    json_object_put(json_tokener_parse_ex(t, text, (int)size));
    bool valid = json_tokener_get_error(t) != json_tokener_error_parse_utf8_string;
    json_tokener_free(t);
    return valid;
}

/* What json-c passes over: of members of one name it keeps the last, it cuts
 * names at a zero byte, and it takes any bytes for text. */
static int check_header(const char *path, const char *text, size_t size, struct json_object *header,
                        struct dt_error *err)
{
    const char *reason = NULL;
    if (*text != '{')
        reason = "is not a JSON object";
    else if (!is_utf8(text, size))
        reason = "is not UTF-8";
    else if (memmem(text, size, "\\u0000", 6))
        reason = "holds a zero byte";
    else if (count_colons(text, size) != count_members(header))
        reason = "gives a name twice";
    return reason ? dt_fail(err, DT_EFORMAT, "%s: its header %s", path, reason) : 0;
}

static int read_tensors(const char *path, const char *file, size_t size,
                        const struct dt_named_tensor *tensors, int count,
                        const char *const *ignored, struct dt_error *err)
{
    uint64_t header_size = 0;
    struct json_object *header;
    int entry_count = 0;
    if (size >= 8)
        memcpy(&header_size, file, 8);
    if (size < 8 || header_size > MOST_HEADER || header_size > size - 8)
        return dt_fail(err, DT_EFORMAT, "%s: is not a safetensors file, or ends too early", path);
    DT_TRY(dt_json_parse(file + 8, header_size, path, &header, err));
    struct entry *entries = NULL;
    int rc = check_header(path, file + 8, header_size, header, err);
    if (rc == 0) {
        entries = dt_alloc((size_t)json_object_object_length(header) + 1, sizeof *entries);
        rc = parse_header(path, header, size - 8 - header_size, entries, &entry_count, err);
    }
    if (rc == 0)
        rc = copy_entries(path, entries, entry_count, tensors, count, ignored,
                          file + 8 + header_size, err);
    free(entries);
    json_object_put(header);
    return rc;
}

int dt_safetensors_read(const char *path, const struct dt_named_tensor *tensors, int count,
                        const char *const *ignored, struct dt_error *err)
{
    char *file;
    size_t size;
    DT_TRY(read_bytes(path, &file, &size, err));
    int rc = read_tensors(path, file, size, tensors, count, ignored, err);
    free(file);
    return rc;
}
