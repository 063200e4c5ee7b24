/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "hash/hash.h"
#include "io/lineage-internal.h"

#define INDEX      "index.json"
#define MANIFEST   "trainer/manifest.json"
#define CHECKPOINT "trainer/" DT_LINEAGE_FILE
#define WEIGHTS    "model.safetensors"
#define ADAPTER    "adapter_model.safetensors"

void dt_lineage_input_release(struct dt_lineage_input *in)
{
    free(in->file);
    free(in->content);
    free(in->of);
    json_object_put(in->upstream);
}

/* Reads the member "lineage" of a JSON file. *records is NULL without a file or member. */
static int read_member(const char *path, struct json_object **root, struct json_object **records,
                       struct dt_error *err)
{
    *root = *records = NULL;
    int found = dt_file_probe(path, err);
    if (found <= 0)
        return found;
    DT_TRY(dt_json_read(path, root, err));
    if (json_object_is_type(*root, json_type_object) &&
        json_object_object_get_ex(*root, "lineage", records))
        return dt_lineage_check(*records, path, err);
    return 0;
}

static const char *text_member(struct json_object *object, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) &&
                   json_object_is_type(value, json_type_string)
               ? dt_json_text(value)
               : "";
}

/* The records beside a file, unless they are those of other content. */
static int find_beside(struct dt_lineage_input *in, struct dt_error *err)
{
    struct json_object *root, *records;
    char *beside = dt_asprintf("%s" DT_LINEAGE_SUFFIX, in->path);
    int rc = read_member(beside, &root, &records, err);
    if (rc == 0 && records && strcmp(text_member(root, "sha256"), in->sha256) == 0)
        in->upstream = json_object_get(records);
    json_object_put(root);
    free(beside);
    return rc;
}

/* Whether the index lists the file. */
static bool is_listed(struct json_object *index, const char *file)
{
    struct json_object *splits, *shards;
    if (!json_object_object_get_ex(index, "splits", &splits) ||
        !json_object_is_type(splits, json_type_object))
        return false;
    json_object_object_foreach(splits, name, split)
    {
        (void)name;
        if (!json_object_is_type(split, json_type_object) ||
            !json_object_object_get_ex(split, "shards", &shards) ||
            !json_object_is_type(shards, json_type_array))
            continue;
        for (size_t i = 0; i < json_object_array_length(shards); i++)
            if (strcmp(text_member(json_object_array_get_idx(shards, i), "file"), file) == 0)
                return true;
    }
    return false;
}

/* The records of the set that lists a shard. */
static int find_set(struct dt_lineage_input *in, struct dt_error *err)
{
    struct json_object *root, *records;
    const char *base = dt_path_base(in->path);
    char *directory =
        base == in->path ? dt_strdup(".") : dt_strndup(in->path, (size_t)(base - in->path) - 1);
    char *index = dt_path_join(directory, INDEX);
    int rc = read_member(index, &root, &records, err);
    if (rc == 0 && records && is_listed(root, base)) {
        in->upstream = json_object_get(records);
        in->of = directory;
        directory = NULL;
    }
    json_object_put(root);
    free(index);
    free(directory);
    return rc;
}

int dt_lineage_find_upstream(struct dt_lineage_input *in, struct dt_error *err)
{
    size_t n = strlen(in->path);
    DT_TRY(find_beside(in, err));
    if (in->upstream == NULL && n > 4 && strcmp(in->path + n - 4, ".dts") == 0)
        DT_TRY(find_set(in, err));
    return 0;
}

/* The hash of the contents of all shards, which their records do not change. */
static char *content_of_index(struct json_object *root)
{
    struct json_object *splits, *shards;
    struct dt_buffer hashes = DT_BUFFER_EMPTY;
    char hex[DT_HASH_HEX];
    if (!json_object_object_get_ex(root, "splits", &splits) ||
        !json_object_is_type(splits, json_type_object))
        return NULL;
    json_object_object_foreach(splits, name, split)
    {
        dt_buffer_printf(&hashes, "%s\n", name);
        if (!json_object_is_type(split, json_type_object) ||
            !json_object_object_get_ex(split, "shards", &shards) ||
            !json_object_is_type(shards, json_type_array))
            continue;
        for (size_t i = 0; i < json_object_array_length(shards); i++)
            dt_buffer_printf(&hashes, "%s\n",
                             text_member(json_object_array_get_idx(shards, i), "hash"));
    }
    dt_hash_hex(dt_hash(hashes.data, hashes.size), hex);
    dt_buffer_release(&hashes);
    return dt_strdup(hex);
}

/* The hash of the weights, or of an adapter, in the manifest of a checkpoint. */
static char *content_of_manifest(struct json_object *root)
{
    struct json_object *files, *weights;
    if (!json_object_object_get_ex(root, "files", &files) ||
        (!json_object_object_get_ex(files, WEIGHTS, &weights) &&
         !json_object_object_get_ex(files, ADAPTER, &weights)))
        return NULL;
    return dt_strdup(text_member(weights, "xxh3"));
}

/* Files of an export that have its records as text, or the path of an adapter's model. */
static bool depends_on_place(const char *name)
{
    return strcmp(name, "README.md") == 0 || strcmp(name, "adapter_config.json") == 0 ||
           strcmp(name, "base_model.json") == 0;
}

/* The hash of the list of the other files of an export. */
static char *content_of_list(struct json_object *root)
{
    struct json_object *files;
    struct dt_buffer text = DT_BUFFER_EMPTY;
    char hex[DT_HASH_HEX];
    if (!json_object_object_get_ex(root, "files", &files) ||
        !json_object_is_type(files, json_type_object))
        return NULL;
    json_object_object_foreach(files, name, entry)
    {
        if (depends_on_place(name))
            continue;
        dt_buffer_printf(&text, "%s\n", name);
        dt_json_add_value(&text, entry, DT_JSON_COMPACT);
    }
    dt_hash_hex(dt_hash(text.size ? text.data : "", text.size), hex);
    dt_buffer_release(&text);
    return dt_strdup(hex);
}

/* Takes the file of a directory that covers its others. */
static int take_manifest(struct dt_lineage_input *in, const char *directory, const char *name,
                         struct dt_error *err)
{
    struct json_object *root = NULL, *records;
    bool is_checkpoint = strcmp(name, MANIFEST) == 0;
    char *path = dt_path_join(directory, name), *lineage = dt_path_join(directory, CHECKPOINT);
    *in = (struct dt_lineage_input){.path = directory, .file = dt_strdup(name), .sha256 = ""};
    int rc = dt_sha256_file(path, &in->bytes, in->hex, err);
    rc = rc < 0 ? rc : read_member(path, &root, &records, err);
    if (rc == 0) {
        in->content = is_checkpoint                        ? content_of_manifest(root)
                      : strcmp(name, DT_LINEAGE_FILE) == 0 ? content_of_list(root)
                                                           : content_of_index(root);
        in->upstream = records ? json_object_get(records) : NULL;
    }
    json_object_put(root);
    if (rc == 0 && is_checkpoint) {
        rc = read_member(lineage, &root, &records, err);
        in->upstream = rc == 0 && records ? json_object_get(records) : NULL;
        json_object_put(root);
    }
    free(lineage);
    free(path);
    return rc;
}

static int take_file(struct dt_lineage_input *in, const char *path, const char *file,
                     struct dt_error *err)
{
    char *whole = file ? dt_path_join(path, file) : dt_strdup(path);
    *in = (struct dt_lineage_input){.path = whole, .sha256 = in->hex};
    int rc = dt_sha256_file(whole, &in->bytes, in->hex, err);
    rc = rc < 0 ? rc : dt_lineage_find_upstream(in, err);
    in->path = path;
    in->file = file ? dt_strdup(file) : NULL;
    free(whole);
    return rc;
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.' && strcmp(e->d_name, DT_LINEAGE_FILE) != 0;
}

int dt_lineage_find_files(const char *path, struct dt_lineage_input **inputs, int *count,
                          struct dt_error *err)
{
    struct dirent **names;
    int found = scandir(path, &names, is_visible, alphasort), rc = 0;
    *inputs = NULL;
    *count = 0;
    if (found < 0)
        return dt_fail_errno(err, "cannot open directory '%s'", path);
    *inputs = dt_alloc((size_t)found + 1, sizeof **inputs);
    for (int i = 0; i < found; i++) {
        mode_t mode;
        char *file = dt_path_join(path, names[i]->d_name);
        rc = rc < 0 ? rc : dt_file_look(file, &mode, err);
        if (rc == 1 && S_ISREG(mode))
            rc = take_file(&(*inputs)[(*count)++], path, names[i]->d_name, err);
        free(file);
        free(names[i]);
    }
    free(names);
    return rc < 0 ? rc : 0;
}

/* The manifest of a directory; NULL: none. */
static int find_manifest(const char *directory, const char **found, struct dt_error *err)
{
    static const char *const names[] = {DT_LINEAGE_FILE, INDEX, MANIFEST, NULL};
    *found = NULL;
    for (int i = 0; names[i] && *found == NULL; i++) {
        char *path = dt_path_join(directory, names[i]);
        int there = dt_file_probe(path, err);
        free(path);
        DT_TRY(there);
        *found = there ? names[i] : NULL;
    }
    return 0;
}

static int find_inputs(const char *path, struct dt_lineage_input **inputs, int *count,
                       struct dt_error *err)
{
    const char *manifest = NULL;
    mode_t mode;
    int there = dt_file_look(path, &mode, err);
    if (there <= 0 || (!S_ISDIR(mode) && !S_ISREG(mode)))
        return there < 0 ? there : 0;
    if (S_ISDIR(mode))
        DT_TRY(find_manifest(path, &manifest, err));
    if (S_ISDIR(mode) && manifest == NULL)
        return dt_lineage_find_files(path, inputs, count, err);
    *inputs = dt_alloc(1, sizeof **inputs);
    *count = 1;
    return manifest ? take_manifest(*inputs, path, manifest, err)
                    : take_file(*inputs, path, NULL, err);
}

int dt_lineage_find_inputs(const char *path, struct dt_lineage_input **inputs, int *count,
                           struct dt_error *err)
{
    *inputs = NULL;
    *count = 0;
    int rc = find_inputs(path, inputs, count, err);
    for (int i = 0; i < *count; i++) { /* the array was moved to the caller */
        if ((*inputs)[i].hex[0])
            (*inputs)[i].sha256 = (*inputs)[i].hex;
        if (rc < 0)
            dt_lineage_input_release(&(*inputs)[i]);
    }
    if (rc < 0) {
        free(*inputs);
        *inputs = NULL;
        *count = 0;
    }
    return rc;
}

int dt_lineage_read(const char *path, struct json_object **records, struct dt_error *err)
{
    struct dt_lineage_input *inputs;
    int count;
    mode_t mode;
    char *latest = dt_path_join(path, "latest");
    int rc = dt_file_look(latest, &mode, err);
    rc = rc < 0 ? rc
                : dt_lineage_find_inputs(rc && S_ISDIR(mode) ? latest : path, &inputs, &count, err);
    free(latest);
    DT_TRY(rc);
    *records = count == 1 && inputs[0].upstream ? json_object_get(inputs[0].upstream) : NULL;
    for (int i = 0; i < count; i++)
        dt_lineage_input_release(&inputs[i]);
    free(inputs);
    return *records ? 0
                    : dt_fail(err, DT_EMISSING,
                              "%s: has no lineage: it was not written by dt, or by a version that "
                              "recorded none",
                              path);
}

int dt_lineage_content(const char *path, char **content, struct dt_error *err)
{
    struct dt_lineage_input *inputs;
    int count;
    DT_TRY(dt_lineage_find_inputs(path, &inputs, &count, err));
    *content = count == 1 && inputs[0].content ? dt_strdup(inputs[0].content) : NULL;
    for (int i = 0; i < count; i++)
        dt_lineage_input_release(&inputs[i]);
    free(inputs);
    return *content ? 0 : dt_fail(err, DT_EMISSING, "%s: was not written by dt", path);
}
