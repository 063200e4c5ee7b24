/* SPDX-License-Identifier: MIT */
#include "tasks/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "document/document.h"
#include "io/json-lines.h"

#define HUB "hf://"

static int add_document(struct dt_task_split *s, struct json_object *document, const char *place,
                        struct dt_error *err)
{
    if (!json_object_is_type(document, json_type_object)) {
        json_object_put(document);
        return dt_fail(err, DT_EFORMAT, "%s: is not a JSON object", place);
    }
    DT_GROW(s->documents, s->count, s->capacity);
    s->documents[s->count++] = document;
    return 0;
}

/* --- files ------------------------------------------------------------------------------------*/

static int take_line(void *context, struct json_object *line, const char *place,
                     struct dt_error *err)
{
    return add_document(context, json_object_get(line), place, err);
}

/* A document as the row that it was read from. */
static int row_of(const struct dt_document *doc, const char *path, size_t number,
                  struct json_object **row, struct dt_error *err)
{
    char *generated = dt_asprintf("%s:%zu", path, number);
    bool has_id =
        doc->id.size != strlen(generated) || memcmp(doc->id.data, generated, doc->id.size) != 0;
    int rc = 0;
    if (doc->meta.size > 0)
        rc = dt_json_parse(doc->meta.data, doc->meta.size, generated, row, err);
    else
        *row = dt_json_new_object();
    free(generated);
    if (rc == 0 && has_id)
        dt_json_object_add(*row, "id", dt_json_new_string_len(doc->id.data, doc->id.size));
    if (rc == 0 && doc->text.size > 0)
        dt_json_object_add(*row, "text", dt_json_new_string_len(doc->text.data, doc->text.size));
    return rc;
}

/* A text that is empty is not told from one that is absent: in a table it is in all rows, or in
 * none. */
static void complete_rows(struct dt_task_split *s, size_t first, const char *path)
{
    bool is_table = strstr(dt_path_base(path), ".json") == NULL, has_text = false;
    for (size_t i = first; i < s->count; i++)
        has_text = has_text || json_object_object_get(s->documents[i], "text");
    for (size_t i = first; is_table && has_text && i < s->count; i++)
        if (json_object_object_get(s->documents[i], "text") == NULL)
            dt_json_object_add(s->documents[i], "text", dt_json_new_string(""));
}

static int read_rows(struct dt_task_split *s, const char *path, struct dt_error *err)
{
    struct dt_documents *docs;
    struct dt_document doc = DT_DOCUMENT_EMPTY;
    char *paths[] = {(char *)path};
    size_t first = s->count;
    int rc;
    DT_TRY(dt_documents_open(&docs, paths, 1,
                             &(struct dt_documents_options){.format = DT_DOCUMENT_FORMAT_AUTO,
                                                            .field = DT_DOCUMENT_RECORD,
                                                            .field_is_optional = true},
                             err));
    while ((rc = dt_documents_next(docs, &doc, err)) > 0) {
        struct json_object *row = NULL;
        rc = row_of(&doc, path, s->count - first + 1, &row, err);
        rc = rc < 0 ? rc : add_document(s, row, path, err);
        if (rc < 0)
            break;
    }
    complete_rows(s, first, path);
    dt_documents_close(docs);
    dt_document_release(&doc);
    return rc;
}

static int read_file(struct dt_task_split *s, const char *path, const char *name,
                     const struct dt_task_sources *sources, struct dt_error *err)
{
    char *local = NULL;
    if (strncmp(path, HUB, strlen(HUB)) == 0) {
        DT_TRY(sources->fetch(path, &local, err));
        path = local;
    }
    s->path = s->path ? s->path : dt_strdup(path);
    int rc = dt_output_check_inputs(sources->outputs, sources->output_count, &path, 1, err);
    bool lines = strcmp(path, "-") == 0 || strstr(dt_path_base(path), ".jsonl") ||
                 strstr(dt_path_base(path), ".ndjson");
    /* JSON Lines keep the types of all members, also of those that documents treat as their own */
    if (rc == 0)
        rc = lines ? dt_json_lines_read_complete(path, take_line, s, err) : read_rows(s, path, err);
    free(local);
    return rc < 0 ? dt_fail_context(err, "split '%s'", name) : 0;
}

/* --- where a split is -------------------------------------------------------------------------*/

/* A file of the split in a directory; NULL if there is none. */
static char *find_in(const char *directory, const char *below, const char *split)
{
    static const char *const ends[] = {"jsonl",   "jsonl.zst", "jsonl.gz", "json",
                                       "parquet", "csv",       "tsv",      "arrow"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *path = dt_asprintf("%s%s%s/%s.%s", directory, below ? "/" : "", below ? below : "",
                                 split, ends[i]);
        if (dt_file_is_regular(path))
            return path;
        free(path);
    }
    return NULL;
}

/* What --data says of a split; *found: whether it does. */
static int read_given(struct dt_task_split *s, const struct dt_task *t, const char *name,
                      const struct dt_task_sources *sources, bool *found, struct dt_error *err)
{
    *found = false;
    for (int i = 0; i < sources->count; i++) {
        const char *given = sources->named[i], *equals = strchr(given, '=');
        char *path = NULL;
        if (equals && strncmp(given, name, strlen(name)) == 0 && given[strlen(name)] == '=')
            path = dt_strdup(equals + 1);
        else if (dt_file_is_directory(given) && (path = find_in(given, t->name, name)) == NULL)
            path = find_in(given, NULL, name);
        if (path == NULL)
            continue;
        *found = true;
        int rc = read_file(s, path, name, sources, err);
        free(path);
        DT_TRY(rc);
    }
    return 0;
}

static int read_named(struct dt_task_split *s, const struct dt_task *t, const char *file,
                      const char *name, const struct dt_task_sources *sources, struct dt_error *err)
{
    bool relative = *file != '/' && strstr(file, "://") == NULL;
    const char *base = dt_path_base(t->path);
    char *path = dt_asprintf("%.*s%s", relative ? (int)(base - t->path) : 0, t->path, file);
    int rc = read_file(s, path, name, sources, err);
    free(path);
    return rc;
}

/* dataset_kwargs.data_files */
static int read_data_files(struct dt_task_split *s, const struct dt_task *t, const char *name,
                           const struct dt_task_sources *sources, struct dt_error *err)
{
    struct json_object *files = t->data_files;
    if (json_object_is_type(files, json_type_object) &&
        !json_object_object_get_ex(files, name, &files))
        return dt_fail(err, DT_EINVALID, "%s: data_files lacks the split '%s'", t->path, name);
    if (!json_object_is_type(files, json_type_array))
        return read_named(s, t, dt_json_text(files), name, sources, err);
    for (size_t i = 0; i < json_object_array_length(files); i++)
        DT_TRY(read_named(s, t, dt_json_text(json_object_array_get_idx(files, i)), name, sources,
                          err));
    return 0;
}

/* The files of the branch that the hub itself makes of each data set: 0000.parquet, 0001.parquet
 * ...
 */
static int read_hub(struct dt_task_split *s, const struct dt_task *t, const char *name,
                    const struct dt_task_sources *sources, struct dt_error *err)
{
    const char *config = t->dataset_name && *t->dataset_name ? t->dataset_name : "default";
    int rc = 0, files = 0;
    for (; rc == 0; files++) {
        char *path = dt_asprintf(HUB "datasets/%s@refs%%2Fconvert%%2Fparquet/%s/%s/%04d.parquet",
                                 t->dataset_path, config, name, files);
        rc = read_file(s, path, name, sources, err);
        free(path);
    }
    if (rc == DT_EMISSING && files > 1) /* after the last one */
        return 0;
    return dt_fail_context(err, "%s: to read files of yours, give --data %s=FILE", t->path, name);
}

static int find_and_read(struct dt_task_split *s, const struct dt_task *t, const char *name,
                         const struct dt_task_sources *sources, struct dt_error *err)
{
    bool found;
    DT_TRY(read_given(s, t, name, sources, &found, err));
    if (found)
        return 0;
    if (t->data_files)
        return read_data_files(s, t, name, sources, err);
    if (t->dataset_path && strchr(t->dataset_path, '/') && sources->fetch)
        return read_hub(s, t, name, sources, err);
    return dt_fail(err, DT_EMISSING, "%s: the split '%s' has no file: give --data %s=FILE", t->path,
                   name, name);
}

int dt_task_split_read(struct dt_task_split *s, const struct dt_task *t, const char *name,
                       const struct dt_task_sources *sources, struct dt_error *err)
{
    *s = (struct dt_task_split){0};
    DT_TRY(find_and_read(s, t, name, sources, err));
    if (s->count == 0)
        return dt_fail(err, DT_EFORMAT, "%s: contains no document", s->path);
    s->features = dt_json_new_object();
    json_object_object_foreach(s->documents[0], field, value)
    {
        (void)value;
        dt_json_object_add(s->features, field, NULL);
    }
    return 0;
}

void dt_task_split_release(struct dt_task_split *s)
{
    for (size_t i = 0; i < s->count; i++)
        json_object_put(s->documents[i]);
    free(s->documents);
    free(s->path);
    json_object_put(s->features);
    *s = (struct dt_task_split){0};
}
