/* SPDX-License-Identifier: MIT */
#include "shard/manifest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "hash/hash.h"
#include "io/sealed-json.h"
#include "shard/format.h"
#include "shard/shard-internal.h"
#include "json/json.h"

#define MANIFEST_VERSION 2 /* the newest; data without a mask are written as 1 */

const struct dt_manifest_split *dt_manifest_find(const struct dt_manifest *m, const char *name)
{
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->splits[i].name, name) == 0)
            return &m->splits[i];
    return NULL;
}

const struct dt_manifest_split *dt_manifest_find_file(const struct dt_manifest *m, const char *file,
                                                      const struct dt_manifest_shard **shard)
{
    for (int i = 0; i < m->count; i++) {
        for (int k = 0; k < m->splits[i].count; k++) {
            if (strcmp(m->splits[i].shards[k].file, file) != 0)
                continue;
            if (shard)
                *shard = &m->splits[i].shards[k];
            return &m->splits[i];
        }
    }
    return NULL;
}

bool dt_manifest_is_shard_name(const char *file)
{
    size_t n = strlen(file), digits = 0;
    if (file[0] == '.' || n < 5 || strcmp(file + n - 4, ".dts") != 0)
        return false;
    n -= n > 6 && strcmp(file + n - 6, DT_ALTERNATE_SUFFIX) == 0 ? 6 : 4;
    for (; n > 0 && file[n - 1] >= '0' && file[n - 1] <= '9'; n--)
        digits++;
    return digits >= 5 && n > 1 && file[n - 1] == '-';
}

struct dt_manifest_split *dt_manifest_add_split(struct dt_manifest *m, const char *name)
{
    DT_GROW(m->splits, m->count, m->capacity);
    struct dt_manifest_split *split = &m->splits[m->count++];
    *split = (struct dt_manifest_split){.name = dt_strdup(name)};
    return split;
}

struct dt_manifest_shard *dt_manifest_add_shard(struct dt_manifest_split *split, const char *file)
{
    DT_GROW(split->shards, split->count, split->capacity);
    struct dt_manifest_shard *shard = &split->shards[split->count++];
    *shard = (struct dt_manifest_shard){.file = dt_strdup(file)};
    return shard;
}

static void release_split(struct dt_manifest_split *split)
{
    for (int k = 0; k < split->count; k++)
        free(split->shards[k].file);
    free(split->shards);
    free(split->name);
}

void dt_manifest_drop_empty(struct dt_manifest *m)
{
    int kept = 0;
    for (int i = 0; i < m->count; i++) {
        if (m->splits[i].count > 0)
            m->splits[kept++] = m->splits[i];
        else
            release_split(&m->splits[i]);
    }
    m->count = kept;
}

void dt_manifest_release(struct dt_manifest *m)
{
    for (int i = 0; i < m->count; i++)
        release_split(&m->splits[i]);
    free(m->splits);
    free(m->provenance);
    json_object_put(m->lineage);
    *m = (struct dt_manifest){0};
}

/* --- reading ---------------------------------------------------------------------------------- */

static int get_count(struct json_object *object, const char *name, const char *subject,
                     uint64_t *value, struct dt_error *err)
{
    int64_t n;
    DT_TRY(dt_json_get_int(object, name, subject, &n, err));
    if (n < 0)
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is negative", subject, name);
    *value = (uint64_t)n;
    return 0;
}

static int get_hash(struct json_object *object, const char *name, const char *subject,
                    uint64_t *value, struct dt_error *err)
{
    const char *text;
    DT_TRY(dt_json_get_string(object, name, subject, &text, err));
    if (!dt_hash_parse(text, value))
        return dt_fail(err, DT_EFORMAT, "%s: '%s' is not 16 hexadecimal digits", subject, name);
    return 0;
}

/* text is "" without the member. */
static int get_sha256(struct json_object *object, const char *subject, char text[DT_SHA256_HEX],
                      struct dt_error *err)
{
    const char *given;
    text[0] = '\0';
    if (!json_object_object_get_ex(object, "sha256", NULL))
        return 0;
    DT_TRY(dt_json_get_string(object, "sha256", subject, &given, err));
    if (strlen(given) != DT_SHA256_HEX - 1 ||
        strspn(given, "0123456789abcdef") != DT_SHA256_HEX - 1)
        return dt_fail(err, DT_EFORMAT, "%s: 'sha256' is not 64 hexadecimal digits", subject);
    memcpy(text, given, DT_SHA256_HEX);
    return 0;
}

static int read_shard(struct dt_manifest *m, struct dt_manifest_split *split,
                      struct json_object *object, const char *subject, struct dt_error *err)
{
    const char *file;
    DT_TRY(dt_json_get_string(object, "file", subject, &file, err));
    DT_TRY(dt_path_check_inside(file, subject, err));
    struct dt_manifest_shard *s = dt_manifest_add_shard(split, file);
    DT_TRY(get_count(object, "tokens", subject, &s->tokens, err));
    DT_TRY(get_count(object, "documents", subject, &s->documents, err));
    DT_TRY(get_count(object, "bytes", subject, &s->text_bytes, err));
    DT_TRY(get_count(object, "size", subject, &s->size, err));
    DT_TRY(get_hash(object, "hash", subject, &s->hash, err));
    s->targets = s->tokens;
    DT_TRY(get_sha256(object, subject, s->sha256, err));
    if (m->info.masked) {
        DT_TRY(get_count(object, "padding", subject, &s->padding, err));
        DT_TRY(get_count(object, "targets", subject, &s->targets, err));
    }
    if (s->padding > s->tokens || s->targets > s->tokens || s->tokens > INT64_MAX - m->info.tokens)
        return dt_fail(err, DT_EFORMAT, "%s: the token counts contradict each other", subject);
    m->info.tokens += s->tokens;
    m->info.documents += s->documents;
    m->info.text_bytes += s->text_bytes;
    m->info.padding += s->padding;
    m->info.targets += s->targets;
    return 0;
}

/* The sums of tokens, documents and text_bytes. */
static struct dt_manifest_shard total_of(const struct dt_manifest_split *split)
{
    struct dt_manifest_shard total = {0};
    for (int i = 0; i < split->count; i++) {
        total.tokens += split->shards[i].tokens;
        total.documents += split->shards[i].documents;
        total.text_bytes += split->shards[i].text_bytes;
    }
    return total;
}

static int check_total(const struct dt_manifest_split *split, struct json_object *object,
                       const char *subject, struct dt_error *err)
{
    const struct dt_manifest_shard total = total_of(split);
    const struct {
        const char *name;
        uint64_t value;
    } sums[] = {
        {"tokens", total.tokens}, {"documents", total.documents}, {"bytes", total.text_bytes}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        uint64_t value = 0;
        DT_TRY(get_count(object, sums[i].name, subject, &value, err));
        if (value != sums[i].value)
            return dt_fail(err, DT_EFORMAT,
                           "%s: split '%s' has %llu %s, but its shards have %llu together", subject,
                           split->name, (unsigned long long)value, sums[i].name,
                           (unsigned long long)sums[i].value);
    }
    return 0;
}

static int read_split(struct dt_manifest *m, const char *name, struct json_object *object,
                      const char *subject, struct dt_error *err)
{
    struct json_object *shards;
    struct dt_manifest_split *split = dt_manifest_add_split(m, name);
    if (!json_object_is_type(object, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: split '%s' is not an object", subject, name);
    DT_TRY(dt_json_get(object, "shards", json_type_array, subject, &shards, err));
    for (size_t i = 0; i < json_object_array_length(shards); i++) {
        struct json_object *shard = json_object_array_get_idx(shards, i);
        if (!json_object_is_type(shard, json_type_object))
            return dt_fail(err, DT_EFORMAT, "%s: a shard of split '%s' is not an object", subject,
                           name);
        DT_TRY(read_shard(m, split, shard, subject, err));
    }
    return check_total(split, object, subject, err);
}

static int read_provenance(struct dt_manifest *m, struct json_object *root, const char *subject,
                           struct dt_error *err)
{
    struct json_object *lines;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    DT_TRY(dt_json_get(root, "provenance", json_type_array, subject, &lines, err));
    for (size_t i = 0; i < json_object_array_length(lines); i++) {
        struct json_object *line = json_object_array_get_idx(lines, i);
        if (!json_object_is_type(line, json_type_string)) {
            dt_buffer_release(&text);
            return dt_fail(err, DT_EFORMAT, "%s: a line of 'provenance' is not a string", subject);
        }
        dt_buffer_printf(&text, "%s\n", dt_json_text(line));
    }
    m->provenance = text.data ? text.data : dt_strdup("");
    m->info.provenance = m->provenance;
    return 0;
}

static int read_lineage(struct dt_manifest *m, struct json_object *root, const char *subject,
                        struct dt_error *err)
{
    struct json_object *records;
    if (!json_object_object_get_ex(root, "lineage", &records))
        return 0;
    DT_TRY(dt_lineage_check(records, subject, err));
    m->lineage = json_object_get(records);
    return 0;
}

/* Reads the members that version 2 adds. */
static int read_layout(struct dt_manifest *m, struct json_object *root, const char *subject,
                       struct dt_error *err)
{
    const char *layout;
    uint64_t length = 0, padding_id = 0;
    DT_TRY(dt_json_get_string(root, "layout", subject, &layout, err));
    if (strcmp(layout, "list") != 0 && strcmp(layout, "padded") != 0)
        return dt_fail(err, DT_EFORMAT, "%s: layout '%s' is unknown: expected list or padded",
                       subject, layout);
    m->info.masked = true;
    if (strcmp(layout, "list") == 0)
        return 0;
    DT_TRY(get_count(root, "length", subject, &length, err));
    DT_TRY(get_count(root, "padding_id", subject, &padding_id, err));
    if (length < 1 || length > DT_ROW_MAX - 1 || padding_id >= m->info.vocab_size)
        return dt_fail(err, DT_EFORMAT, "%s: 'length' or 'padding_id' is out of range", subject);
    m->info.row = (uint32_t)length + 1;
    m->info.padding_id = (uint32_t)padding_id;
    return 0;
}

static int read_info(struct dt_manifest *m, struct json_object *root, const char *subject,
                     struct dt_error *err)
{
    uint64_t version = 0, vocab_size = 0, eot = UINT32_MAX;
    struct json_object *end;
    DT_TRY(get_count(root, "version", subject, &version, err));
    if (version < 1 || version > MANIFEST_VERSION)
        return dt_fail(err, DT_EFORMAT, "%s: version %llu: this program reads versions 1 to %d",
                       subject, (unsigned long long)version, MANIFEST_VERSION);
    DT_TRY(get_hash(root, "tokenizer", subject, &m->info.tokenizer, err));
    DT_TRY(get_count(root, "vocab_size", subject, &vocab_size, err));
    if (json_object_object_get_ex(root, "eot", &end) && end != NULL)
        DT_TRY(get_count(root, "eot", subject, &eot, err));
    if (vocab_size == 0 || vocab_size > UINT32_MAX || (eot != UINT32_MAX && eot >= vocab_size))
        return dt_fail(err, DT_EFORMAT, "%s: 'vocab_size' and 'eot' contradict each other",
                       subject);
    m->info.vocab_size = (uint32_t)vocab_size;
    m->info.eot = (uint32_t)eot;
    m->info.token_bytes = vocab_size <= 65536 ? 2 : 4;
    if (version == 2)
        DT_TRY(read_layout(m, root, subject, err));
    DT_TRY(read_lineage(m, root, subject, err));
    return read_provenance(m, root, subject, err);
}

static int read_root(struct dt_manifest *m, struct json_object *root, const char *subject,
                     struct dt_error *err)
{
    struct json_object *splits;
    if (!json_object_is_type(root, json_type_object))
        return dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", subject);
    DT_TRY(read_info(m, root, subject, err));
    DT_TRY(dt_json_get(root, "splits", json_type_object, subject, &splits, err));
    json_object_object_foreach(splits, name, split)
        DT_TRY(read_split(m, name, split, subject, err));
    if (m->count == 0)
        return dt_fail(err, DT_EFORMAT, "%s: 'splits' is empty", subject);
    return 0;
}

int dt_manifest_read(struct dt_manifest *m, const char *directory, struct dt_error *err)
{
    struct json_object *root = NULL;
    *m = (struct dt_manifest){0};
    char *path = dt_path_join(directory, DT_MANIFEST_NAME);
    int rc = dt_file_probe(path, err);
    if (rc == 0)
        rc = dt_fail(err, DT_EMISSING,
                     "%s: does not contain %s: dt-shard did not complete it, or did not write it",
                     directory, DT_MANIFEST_NAME);
    rc = rc < 0 ? rc : dt_json_read(path, &root, err);
    if (rc == 0)
        rc = read_root(m, root, path, err);
    json_object_put(root);
    free(path);
    return rc;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void add_count(struct json_object *object, const char *name, uint64_t value)
{
    dt_json_object_add(object, name, dt_json_new_int((int64_t)value));
}

static void add_hash(struct json_object *object, const char *name, uint64_t value)
{
    char text[DT_HASH_HEX];
    dt_json_object_add(object, name, dt_json_new_string(dt_hash_hex(value, text)));
}

static struct json_object *split_to_json(const struct dt_manifest_split *split, bool masked)
{
    struct json_object *object = dt_json_new_object(), *shards = dt_json_new_array();
    const struct dt_manifest_shard total = total_of(split);
    for (int i = 0; i < split->count; i++) {
        const struct dt_manifest_shard *s = &split->shards[i];
        struct json_object *shard = dt_json_new_object();
        dt_json_object_add(shard, "file", dt_json_new_string(s->file));
        add_count(shard, "tokens", s->tokens);
        add_count(shard, "documents", s->documents);
        add_count(shard, "bytes", s->text_bytes);
        add_count(shard, "size", s->size);
        add_hash(shard, "hash", s->hash);
        if (*s->sha256)
            dt_json_object_add(shard, "sha256", dt_json_new_string(s->sha256));
        if (masked) {
            add_count(shard, "padding", s->padding);
            add_count(shard, "targets", s->targets);
        }
        dt_json_array_add(shards, shard);
    }
    add_count(object, "tokens", total.tokens);
    add_count(object, "documents", total.documents);
    add_count(object, "bytes", total.text_bytes);
    dt_json_object_add(object, "shards", shards);
    return object;
}

static struct json_object *lines_to_json(const char *text)
{
    struct json_object *lines = dt_json_new_array();
    while (text && *text) {
        size_t n = strcspn(text, "\n");
        dt_json_array_add(lines, dt_json_new_string_len(text, n));
        text += n + (text[n] == '\n');
    }
    return lines;
}

int dt_manifest_write(const struct dt_manifest *m, const char *directory, struct dt_error *err)
{
    struct json_object *root = dt_json_new_object(), *splits = dt_json_new_object();
    add_count(root, "version", m->info.masked ? MANIFEST_VERSION : 1);
    add_hash(root, "tokenizer", m->info.tokenizer);
    add_count(root, "vocab_size", m->info.vocab_size);
    dt_json_object_add(root, "eot",
                       m->info.eot == UINT32_MAX ? NULL : dt_json_new_int(m->info.eot));
    dt_json_object_add(root, "layout", dt_json_new_string(m->info.row ? "padded" : "list"));
    if (m->info.row) {
        add_count(root, "length", m->info.row - 1);
        add_count(root, "padding_id", m->info.padding_id);
    }
    for (int i = 0; i < m->count; i++)
        dt_json_object_add(splits, m->splits[i].name, split_to_json(&m->splits[i], m->info.masked));
    dt_json_object_add(root, "splits", splits);
    dt_json_object_add(root, "provenance", lines_to_json(m->info.provenance));
    if (m->lineage)
        dt_json_object_add(root, "lineage", json_object_get(m->lineage));
    char *path = dt_path_join(directory, DT_MANIFEST_NAME);
    int rc = dt_sealed_json_write(path, root, err);
    free(path);
    json_object_put(root);
    return rc;
}

void dt_manifest_set(struct dt_manifest_shard *s, const struct dt_shard_info *totals)
{
    s->tokens = totals->tokens;
    s->documents = totals->documents;
    s->text_bytes = totals->text_bytes;
    s->hash = totals->hash;
    s->padding = totals->padding;
    s->targets = totals->targets;
}

int dt_manifest_check(const struct dt_manifest *m, const struct dt_manifest_shard *listed,
                      const struct dt_shard *shard, const char *path, struct dt_error *err)
{
    const struct dt_shard_info *info = dt_shard_get_info(shard);
    const char *what = NULL;
    if (info->tokenizer != m->info.tokenizer || info->vocab_size != m->info.vocab_size ||
        info->eot != m->info.eot)
        what = "tokenizer";
    else if (info->row != m->info.row || info->masked != m->info.masked ||
             info->padding_id != m->info.padding_id)
        what = "layout";
    else if (dt_shard_file_size(shard) != listed->size)
        what = "file size";
    else if (info->tokens != listed->tokens || info->documents != listed->documents ||
             info->text_bytes != listed->text_bytes || info->hash != listed->hash ||
             info->padding != listed->padding || info->targets != listed->targets)
        what = "contents";
    if (what)
        return dt_fail(err, DT_EFORMAT, "%s: differs from %s in its %s", path, DT_MANIFEST_NAME,
                       what);
    return 0;
}
