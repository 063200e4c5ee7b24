/* SPDX-License-Identifier: MIT */
#include "document/file-names.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"

void dt_file_names_add(struct dt_file_names *n, const char *name)
{
    DT_GROW(n->items, n->count, n->capacity);
    n->items[n->count++] = dt_strdup(name);
}

void dt_file_names_release(struct dt_file_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct dt_file_names){.items = NULL};
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int match_below(struct dt_file_names *n, const char *directory, const char *pattern,
                       struct dt_error *err);

/* Goes on with the rest of the pattern, after the component of this name. */
static int match_rest(struct dt_file_names *n, const char *directory, const char *name,
                      const char *rest, struct dt_error *err)
{
    struct stat st;
    char *path = dt_asprintf("%s%s", directory, name);
    int rc = 0;
    if (*rest == '\0') {
        if (lstat(path, &st) == 0)
            dt_file_names_add(n, path);
        else if (errno != ENOENT && errno != ENOTDIR)
            rc = dt_fail_errno(err, "cannot look at '%s'", path);
    } else {
        const size_t slashes = strspn(rest, "/");
        char *below = dt_asprintf("%s%.*s", path, (int)slashes, rest);
        rc = match_below(n, below, rest + slashes, err);
        free(below);
    }
    free(path);
    return rc;
}

/* Of the entries of the directory, those that the component matches. */
static int match_entries(struct dt_file_names *n, const char *directory, const char *component,
                         const char *rest, struct dt_error *err)
{
    struct dirent **entries = NULL;
    int found = scandir(*directory ? directory : ".", &entries, NULL, NULL), rc = 0;
    if (found < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : dt_fail_errno(err, "cannot read the directory '%s'",
                                   *directory ? directory : ".");
    for (int i = 0; i < found; i++) {
        int differs = rc < 0 ? FNM_NOMATCH : fnmatch(component, entries[i]->d_name, FNM_PERIOD);
        if (differs != 0 && differs != FNM_NOMATCH)
            rc = dt_fail(err, DT_ENOMEM, "out of memory for the pattern '%s'", component);
        if (differs == 0)
            rc = match_rest(n, directory, entries[i]->d_name, rest, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

/* directory: "", or with a slash at its end. */
static int match_below(struct dt_file_names *n, const char *directory, const char *pattern,
                       struct dt_error *err)
{
    const size_t size = strcspn(pattern, "/");
    char *component = dt_strndup(pattern, size);
    const char *rest = pattern + size;
    int rc = strpbrk(component, "*?[\\") ? match_entries(n, directory, component, rest, err)
                                         : match_rest(n, directory, component, rest, err);
    free(component);
    return rc;
}

int dt_file_names_match(struct dt_file_names *n, const char *pattern, struct dt_error *err)
{
    const size_t before = n->count;
    DT_TRY(match_below(n, "", pattern, err));
    if (n->count > before)
        qsort(n->items + before, n->count - before, sizeof *n->items, compare);
    return 0;
}
