/* SPDX-License-Identifier: MIT */
#include "shard/sources.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "shard/shard.h"

struct dt_indexed_directory {
    char *path;
    struct dt_manifest manifest;
    struct dt_indexed_directory *next;
};

/* Reads the directory's index.json, unless it was read before. */
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

/* Looks a file up in its directory's index.json, if there is one. */
static int find_in_directory(struct dt_shard_sources *s, struct dt_shard_source *source,
                      const char *directory, const char *path, struct dt_error *err)
{
    const char *file = dt_path_base(path);
    char *index = dt_path_join(directory, DT_MANIFEST_NAME);
    int there = dt_manifest_is_shard_name(file) ? dt_file_probe(index, err) : 0;
    free(index);
    if (there <= 0)
        return there;
    DT_TRY(read_directory(s, directory, &source->manifest, err));
    const struct dt_manifest_split *split =
        dt_manifest_find_file(source->manifest, file, &source->listed);
    if (split == NULL)
        return dt_fail(err, DT_EFORMAT,
                       "%s: the %s beside it does not list it: a dt-shard that was stopped left "
                       "it, or one is still running; name the directory instead",
                       path, DT_MANIFEST_NAME);
    source->split = split->name;
    return 0;
}

/* Looks a source up in the index.json beside path, if that has the name of a shard. */
static int find_beside(struct dt_shard_sources *s, struct dt_shard_source *source, const char *path,
                   struct dt_error *err)
{
    size_t length = (size_t)(dt_path_base(path) - path);
    char *directory = length ? dt_strndup(path, length > 1 ? length - 1 : 1) : dt_strdup(".");
    int rc = find_in_directory(s, source, directory, path, err);
    free(directory);
    return rc;
}

/* A link of any name to a shard is of the shard's split. */
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

int dt_shard_sources_select(struct dt_shard_sources *s, const char *split, struct dt_error *err)
{
    int kept = 0;
    for (int i = 0; i < s->count; i++)
        if (s->items[i].split == NULL)
            return dt_fail(err, DT_EINVALID, "%s: no %s says which split it is of",
                           strcmp(s->items[i].path, "-") == 0 ? "stdin" : s->items[i].path,
                           DT_MANIFEST_NAME);
    for (int i = 0; i < s->count; i++) {
        if (strcmp(s->items[i].split, split) == 0)
            s->items[kept++] = s->items[i];
        else
            free(s->items[i].path);
    }
    s->count = kept;
    return kept ? 0 : dt_fail(err, DT_EMISSING, "no shard is of split '%s'", split);
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

/* --- what is refused -------------------------------------------------------------------------- */

struct identity {
    dev_t device;
    ino_t inode;
    const char *path;
};

static int by_identity(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode == y->inode ? 0 : x->inode < y->inode ? -1 : 1;
}

static int find_duplicate(struct identity *files, size_t count, struct dt_error *err)
{
    qsort(files, count, sizeof *files, by_identity);
    for (size_t i = 1; i < count; i++)
        if (by_identity(&files[i - 1], &files[i]) == 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: is named twice (also as %s): its documents would count twice",
                           files[i].path, files[i - 1].path);
    return 0;
}

int dt_shard_sources_check_distinct(const struct dt_shard_sources *s, struct dt_error *err)
{
    struct identity *files = dt_alloc((size_t)s->count + 1, sizeof *files);
    struct stat st;
    size_t count = 0;
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->items[i].path, "-") != 0 && stat(s->items[i].path, &st) == 0 &&
            S_ISREG(st.st_mode))
            files[count++] = (struct identity){st.st_dev, st.st_ino, s->items[i].path};
    int rc = find_duplicate(files, count, err);
    free(files);
    return rc;
}

/* The split of a source, or, where no index.json lists it, the one in the name that dt-shard
 * gave it; not ended by a zero. Whatever else there is counts as DT_DEFAULT_SPLIT. */
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

/* Copies of shards without their index.json: train-00000.dts and val-00000.dts, say. */
static int check_names(const struct dt_shard_sources *s, struct dt_error *err)
{
    bool train = false;
    for (int i = 0; i < s->count; i++)
        train |= (s->items[i].split || dt_manifest_is_shard_name(dt_path_base(s->items[i].path))) &&
                 appears_of(&s->items[i], DT_DEFAULT_SPLIT, strlen(DT_DEFAULT_SPLIT));
    for (int i = 0; train && i < s->count; i++)
        if (s->items[i].split == NULL &&
            !appears_of(&s->items[i], DT_DEFAULT_SPLIT, strlen(DT_DEFAULT_SPLIT)))
            return dt_fail(err, DT_EINVALID,
                           "%s: has the name of a shard of another split than '%s', but no %s "
                           "beside it; give it another name if its documents are for '%s'",
                           s->items[i].path, DT_DEFAULT_SPLIT, DT_MANIFEST_NAME, DT_DEFAULT_SPLIT);
    return 0;
}

int dt_shard_sources_check_splits(const struct dt_shard_sources *s, bool *divided, struct dt_error *err)
{
    const struct dt_shard_source *unknown = NULL, *other = NULL;
    for (int i = 0; i < s->count; i++) {
        const char *split = s->items[i].split;
        if (split == NULL && unknown == NULL)
            unknown = &s->items[i];
        if (split && strcmp(split, DT_DEFAULT_SPLIT) != 0 && other == NULL)
            other = &s->items[i];
    }
    *divided = other != NULL;
    if (other && unknown)
        return dt_fail(err, DT_EINVALID,
                       "%s: no %s says which split it is of, and %s is of split '%s': write it to "
                       "a directory of its own first",
                       strcmp(unknown->path, "-") == 0 ? "stdin" : unknown->path, DT_MANIFEST_NAME,
                       other->path, other->split);
    return check_names(s, err);
}
