/* SPDX-License-Identifier: MIT */
#include "io/lineage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/credentials.h"
#include "base/path.h"
#include "base/system.h"
#include "base/version.h"
#include "io/lineage-internal.h"
#include "io/sealed-json.h"
#include "options/command-line.h"
#include "unicode/unicode.h"

/* The hash of an output. */
struct watch {
    struct watch *next;
    const struct dt_output *out;
    struct dt_sha256 hash;
};

struct dt_lineage {
    struct json_object *records; /* of the inputs; in the end also own */
    struct json_object *ids;     /* of the records, as members */
    struct json_object *own, *inputs;
    struct watch *watches;
    bool closed;
};

struct dt_lineage *dt_lineage_new(void)
{
    struct dt_lineage *l = dt_alloc(1, sizeof *l);
    struct json_object *arguments = dt_json_new_array();
    l->records = dt_json_new_array();
    l->ids = dt_json_new_object();
    l->own = dt_json_new_object();
    l->inputs = dt_json_new_array();
    for (const char *const *a = dt_command_arguments(); *a; a++)
        dt_json_array_add(arguments, dt_lineage_text(*a));
    dt_json_object_add(l->own, "program", dt_json_new_string(dt_system_program_name()));
    dt_json_object_add(l->own, "version", dt_json_new_string(dt_version));
    dt_json_object_add(l->own, "commit", dt_json_new_string(dt_version_commit));
    dt_json_object_add(l->own, "unicode", dt_json_new_string(dt_unicode_version));
    dt_json_object_add(l->own, "arguments", arguments);
    dt_json_object_add(l->own, "inputs", l->inputs);
    return l;
}

struct dt_lineage *dt_lineage_for(const char *output)
{
    struct stat st;
    bool is_stdout = strcmp(output, "-") == 0;
    int rc = is_stdout ? fstat(STDOUT_FILENO, &st) : stat(output, &st);
    if (is_stdout && (rc < 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))))
        return NULL;
    return is_stdout || rc < 0 || S_ISREG(st.st_mode) ? dt_lineage_new() : NULL;
}

void dt_lineage_free(struct dt_lineage *l)
{
    if (l == NULL)
        return;
    json_object_put(l->records);
    json_object_put(l->ids);
    if (!l->closed)
        json_object_put(l->own);
    for (struct watch *w = l->watches, *next; w; w = next) {
        next = w->next;
        dt_sha256_release(&w->hash);
        free(w);
    }
    free(l);
}

void dt_lineage_set(struct dt_lineage *l, const char *name, struct json_object *value)
{
    dt_json_object_add(l->own, name, value);
}

/* --- records --------------------------------------------------------------------------------- */

static size_t count_of(struct json_object *records)
{
    return json_object_array_length(records);
}

/* Appends the records that are not there yet. */
static void merge(struct dt_lineage *l, struct json_object *from)
{
    for (size_t i = 0; i < count_of(from); i++) {
        struct json_object *record = json_object_array_get_idx(from, i);
        const char *id = dt_lineage_id(record);
        if (json_object_object_get_ex(l->ids, id, NULL))
            continue;
        dt_json_object_add(l->ids, id, dt_json_new_boolean(true));
        dt_json_array_add(l->records, json_object_get(record));
    }
}

struct json_object *dt_lineage_records(struct dt_lineage *l)
{
    char id[DT_SHA256_HEX];
    if (l->closed)
        return l->records;
    dt_lineage_hash(l->own, id);
    dt_json_object_add(l->own, "id", dt_json_new_string(id));
    if (json_object_object_get_ex(l->ids, id, NULL)) /* the same command, resumed */
        json_object_put(l->own);
    else
        dt_json_array_add(l->records, l->own);
    l->closed = true;
    return l->records;
}

/* --- inputs ----------------------------------------------------------------------------------- */

static void add_input(struct dt_lineage *l, const struct dt_lineage_input *in)
{
    struct json_object *input = dt_json_new_object(), *records = in->upstream;
    char *hub = dt_path_hub_name(in->path);
    dt_json_object_add(input, "path", dt_lineage_text(hub ? hub : in->path));
    free(hub);
    if (in->file)
        dt_json_object_add(input, "file", dt_lineage_text(in->file));
    if (*in->sha256) {
        dt_json_object_add(input, "bytes", dt_json_new_int((int64_t)in->bytes));
        dt_json_object_add(input, "sha256", dt_json_new_string(in->sha256));
    }
    if (in->content)
        dt_json_object_add(input, "content", dt_json_new_string(in->content));
    if (records && count_of(records) > 0) {
        merge(l, records);
        const char *from = dt_lineage_id(json_object_array_get_idx(records, count_of(records) - 1));
        dt_json_object_add(input, "from", dt_json_new_string(from));
        if (in->of)
            dt_json_object_add(input, "of", dt_lineage_text(in->of));
    }
    dt_json_array_add(l->inputs, input);
}

void dt_lineage_add_input(struct dt_lineage *l, const char *path, uint64_t bytes,
                          const char *sha256, struct json_object *upstream)
{
    char *shown = dt_strdup(path);
    dt_credentials_hide(shown);
    add_input(l, &(struct dt_lineage_input){
                     .path = shown, .bytes = bytes, .sha256 = sha256, .upstream = upstream});
    free(shown);
}

int dt_lineage_add_read(struct dt_lineage *l, const char *path, struct dt_sha256 *hash,
                        struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    struct dt_lineage_input in = {.path = path, .bytes = hash->bytes};
    in.sha256 = dt_sha256_finish(hash, hex);
    DT_TRY(dt_lineage_find_upstream(&in, err));
    add_input(l, &in);
    dt_lineage_input_release(&in);
    return 0;
}

void dt_lineage_add_range(struct dt_lineage *l, const char *path, uint64_t first,
                          struct dt_sha256 *hash)
{
    char hex[DT_SHA256_HEX];
    struct dt_lineage_input in = {.path = path, .bytes = hash->bytes};
    in.sha256 = dt_sha256_finish(hash, hex);
    add_input(l, &in);
    struct json_object *input =
        json_object_array_get_idx(l->inputs, json_object_array_length(l->inputs) - 1);
    dt_json_object_add(input, "first", dt_json_new_uint(first));
}

int dt_lineage_add_path(struct dt_lineage *l, const char *path, struct dt_error *err)
{
    struct dt_lineage_input *inputs;
    int count;
    if (l == NULL)
        return 0;
    DT_TRY(dt_lineage_find_inputs(path, &inputs, &count, err));
    for (int i = 0; i < count; i++) {
        add_input(l, &inputs[i]);
        dt_lineage_input_release(&inputs[i]);
    }
    free(inputs);
    return 0;
}

/* One input for all: its hash is that of a line "HASH  PATH" for each file, as sha256sum prints. */
static int add_as_one(struct dt_lineage *l, const char *const *paths, int count,
                      struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    struct dt_sha256 hash;
    struct dt_buffer line = DT_BUFFER_EMPTY;
    uint64_t bytes, sum = 0;
    int rc = 0;
    dt_sha256_init(&hash);
    for (int i = 0; i < count && (rc = dt_sha256_file(paths[i], &bytes, hex, err)) == 0; i++) {
        dt_buffer_clear(&line);
        dt_buffer_printf(&line, "%s  %s\n", hex, paths[i]);
        dt_sha256_add(&hash, line.data, line.size);
        sum += bytes;
    }
    dt_buffer_release(&line);
    DT_TRY(rc);
    char *name = dt_asprintf("%s and %d others", paths[0], count - 1);
    dt_lineage_add_input(l, name, sum, dt_sha256_finish(&hash, hex), NULL);
    free(name);
    return 0;
}

int dt_lineage_add_files(struct dt_lineage *l, const char *const *paths, int count,
                         struct dt_error *err)
{
    if (l && count > DT_LINEAGE_SEPARATE)
        return add_as_one(l, paths, count, err);
    for (int i = 0; i < count; i++)
        DT_TRY(dt_lineage_add_path(l, paths[i], err));
    return 0;
}

int dt_lineage_continue(struct dt_lineage *l, const char *path, struct dt_error *err)
{
    char id[DT_SHA256_HEX];
    struct json_object *records;
    if (l == NULL)
        return 0;
    int rc = dt_lineage_read(path, &records, err);
    if (rc == DT_EMISSING)
        return dt_lineage_add_path(l, path, err);
    DT_TRY(rc);
    dt_lineage_hash(l->own, id);
    bool is_same = dt_lineage_has(records, count_of(records), id);
    if (is_same)
        merge(l, records);
    json_object_put(records);
    return is_same ? 0 : dt_lineage_add_path(l, path, err);
}

/* --- outputs ---------------------------------------------------------------------------------- */

static int write_beside(struct dt_lineage *l, const char *path, uint64_t bytes, const char *hex,
                        struct dt_error *err)
{
    struct json_object *root = dt_json_new_object();
    dt_json_object_add(root, "bytes", dt_json_new_int((int64_t)bytes));
    dt_json_object_add(root, "sha256", dt_json_new_string(hex));
    dt_json_object_add(root, "lineage", json_object_get(dt_lineage_records(l)));
    char *beside = dt_asprintf("%s" DT_LINEAGE_SUFFIX, path);
    int rc = dt_sealed_json_write(beside, root, err);
    free(beside);
    json_object_put(root);
    return rc;
}

int dt_lineage_write_beside(struct dt_lineage *l, const char *path, struct dt_error *err)
{
    char hex[DT_SHA256_HEX];
    uint64_t bytes;
    if (l == NULL)
        return 0;
    DT_TRY(dt_sha256_file(path, &bytes, hex, err));
    return write_beside(l, path, bytes, hex, err);
}

static void add_to_hash(void *hash, const void *data, size_t size)
{
    dt_sha256_add(hash, data, size);
}

void dt_lineage_watch(struct dt_lineage *l, struct dt_output *out, int threads)
{
    if (l == NULL || out->temporary == NULL)
        return;
    struct watch *w = dt_alloc(1, sizeof *w);
    *w = (struct watch){.next = l->watches, .out = out};
    l->watches = w;
    dt_sha256_init(&w->hash);
    if (threads > 1)
        dt_sha256_use_thread(&w->hash);
    out->witness = add_to_hash;
    out->context = &w->hash;
}

static struct watch *find_watch(struct dt_lineage *l, const struct dt_output *out)
{
    struct watch *w = l ? l->watches : NULL;
    while (w && w->out != out)
        w = w->next;
    return w;
}

int dt_lineage_commit(struct dt_lineage *l, struct dt_output *out, struct dt_error *err)
{
    char *path = l && out->temporary ? dt_strdup(out->path) : NULL, hex[DT_SHA256_HEX];
    struct watch *w = find_watch(l, out);
    int rc = dt_output_commit(out, err);
    uint64_t bytes = w ? w->hash.bytes : 0;
    if (rc == 0 && w)
        rc = write_beside(l, path, bytes, dt_sha256_finish(&w->hash, hex), err);
    else if (rc == 0 && path)
        rc = dt_lineage_write_beside(l, path, err);
    free(path);
    return rc;
}

int dt_lineage_write_inside(struct dt_lineage *l, const char *directory, struct dt_error *err)
{
    struct dt_lineage_input *files;
    int count;
    if (l == NULL)
        return 0;
    int rc = dt_lineage_find_files(directory, &files, &count, err);
    struct json_object *root = dt_json_new_object(), *list = dt_json_new_object();
    dt_json_object_add(root, "files", list);
    for (int i = 0; i < count; i++) {
        struct json_object *entry = dt_json_new_object();
        dt_json_object_add(entry, "bytes", dt_json_new_int((int64_t)files[i].bytes));
        dt_json_object_add(entry, "sha256", dt_json_new_string(files[i].hex));
        if (files[i].file)
            dt_json_object_add(list, files[i].file, entry);
        dt_lineage_input_release(&files[i]);
    }
    free(files);
    dt_json_object_add(root, "lineage", json_object_get(dt_lineage_records(l)));
    char *path = dt_path_join(directory, DT_LINEAGE_FILE);
    rc = rc < 0 ? rc : dt_sealed_json_write(path, root, err);
    free(path);
    json_object_put(root);
    return rc;
}
