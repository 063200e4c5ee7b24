/* SPDX-License-Identifier: MIT */
#include "shard/sources.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "shard/shard-directory.h"
#include "shard/shard.h"

struct dt_indexed_directory {
    char *path;
    struct dt_manifest manifest;
    struct dt_indexed_directory *next;
};

/* Reads the index.json of a directory, once. */
static int read_directory(struct dt_shard_sources *s, const char *path,
                          const struct dt_manifest **manifest, struct dt_error *err)
{
    struct dt_indexed_directory *d = s->directories;
    while (d && strcmp(d->path, path) != 0)
        d = d->next;
    if (d == NULL) {
        d = dt_alloc(1, sizeof *d);
        d->path = dt_strdup(path);
        d->next = s->directories;
        s->directories = d;
        DT_TRY(dt_manifest_read(&d->manifest, path, err));
    }
    *manifest = &d->manifest;
    return 0;
}

static struct dt_shard_source *add_item(struct dt_shard_sources *s, char *path)
{
    DT_GROW(s->items, s->count, s->capacity);
    s->items[s->count] = (struct dt_shard_source){.path = path};
    return &s->items[s->count++];
}

void dt_shard_sources_add_path(struct dt_shard_sources *s, char *path)
{
    add_item(s, path);
}

static int add_directory(struct dt_shard_sources *s, const char *path, struct dt_error *err)
{
    const struct dt_manifest *m;
    DT_TRY(read_directory(s, path, &m, err));
    for (int i = 0; i < m->count; i++) {
        for (int k = 0; k < m->splits[i].count; k++) {
            const struct dt_manifest_shard *listed = &m->splits[i].shards[k];
            struct dt_shard_source *source = add_item(s, dt_path_join(path, listed->file));
            source->split = m->splits[i].name;
            source->manifest = m;
            source->listed = listed;
        }
    }
    return 0;
}

/* Looks up a file in the index.json of a directory, if it exists. */
static int find_in_directory(struct dt_shard_sources *s, struct dt_shard_source *source,
                             const char *directory, const char *path, struct dt_error *err)
{
    const char *file = dt_path_base(path);
    if (!dt_manifest_is_shard_name(file))
        return 0;
    char *index = dt_path_join(directory, DT_MANIFEST_NAME);
    int exists = dt_file_probe(index, err);
    free(index);
    DT_TRY(exists);
    if (exists == 0)
        return dt_shard_directory_check(directory, file, err);
    DT_TRY(read_directory(s, directory, &source->manifest, err));
    const struct dt_manifest_split *split =
        dt_manifest_find_file(source->manifest, file, &source->listed);
    if (split == NULL)
        return dt_fail(err, DT_EFORMAT,
                       "%s: is not listed in the %s of its directory: a dt-shard was stopped or is "
                       "still running; name the directory instead",
                       path, DT_MANIFEST_NAME);
    source->split = split->name;
    return 0;
}

/* Looks up path in the index.json of its directory, if its name is that of a shard. */
static int find_beside(struct dt_shard_sources *s, struct dt_shard_source *source, const char *path,
                       struct dt_error *err)
{
    size_t length = (size_t)(dt_path_base(path) - path);
    char *directory = length ? dt_strndup(path, length > 1 ? length - 1 : 1) : dt_strdup(".");
    int rc = find_in_directory(s, source, directory, path, err);
    free(directory);
    return rc;
}

/* A symbolic link to a shard has the split of the shard. */
static int add_file(struct dt_shard_sources *s, const char *path, struct dt_error *err)
{
    struct dt_shard_source *source = add_item(s, dt_strdup(path));
    DT_TRY(find_beside(s, source, path, err));
    if (source->split)
        return 0;
    char *real = dt_path_real(path);
    int rc = find_beside(s, source, real, err);
    free(real);
    return rc;
}

int dt_shard_sources_add(struct dt_shard_sources *s, const char *operand, struct dt_error *err)
{
    if (strcmp(operand, "-") == 0)
        add_item(s, dt_strdup(operand));
    else
        return dt_file_is_directory(operand) ? add_directory(s, operand, err)
                                             : add_file(s, operand, err);
    return 0;
}

void dt_shard_sources_release(struct dt_shard_sources *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->items[i].path);
    free(s->items);
    for (struct dt_indexed_directory *d = s->directories, *next; d; d = next) {
        next = d->next;
        dt_manifest_release(&d->manifest);
        free(d->path);
        free(d);
    }
    *s = (struct dt_shard_sources){0};
}

static const char *shown(const struct dt_shard_source *source)
{
    return strcmp(source->path, "-") == 0 ? "stdin" : source->path;
}

int dt_shard_sources_select(struct dt_shard_sources *s, const char *split, struct dt_error *err)
{
    int kept = 0;
    for (int i = 0; i < s->count; i++)
        if (s->items[i].split == NULL)
            return dt_fail(err, DT_EINVALID, "%s: is not listed in an %s, so its split is unknown",
                           shown(&s->items[i]), DT_MANIFEST_NAME);
    for (int i = 0; i < s->count; i++) {
        if (strcmp(s->items[i].split, split) == 0)
            s->items[kept++] = s->items[i];
        else
            free(s->items[i].path);
    }
    s->count = kept;
    return kept ? 0 : dt_fail(err, DT_EMISSING, "no shard belongs to split '%s'", split);
}

int dt_shard_source_check(const struct dt_shard_source *source, struct dt_error *err)
{
    struct dt_shard *shard;
    if (source->listed == NULL)
        return 0;
    DT_TRY(dt_shard_open(&shard, source->path, err));
    int rc = dt_manifest_check(source->manifest, source->listed, shard, source->path, err);
    dt_shard_close(shard);
    return rc;
}

/* --- checks ----------------------------------------------------------------------------------- */

int dt_shard_sources_check_distinct(const struct dt_shard_sources *s, struct dt_error *err)
{
    const char **paths = dt_alloc((size_t)s->count + 1, sizeof *paths);
    for (int i = 0; i < s->count; i++)
        paths[i] = s->items[i].path;
    int rc = dt_file_check_distinct(paths, (size_t)s->count, err);
    free(paths);
    return rc;
}

/* The split of a source by index.json, else by a shard's file name, else DT_DEFAULT_SPLIT. Returns
 * its length; *split is not NUL-terminated. */
static size_t apparent_split(const struct dt_shard_source *source, const char **split)
{
    const char *file = dt_path_base(source->path);
    bool named = source->split == NULL && dt_manifest_is_shard_name(file);
    *split = named ? file : source->split ? source->split : DT_DEFAULT_SPLIT;
    return named ? (size_t)(strrchr(file, '-') - file) : strlen(*split);
}

static bool appears_of(const struct dt_shard_source *source, const char *split, size_t length)
{
    const char *own;
    return apparent_split(source, &own) == length && memcmp(own, split, length) == 0;
}

const struct dt_shard_source *dt_shard_sources_find_other_split(const struct dt_shard_sources *s)
{
    const char *split = NULL;
    size_t length = s->count ? apparent_split(&s->items[0], &split) : 0;
    for (int i = 1; i < s->count; i++)
        if (!appears_of(&s->items[i], split, length))
            return &s->items[i];
    return NULL;
}

/* Whether the last command of the provenance is a dt-shard whose data were divided by --split. */
static bool is_of_divided_data(const char *provenance)
{
    bool split = false, last = false;
    while (*provenance) {
        size_t n = strcspn(provenance, "\n");
        char *line = dt_strndup(provenance, n);
        size_t program = strcspn(line, " ");
        last = program >= 8 && strncmp(line + program - 8, "dt-shard", 8) == 0;
        split |= last && strstr(line, "--split") != NULL;
        free(line);
        provenance += n + (provenance[n] == '\n');
    }
    return split && last;
}

/* A copy or hard link, outside its directory, of a shard of a directory with splits: neither its
 * header nor its name is evidence of its split. */
static int check_copy(const struct dt_shard_source *source, struct dt_error *err)
{
    struct dt_shard_reader *r;
    struct stat st;
    const char *file = dt_path_base(source->path);
    bool named = dt_manifest_is_shard_name(file) &&
                 appears_of(source, DT_DEFAULT_SPLIT, strlen(DT_DEFAULT_SPLIT));
    if (source->split || named || strcmp(source->path, "-") == 0 || stat(source->path, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return 0;
    DT_TRY(dt_shard_reader_open(&r, source->path, err));
    bool divided = is_of_divided_data(dt_shard_reader_info(r)->provenance);
    dt_shard_reader_close(r);
    if (!divided)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s: is a shard of data that were divided into splits, but no %s lists it, so "
                   "its split is unknown; name it in its directory, or convert it with dt-cat --as "
                   "dts if its documents are for '%s'",
                   source->path, DT_MANIFEST_NAME, DT_DEFAULT_SPLIT);
}

/* Copies of shards named train-00000.dts and val-00000.dts, without their index.json. */
static int check_names(const struct dt_shard_sources *s, struct dt_error *err)
{
    const size_t length = strlen(DT_DEFAULT_SPLIT);
    bool has_default = false;
    for (int i = 0; i < s->count; i++)
        has_default |=
            (s->items[i].split || dt_manifest_is_shard_name(dt_path_base(s->items[i].path))) &&
            appears_of(&s->items[i], DT_DEFAULT_SPLIT, length);
    for (int i = 0; has_default && i < s->count; i++)
        if (s->items[i].split == NULL && !appears_of(&s->items[i], DT_DEFAULT_SPLIT, length))
            return dt_fail(err, DT_EINVALID,
                           "%s: is named like a shard of another split than '%s', but no %s lists "
                           "it; rename it if its documents are for '%s'",
                           s->items[i].path, DT_DEFAULT_SPLIT, DT_MANIFEST_NAME, DT_DEFAULT_SPLIT);
    return 0;
}

int dt_shard_sources_check_splits(const struct dt_shard_sources *s, bool *keep,
                                  struct dt_error *err)
{
    const struct dt_shard_source *unknown = NULL, *other = NULL;
    for (int i = 0; i < s->count; i++) {
        const char *split = s->items[i].split;
        if (split == NULL && unknown == NULL)
            unknown = &s->items[i];
        if (split && strcmp(split, DT_DEFAULT_SPLIT) != 0 && other == NULL)
            other = &s->items[i];
        DT_TRY(check_copy(&s->items[i], err));
    }
    *keep = other != NULL;
    if (other && unknown)
        return dt_fail(err, DT_EINVALID,
                       "%s: is not listed in an %s, so its split is unknown, but %s belongs to "
                       "split '%s': write it to a separate directory first",
                       shown(unknown), DT_MANIFEST_NAME, other->path, other->split);
    return check_names(s, err);
}
