/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "formats/safetensors.h"
#include "model/finite.h"
#include "unicode/utf8.h"
#include "json/json.h"

#define MOST_HEADER 100000000u

/* The tensors to read, and those found. */
struct search {
    const struct dt_named_tensor *tensors;
    int count;
    const struct dt_extra_tensor *extras;
    bool *seen;
    struct json_object *map;    /* names to files, of an index; or NULL */
    struct json_object *absent; /* names not found in a file so far */
    const char *file;           /* the current file */
    bool postponed;             /* an extra tensor precedes the one it must equal: */
    bool again;                 /* second pass over all files, to compare them */
};

enum number { F32, F16, BF16, F64, SIGNED, UNSIGNED, F8 };

/* The dtypes of the format and their bytes. */
static const struct number_type {
    const char *name;
    enum number number;
    uint64_t bytes;
} number_types[] = {
    {"F32", F32, 4},       {"F16", F16, 2},      {"BF16", BF16, 2},  {"F64", F64, 8},
    {"I64", SIGNED, 8},    {"U64", UNSIGNED, 8}, {"I32", SIGNED, 4}, {"U32", UNSIGNED, 4},
    {"I16", SIGNED, 2},    {"U16", UNSIGNED, 2}, {"I8", SIGNED, 1},  {"U8", UNSIGNED, 1},
    {"BOOL", UNSIGNED, 1}, {"F8_E4M3", F8, 1},   {"F8_E5M2", F8, 1},
};

static const struct number_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof number_types / sizeof *number_types; i++)
        if (strcmp(number_types[i].name, name) == 0)
            return &number_types[i];
    return NULL;
}

static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static float from_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float x = exponent == 31 ? (fraction ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                             : ldexpf((float)fraction, -24);
    return bits >> 15 ? -x : x;
}

static void convert(float *to, const char *from, enum number number, int64_t count)
{
    if (number == F32) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        to[i] = number == BF16 ? from_bf16(bits) : from_f16(bits);
    }
}

static double whole_value(const struct number_type *type, const char *from)
{
    uint64_t bits = 0;
    unsigned unused = 64 - 8 * (unsigned)type->bytes;
    memcpy(&bits, from, type->bytes);
    if (type->number == UNSIGNED)
        return (double)bits;
    return (double)((int64_t)(bits << unused) >> unused);
}

double dt_safetensors_raw_value(const struct dt_raw_tensor *t, uint64_t i)
{
    const struct number_type *type = &number_types[t->type];
    const char *from = t->data + i * type->bytes;
    float narrow;
    double wide;
    switch (type->number) {
    case F32:
    case F16:
    case BF16:
        convert(&narrow, from, type->number, 1);
        return (double)narrow;
    case F64:
        memcpy(&wide, from, sizeof wide);
        return wide;
    case SIGNED:
    case UNSIGNED:
        return whole_value(type, from);
    case F8:
        break;
    }
    return (double)NAN;
}

double dt_safetensors_raw_rounding(const struct dt_raw_tensor *t)
{
    enum number number = number_types[t->type].number;
    return number == F16 ? 0x1p-11 : number == BF16 ? 0x1p-8 : 0x1p-24;
}

/* A tensor of the header, and the offsets of its bytes after the header. */
struct entry {
    const char *name;
    const struct number_type *type;
    struct json_object *shape;
    uint64_t from, to;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

/* A whole name may lack the prefix that tensors may lack. */
static const struct dt_extra_tensor *find_extra(const struct search *s, const char *name)
{
    const char *first = s->count > 0 ? s->tensors[0].name : "";
    size_t n = strlen(name), prefix = s->count > 0 ? s->tensors[0].prefix : 0;
    for (const struct dt_extra_tensor *x = s->extras; x && x->name; x++) {
        size_t end = strlen(x->name);
        bool within = end > prefix && strncmp(x->name, first, prefix) == 0;
        if (*x->name == '.'
                ? n >= end && strcmp(name + n - end, x->name) == 0
                : strcmp(name, x->name) == 0 || (within && strcmp(name, x->name + prefix) == 0))
            return x;
    }
    return NULL;
}

static int bad(const char *path, const char *name, const char *reason, struct dt_error *err)
{
    return dt_fail(err, DT_EFORMAT, "%s: tensor '%s' %s", path, name, reason);
}

/* An unsigned integer; json-c would convert any value. One above INT64_MAX is that as an int64_t.
 */
static bool get_size(struct json_object *value, uint64_t *size)
{
    *size = json_object_get_uint64(value);
    return json_object_is_type(value, json_type_int) && json_object_get_int64(value) >= 0;
}

/* *bytes: of an element on entry, of the tensor on return. */
static bool count_bytes(struct json_object *shape, uint64_t *bytes)
{
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
        return bad(path, name, "must have two data_offsets", err);
    e->type = find_type(dtype);
    if (e->type == NULL)
        return dt_fail(err, DT_EFORMAT, "%s: tensor '%s' has an unknown dtype '%s'", path, name,
                       dtype);
    bytes = e->type->bytes;
    if (!count_bytes(e->shape, &bytes))
        return bad(path, name, "has an invalid shape", err);
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

/* Sorts the entries by offset and checks that they cover the file without gap or overlap. */
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

static bool is_called(const struct dt_named_tensor *t, const char *name)
{
    return strcmp(t->name, name) == 0 || strcmp(t->name + t->prefix, name) == 0 ||
           (*t->alias && (strcmp(t->alias, name) == 0 || strcmp(t->alias + t->prefix, name) == 0));
}

static int find(const struct search *s, const char *name)
{
    for (int i = 0; i < s->count; i++)
        if (is_called(&s->tensors[i], name))
            return i;
    return -1;
}

/* fused: tensors from t on that are one of the file. */
static bool same_shape(const struct dt_named_tensor *t, int fused, struct json_object *shape)
{
    int64_t sizes[2] = {0, t->shape[1]};
    for (int i = 0; i < fused; i++)
        sizes[0] += t[i].shape[0];
    if (json_object_array_length(shape) != (size_t)t->rank)
        return false;
    for (int i = 0; i < t->rank; i++)
        if (json_object_get_int64(json_object_array_get_idx(shape, (size_t)i)) != sizes[i])
            return false;
    return true;
}

/* Whether the index maps the tensor to the current file. */
static bool is_mapped_here(const struct search *s, const char *name)
{
    struct json_object *file = s->map ? json_object_object_get(s->map, name) : NULL;
    return s->map == NULL || (file && strcmp(dt_json_text(file), s->file) == 0);
}

static uint64_t elements_of(const struct entry *e)
{
    return (e->to - e->from) / e->type->bytes;
}

/* Tensor t of the list, from the data of the tensor of the file. In blocks, each checked while it
 * is in the cache. */
static int copy_values(const char *path, const struct entry *e, const struct search *s, int tensor,
                       const char *from, struct dt_error *err)
{
    const struct dt_named_tensor *t = &s->tensors[tensor];
    int64_t count = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1), n;
    for (int64_t to = 0; to < count; to += n) {
        int64_t at = dt_safetensors_place(s->tensors, s->count, tensor, to, &n);
        n = n < DT_FINITE_BLOCK ? n : DT_FINITE_BLOCK;
        convert(t->data + to, from + at * (int64_t)e->type->bytes, e->type->number, n);
        DT_TRY(dt_finite_check_weights(t->data + to, n, t->dtype, path, e->name, at, err));
    }
    return 0;
}

#define BLOCK 1024

/* NULL if the tensors are equal bit for bit as fp32. */
static const char *compare(const struct dt_named_tensor *with, const struct entry *e,
                           const char *data)
{
    float block[BLOCK];
    if (!same_shape(with, 1, e->shape) || e->type->number > BF16)
        return "has another shape or type than";
    for (uint64_t i = 0, n, count = elements_of(e); i < count; i += n) {
        n = count - i < BLOCK ? count - i : BLOCK;
        convert(block, data + i * e->type->bytes, e->type->number, (int64_t)n);
        if (memcmp(block, with->data + i, n * sizeof *block) != 0)
            return "has other values than";
    }
    return NULL;
}

static int check_extra(const char *path, const struct entry *e, struct search *s, const char *data,
                       struct dt_error *err)
{
    const struct dt_extra_tensor *x = find_extra(s, e->name);
    if (x == NULL)
        return bad(path, e->name, "is not part of the model", err);
    if (x->equals >= 0) {
        s->postponed = s->postponed || !s->seen[x->equals];
        const char *how = s->seen[x->equals] ? compare(&s->tensors[x->equals], e, data) : NULL;
        return how == NULL ? 0
                           : dt_fail(err, DT_EFORMAT, "%s: tensor '%s' %s '%s', %s", path, e->name,
                                     how, s->tensors[x->equals].name, x->unequal);
    }
    const struct dt_raw_tensor raw = {e->name, elements_of(e), data, (int)(e->type - number_types)};
    const char *how = x->check ? x->check(&raw, x->context) : NULL;
    return how ? bad(path, e->name, how, err) : 0;
}

static int copy_entry(const char *path, const struct entry *e, struct search *s, const char *data,
                      struct dt_error *err)
{
    int t = find(s, e->name);
    if (!is_mapped_here(s, e->name))
        return bad(path, e->name, "is not where the index says", err);
    if (s->absent)
        json_object_object_del(s->absent, e->name);
    if (t < 0)
        return 0;
    if (s->seen[t])
        return bad(path, e->name, "is given under two names", err);
    int fused = dt_safetensors_fused(&s->tensors[t], s->count - t);
    if (!same_shape(&s->tensors[t], fused, e->shape))
        return bad(path, e->name, "has another shape than the model's", err);
    if (e->type->number > BF16)
        return dt_fail(err, DT_EFORMAT,
                       "%s: tensor '%s' is of type %s, and dt reads F32, F16 and BF16: convert it",
                       path, e->name, e->type->name);
    for (int i = t; i < t + fused; i++) {
        s->seen[i] = true;
        DT_TRY(copy_values(path, e, s, i, data, err));
    }
    return 0;
}

static int check_complete(const char *path, const struct search *s, struct dt_error *err)
{
    for (int t = 0; t < s->count; t++)
        if (!s->seen[t])
            return dt_fail(err, DT_EFORMAT, "%s: tensor '%s' is missing", path, s->tensors[t].name);
    if (s->absent == NULL)
        return 0;
    json_object_object_foreach(s->absent, name, file)
    {
        const char *where = dt_json_text(file);
        return dt_fail(err, DT_EFORMAT, "%s: tensor '%s' is not in '%s'", path, name, where);
    }
    return 0;
}

/* Reads the file, decompressed if it is zstd, up to most bytes. */
static int read_bytes(const char *path, size_t most, char **data, size_t *size,
                      struct dt_error *err)
{
    DT_TRY(dt_file_read(path, SIZE_MAX / 2, data, size, err));
    if (*size < 4 || memcmp(*data, "\x28\xb5\x2f\xfd", 4) != 0)
        return 0;
    struct dt_buffer out = DT_BUFFER_EMPTY;
    ZSTD_DStream *zstd = dt_checked(ZSTD_createDStream());
    ZSTD_inBuffer in = {*data, *size, 0};
    size_t rc = 1;
    while (in.pos < in.size && !ZSTD_isError(rc) && out.size <= most) {
        dt_buffer_reserve(&out, out.size + ZSTD_DStreamOutSize());
        ZSTD_outBuffer o = {out.data + out.size, ZSTD_DStreamOutSize(), 0};
        rc = ZSTD_decompressStream(zstd, &o, &in);
        out.size += o.pos;
    }
    ZSTD_freeDStream(zstd);
    free(*data);
    *data = out.data;
    *size = out.size;
    if (rc == 0 && out.size <= most)
        return 0;
    free(out.data);
    *data = NULL;
    return dt_fail(err, DT_EFORMAT, "%s: %s", path,
                   out.size > most    ? "is much larger, decompressed, than its tensors"
                   : ZSTD_isError(rc) ? ZSTD_getErrorName(rc)
                                      : "ends too early");
}

/* The number of members of all objects in a JSON text: colons outside of strings. */
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

/* What dt_json_parse() passes over: of members of one name it keeps the last, and it takes any
 * bytes for text. */
static int check_json(const char *path, const char *part, const char *text, size_t size,
                      struct json_object *value, struct dt_error *err)
{
    const char *reason = NULL;
    if (*text != '{')
        reason = "is not a JSON object";
    else if (dt_utf8_valid_prefix(text, size) < size)
        reason = "is not UTF-8";
    else if (memmem(text, size, "\\u0000", 6))
        reason = "holds a zero byte";
    else if (count_colons(text, size) != count_members(value))
        reason = "gives a name twice";
    return reason ? dt_fail(err, DT_EFORMAT, "%s: %s%s", path, part, reason) : 0;
}

static int read_tensors(const char *path, const char *file, size_t size, struct search *s,
                        struct dt_error *err)
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
    int rc = check_json(path, "its header ", file + 8, header_size, header, err);
    if (rc == 0) {
        entries = dt_alloc((size_t)json_object_object_length(header) + 1, sizeof *entries);
        rc = parse_header(path, header, size - 8 - header_size, entries, &entry_count, err);
    }
    const char *data = file + 8 + header_size;
    for (int i = 0; rc == 0 && i < entry_count; i++)
        rc = s->again ? 0 : copy_entry(path, &entries[i], s, data + entries[i].from, err);
    for (int i = 0; rc == 0 && i < entry_count; i++)
        if (find(s, entries[i].name) < 0)
            rc = check_extra(path, &entries[i], s, data + entries[i].from, err);
    free(entries);
    json_object_put(header);
    return rc;
}

/* The maximum size of a file with these tensors, with a margin for extras. */
static size_t most_bytes(const struct search *s)
{
    size_t elements = 0;
    for (int i = 0; i < s->count; i++)
        elements += (size_t)s->tensors[i].shape[0] *
                    (size_t)(s->tensors[i].rank == 2 ? s->tensors[i].shape[1] : 1);
    return MOST_HEADER + 4 * elements * sizeof(float);
}

static int read_file(const char *path, struct search *s, struct dt_error *err)
{
    char *file;
    size_t size;
    DT_TRY(read_bytes(path, most_bytes(s), &file, &size, err));
    int rc = read_tensors(path, file, size, s, err);
    free(file);
    return rc;
}

int dt_safetensors_read(const char *path, const struct dt_named_tensor *tensors, int count,
                        const struct dt_extra_tensor *extras, struct dt_error *err)
{
    struct search s = {.tensors = tensors, .count = count, .extras = extras};
    s.seen = dt_alloc((size_t)count, sizeof *s.seen);
    int rc = read_file(path, &s, err);
    rc = rc < 0 ? rc : check_complete(path, &s, err);
    free(s.seen);
    return rc;
}

/* Reads the weight_map of an index, whose values are names of files in its directory. */
static int parse_index(const char *path, struct json_object *index, struct search *s,
                       struct dt_error *err)
{
    DT_TRY(dt_json_get(index, "weight_map", json_type_object, path, &s->map, err));
    json_object_object_foreach(s->map, name, value)
    {
        if (!json_object_is_type(value, json_type_string))
            return bad(path, name, "is given no file beside the index", err);
        DT_TRY(dt_path_check_inside(dt_json_text(value), path, err));
        dt_json_object_add(s->absent, name, json_object_get(value));
    }
    return 0;
}

/* Whether an earlier member of the map names the same file. */
static bool was_read(struct json_object *map, const char *until, const char *file)
{
    json_object_object_foreach(map, name, value)
    {
        if (strcmp(name, until) == 0)
            return false;
        if (strcmp(dt_json_text(value), file) == 0)
            return true;
    }
    return false;
}

static int read_files(const char *path, struct search *s, struct dt_error *err)
{
    const char *slash = strrchr(path, '/');
    json_object_object_foreach(s->map, name, value)
    {
        s->file = dt_json_text(value);
        if (was_read(s->map, name, s->file))
            continue;
        char *shard = dt_asprintf("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, s->file);
        int rc = read_file(shard, s, err);
        free(shard);
        DT_TRY(rc);
    }
    return 0;
}

static int read_mapped(const char *path, struct search *s, struct dt_error *err)
{
    DT_TRY(read_files(path, s, err));
    DT_TRY(check_complete(path, s, err));
    s->again = true;
    return s->postponed ? read_files(path, s, err) : 0;
}

static int read_index(const char *path, const char *text, size_t size, struct search *s,
                      struct dt_error *err)
{
    struct json_object *index;
    DT_TRY(dt_json_parse(text, size, path, &index, err));
    int rc = check_json(path, "", text, size, index, err);
    s->absent = dt_json_new_object();
    rc = rc < 0 ? rc : parse_index(path, index, s, err);
    rc = rc < 0 ? rc : read_mapped(path, s, err);
    json_object_put(s->absent);
    json_object_put(index);
    return rc;
}

int dt_safetensors_read_index(const char *path, const struct dt_named_tensor *tensors, int count,
                              const struct dt_extra_tensor *extras, struct dt_error *err)
{
    struct search s = {.tensors = tensors, .count = count, .extras = extras};
    char *text;
    size_t size;
    DT_TRY(dt_file_read(path, MOST_HEADER, &text, &size, err));
    s.seen = dt_alloc((size_t)count, sizeof *s.seen);
    int rc = read_index(path, text, size, &s, err);
    free(s.seen);
    free(text);
    return rc;
}
