/* SPDX-License-Identifier: MIT */
/*
 * MosaicML Streaming's MDS, version 2.
 *
 *     shard   u32 n | u32 offset[n + 1] | JSON of the columns | sample 0 | ... | sample n-1
 *     sample  u32 size of each column of variable size | column 0 | column 1 | ...
 *     tokens  u8 4 + k | count in 2^k bytes | ids
 *
 * index.json lists the shards and repeats the columns of each. Written shards have the column
 * "tokens", a one-dimensional array "ndarray:uint16" or "ndarray:uint32".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "foreign/foreign-internal.h"
#include "io/input.h"
#include "json/json.h"

#define SIZE_LIMIT (1u << 26) /* bytes per shard: the default of the format */
#define COLUMNS    64

struct column {
    size_t size; /* 0: variable, stored per sample */
    bool tokens;
};

struct state {
    char *directory;
    uint32_t width;
    bool is_array; /* encoding "ndarray:TYPE"; false: plain bytes */
    /* Writing: */
    struct dt_buffer samples; /* of the shard being filled */
    uint32_t *sizes;
    uint32_t count, capacity;
    struct json_object *listed;
    int shards;
    /* Reading: */
    struct json_object *root, *entries; /* entries: member "shards" of root */
    size_t entry;
    struct dt_buffer shard;
    struct column columns[COLUMNS];
    int column_count;
    uint32_t sample;
};

/* --- writing ---------------------------------------------------------------------------------- */

static int create(void *state, const char *path, const struct dt_shard_info *info,
                  struct dt_error *err)
{
    struct state *s = state;
    if (strcmp(path, "-") == 0)
        return dt_fail(err, DT_EINVALID, "mds writes a directory: name it with -o DIR");
    char *index = dt_path_join(path, "index.json");
    int exists = dt_file_probe(index, err);
    free(index);
    DT_TRY(exists);
    if (exists > 0)
        return dt_fail(err, DT_EINVALID, "'%s' already holds an index.json", path);
    s->directory = dt_strdup(path);
    s->width = info->vocab_size <= 65536 ? 2 : 4;
    s->listed = dt_json_new_array();
    return dt_file_make_directories(path, err);
}

static struct json_object *list_of(struct json_object *item)
{
    struct json_object *list = dt_json_new_array();
    dt_json_array_add(list, item);
    return list;
}

/* The description of a shard, in the shard and in index.json. */
static struct json_object *describe(const struct state *s)
{
    struct json_object *o = dt_json_new_object();
    dt_json_object_add(
        o, "column_encodings",
        list_of(dt_json_new_string(s->width == 2 ? "ndarray:uint16" : "ndarray:uint32")));
    dt_json_object_add(o, "column_names", list_of(dt_json_new_string("tokens")));
    dt_json_object_add(o, "column_sizes", list_of(NULL));
    dt_json_object_add(o, "compression", NULL);
    dt_json_object_add(o, "format", dt_json_new_string("mds"));
    dt_json_object_add(o, "hashes", dt_json_new_array());
    dt_json_object_add(o, "size_limit", dt_json_new_int(SIZE_LIMIT));
    dt_json_object_add(o, "version", dt_json_new_int(2));
    return o;
}

static int write_shard(const struct state *s, const char *name, const char *config, uint64_t *size,
                       struct dt_error *err)
{
    struct dt_output out;
    uint32_t offset = (uint32_t)(4 + 4 * ((size_t)s->count + 1) + strlen(config));
    char *path = dt_path_join(s->directory, name);
    int rc = dt_output_open(&out, path, err);
    free(path);
    DT_TRY(rc);
    rc = dt_output_write(&out, &s->count, 4, err);
    for (uint32_t i = 0; rc == 0 && i <= s->count; i++) {
        rc = dt_output_write(&out, &offset, 4, err);
        offset += i < s->count ? s->sizes[i] : 0;
    }
    if (rc == 0)
        rc = dt_output_write(&out, config, strlen(config), err);
    if (rc == 0)
        rc = dt_output_write(&out, s->samples.data, s->samples.size, err);
    *size = out.written;
    if (rc == 0)
        return dt_output_commit(&out, err);
    dt_output_abandon(&out);
    return rc;
}

static int close_shard(struct state *s, struct dt_error *err)
{
    struct json_object *o = describe(s), *raw = dt_json_new_object();
    char *name = dt_asprintf("shard.%05d.mds", s->shards);
    uint64_t size = 0;
    int rc = write_shard(s, name, dt_json_text(o), &size, err);
    dt_json_object_add(raw, "basename", dt_json_new_string(name));
    dt_json_object_add(raw, "bytes", dt_json_new_int((int64_t)size));
    dt_json_object_add(raw, "hashes", dt_json_new_object());
    dt_json_object_add(o, "raw_data", raw);
    dt_json_object_add(o, "samples", dt_json_new_int(s->count));
    dt_json_object_add(o, "zip_data", NULL);
    dt_json_array_add(s->listed, o);
    free(name);
    s->shards++;
    s->count = 0;
    dt_buffer_clear(&s->samples);
    return rc;
}

/* Fills the header of an array of count ids. Returns its size. */
static uint32_t array_head(size_t count, char head[5])
{
    uint32_t n = (uint32_t)count;
    int k = n < 1 << 8 ? 0 : n < 1 << 16 ? 1 : 2;
    head[0] = (char)(4 + k);
    memcpy(head + 1, &n, sizeof n);
    return 1 + (1u << k);
}

static int add(void *state, const uint32_t *ids, size_t count, struct dt_error *err)
{
    struct state *s = state;
    char head[5];
    if (count == 0)
        return 0;
    if (count > UINT32_MAX / 2 / s->width)
        return dt_fail(
            err, DT_EINVALID,
            "a document is too long for mds, which stores the bytes of a shard in 32 bits");
    uint32_t head_size = array_head(count, head);
    uint32_t size = head_size + (uint32_t)count * s->width;
    if (s->count > 0 && s->samples.size + size + 4 * (size_t)s->count > SIZE_LIMIT)
        DT_TRY(close_shard(s, err));
    DT_GROW(s->sizes, s->count, s->capacity);
    s->sizes[s->count++] = 4 + size;
    dt_buffer_append(&s->samples, &size, sizeof size);
    dt_buffer_append(&s->samples, head, head_size);
    dt_foreign_put_ids(&s->samples, ids, count, s->width);
    return 0;
}

static int finish(void *state, struct dt_error *err)
{
    struct state *s = state;
    if (s->count > 0)
        DT_TRY(close_shard(s, err));
    if (s->shards == 0)
        return dt_fail(err, DT_EINVALID, "the input contains no documents with tokens");
    struct json_object *root = dt_json_new_object();
    dt_json_object_add(root, "shards", s->listed);
    s->listed = NULL;
    dt_json_object_add(root, "version", dt_json_new_int(2));
    char *path = dt_path_join(s->directory, "index.json");
    int rc = dt_json_write(path, root, err);
    free(path);
    json_object_put(root);
    if (rc == 0)
        s->shards = 0; /* release() keeps them */
    return rc;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int open_directory(void *state, const char *path, uint32_t eot, struct dt_error *err)
{
    struct state *s = state;
    (void)eot;
    s->directory = dt_strdup(path);
    char *index = dt_path_join(path, "index.json");
    int rc = dt_json_read(index, &s->root, err);
    if (rc == 0 && !json_object_is_type(s->root, json_type_object))
        rc = dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", index);
    if (rc == 0)
        rc = dt_json_get(s->root, "shards", json_type_array, index, &s->entries, err);
    free(index);
    return rc;
}

static int use_encoding(struct state *s, const char *encoding, struct dt_error *err)
{
    static const struct {
        const char *name;
        uint32_t width;
    } known[] = {{"ndarray:uint16", 2}, {"ndarray:uint32", 4}, {"ndarray:int32", 4},
                 {"ndarray:int64", 8},  {"bytes", 8},          {NULL}};
    for (int i = 0; known[i].name; i++) {
        if (strcmp(known[i].name, encoding) != 0)
            continue;
        s->width = known[i].width;
        s->is_array = known[i].width != 8 || encoding[0] == 'n';
        return 0;
    }
    return dt_fail(err, DT_EFORMAT,
                   "column 'tokens' has the encoding '%s', which is not an array of ids", encoding);
}

static int use_columns(struct state *s, struct json_object *entry, const char *subject,
                       struct dt_error *err)
{
    struct json_object *names, *encodings, *sizes;
    DT_TRY(dt_json_get(entry, "column_names", json_type_array, subject, &names, err));
    DT_TRY(dt_json_get(entry, "column_encodings", json_type_array, subject, &encodings, err));
    DT_TRY(dt_json_get(entry, "column_sizes", json_type_array, subject, &sizes, err));
    size_t count = json_object_array_length(names);
    if (count > COLUMNS || json_object_array_length(encodings) != count ||
        json_object_array_length(sizes) != count)
        return dt_fail(err, DT_EFORMAT, "the columns contradict each other");
    s->column_count = (int)count;
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        const char *name = dt_json_text(json_object_array_get_idx(names, i));
        struct json_object *fixed = json_object_array_get_idx(sizes, i); /* null: varies */
        int64_t size = json_object_get_int64(fixed);
        if ((fixed && !json_object_is_type(fixed, json_type_int)) || size < 0 || size > UINT32_MAX)
            return dt_fail(err, DT_EFORMAT, "the size of a column is out of range");
        s->columns[i] =
            (struct column){.size = (size_t)size, .tokens = name && strcmp(name, "tokens") == 0};
        found |= s->columns[i].tokens;
        const char *encoding = dt_json_text(json_object_array_get_idx(encodings, i));
        if (s->columns[i].tokens)
            DT_TRY(use_encoding(s, encoding ? encoding : "null", err));
    }
    return found ? 0 : dt_fail(err, DT_EFORMAT, "does not contain the column 'tokens'");
}

/* The file of a shard: plain, or compressed if only that exists. */
static int find_file(const struct state *s, struct json_object *entry, const char *subject,
                     char **path, struct dt_error *err)
{
    struct json_object *data;
    const char *name;
    static const char *const members[] = {"raw_data", "zip_data"};
    *path = NULL;
    for (int i = 0; i < 2; i++) {
        if (!json_object_object_get_ex(entry, members[i], &data) || data == NULL)
            continue;
        if (!json_object_is_type(data, json_type_object))
            return dt_fail(err, DT_EFORMAT, "'%s' is not an object", members[i]);
        DT_TRY(dt_json_get_string(data, "basename", subject, &name, err));
        DT_TRY(dt_path_check_inside(name, members[i], err));
        free(*path);
        *path = dt_path_join(s->directory, name);
        int exists = dt_file_probe(*path, err);
        if (exists != 0)
            return exists < 0 ? exists : 0;
    }
    return *path ? 0 : dt_fail(err, DT_EFORMAT, "does not name a file");
}

/* Bytes of the shard, decompressed. */
static int find_size(struct json_object *entry, const char *subject, size_t *size,
                     struct dt_error *err)
{
    struct json_object *raw;
    int64_t bytes;
    DT_TRY(dt_json_get(entry, "raw_data", json_type_object, subject, &raw, err));
    DT_TRY(dt_json_get_int(raw, "bytes", subject, &bytes, err));
    if (bytes < 0 || bytes > UINT32_MAX)
        return dt_fail(err, DT_EFORMAT, "index.json lists %lld bytes, which is out of range",
                       (long long)bytes);
    *size = (size_t)bytes;
    return 0;
}

/* Reads a file of size bytes, decompressed. Stops reading beyond: a decompression bomb has any
 * size. */
static int read_file(struct dt_buffer *b, const char *path, size_t size, struct dt_error *err)
{
    struct dt_input *in;
    const size_t piece = (size_t)1 << 20;
    size_t got = 0;
    DT_TRY(dt_file_need_regular(path, err));
    DT_TRY(dt_input_open_bytes(&in, path, err));
    dt_buffer_clear(b);
    int rc;
    do {
        dt_buffer_reserve(b, b->size + piece);
        rc = dt_input_read(in, b->data + b->size, piece, &got, err);
        b->size += rc == 0 ? got : 0;
    } while (rc == 0 && got > 0 && b->size <= size);
    dt_input_close(in);
    if (rc == 0 && b->size != size)
        return dt_fail(err, DT_EFORMAT, "%s: has %s bytes than the %zu in index.json", path,
                       b->size > size ? "more" : "fewer", size);
    return rc;
}

static uint32_t get32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static int open_shard(struct state *s, struct dt_error *err)
{
    struct json_object *entry = json_object_array_get_idx(s->entries, s->entry);
    char *path = NULL, *subject = dt_asprintf("shard %zu", s->entry);
    size_t size = 0;
    int rc = json_object_is_type(entry, json_type_object)
                 ? use_columns(s, entry, subject, err)
                 : dt_fail(err, DT_EFORMAT, "is not an object");
    if (rc == 0)
        rc = find_file(s, entry, subject, &path, err);
    if (rc == 0)
        rc = find_size(entry, subject, &size, err);
    if (rc == 0)
        rc = read_file(&s->shard, path, size, err);
    free(path);
    s->sample = 0;
    if (rc == 0 && (s->shard.size < 8 || get32(s->shard.data) > (s->shard.size - 8) / 4))
        rc = dt_fail(err, DT_EFORMAT, "is truncated");
    if (rc < 0)
        dt_fail_context(err, "%s: %s", s->directory, subject);
    free(subject);
    return rc;
}

/* The ids in the bytes of column "tokens". */
static int get_tokens(const struct state *s, const char *p, size_t size, struct dt_ids *ids,
                      struct dt_error *err)
{
    if (s->is_array) {
        size_t count_size = size > 0 ? (size_t)1 << (p[0] & 3) : 0;
        uint64_t count = 0;
        if (size == 0 || p[0] >> 2 != 1 || size < 1 + count_size)
            return dt_fail(err, DT_EFORMAT, "is not a one-dimensional array");
        memcpy(&count, p + 1, count_size);
        p += 1 + count_size;
        size -= 1 + count_size;
        if (count != size / s->width)
            return dt_fail(err, DT_EFORMAT, "differs in size from its header");
    }
    if (size % s->width != 0)
        return dt_fail(err, DT_EFORMAT, "is not an array of ids of %u bytes", s->width);
    return dt_foreign_get_ids(ids, p, size / s->width, s->width, err);
}

static int get_sample(const struct state *s, struct dt_ids *ids, struct dt_error *err)
{
    const char *data = s->shard.data, *offsets = data + 4 + 4 * (size_t)s->sample;
    uint64_t begin = get32(offsets), end = get32(offsets + 4), at = begin;
    if (begin > end || end > s->shard.size)
        return dt_fail(err, DT_EFORMAT, "is outside the shard");
    for (int i = 0; i < s->column_count; i++)
        at += s->columns[i].size == 0 ? 4 : 0;
    const char *size_at = data + begin;
    for (int i = 0; i < s->column_count; i++) {
        uint64_t size = s->columns[i].size;
        if (size == 0) {
            if (at > end)
                return dt_fail(err, DT_EFORMAT, "is truncated");
            size = get32(size_at);
            size_at += 4;
        }
        if (at + size > end)
            return dt_fail(err, DT_EFORMAT, "is truncated");
        if (s->columns[i].tokens)
            return get_tokens(s, data + at, (size_t)size, ids, err);
        at += size;
    }
    return 0;
}

static int next(void *state, struct dt_ids *ids, struct dt_error *err)
{
    struct state *s = state;
    while (s->shard.size == 0 || s->sample == get32(s->shard.data)) {
        if (s->shard.size > 0)
            s->entry++;
        dt_buffer_clear(&s->shard);
        if (s->entry == json_object_array_length(s->entries))
            return 0;
        DT_TRY(open_shard(s, err));
    }
    if (get_sample(s, ids, err) < 0)
        return dt_fail_context(err, "%s: shard %zu: sample %u", s->directory, s->entry, s->sample);
    s->sample++;
    return 1;
}

static void release(void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->shards; i++) { /* of an unfinished directory */
        char *path = dt_asprintf("%s/shard.%05d.mds", s->directory, i);
        remove(path);
        free(path);
    }
    json_object_put(s->listed);
    json_object_put(s->root);
    dt_buffer_release(&s->samples);
    dt_buffer_release(&s->shard);
    free(s->sizes);
    free(s->directory);
}

const struct dt_foreign_format dt_foreign_mds = {"mds",  sizeof(struct state), create, add,
                                                 finish, open_directory,       next,   release};
