/* SPDX-License-Identifier: MIT */
#include "base/path.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"

char *dt_path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);
    return dt_asprintf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

int dt_path_check_inside(const char *name, const char *subject, struct dt_error *err)
{
    for (const char *part = name;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n <= 2 && strspn(part, ".") >= n))
            return dt_fail(err, DT_EFORMAT, "%s: '%s' is not a file of this directory", subject,
                           name);
        part += n;
        if (*part == '\0')
            return 0;
    }
}

const char *dt_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Follows no links. */
static char *join_working_directory(const char *path)
{
    char *directory = *path == '/' ? NULL : dt_checked_errno(getcwd(NULL, 0));
    char *whole = directory ? dt_path_join(directory, path) : dt_strdup(path);
    free(directory);
    return whole;
}

char *dt_path_real(const char *path)
{
    char *whole = dt_checked_errno(realpath(path, NULL));
    if (whole)
        return whole;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *plain = dt_strndup(path, length);
    const char *base = dt_path_base(plain);
    char *folder = base > plain ? dt_strndup(plain, (size_t)(base - plain)) : dt_strdup(".");
    char *real = dt_checked_errno(realpath(folder, NULL));
    whole = real ? dt_path_join(real, base) : join_working_directory(plain);
    free(plain);
    free(folder);
    free(real);
    return whole;
}

char *dt_path_hub_name(const char *path)
{
    static const char snapshots[] = "/snapshots/";
    const char *at = strstr(path, snapshots), *start = at;
    while (start && start > path && start[-1] != '/')
        start--;
    bool data = start && strncmp(start, "datasets--", 10) == 0;
    if (start == NULL || (!data && strncmp(start, "models--", 8) != 0))
        return NULL;
    const char *owner = start + (data ? 10 : 8), *dashes = strstr(owner, "--");
    const char *commit = at + sizeof snapshots - 1;
    size_t length = strcspn(commit, "/");
    if (length != 40 || dashes == NULL || dashes >= at)
        return NULL;
    return dt_asprintf("hf://%s%.*s/%.*s@%s", data ? "datasets/" : "", (int)(dashes - owner), owner,
                       (int)(at - dashes - 2), dashes + 2, commit);
}

char *dt_path_configuration(const char *variable, const char *name)
{
    const char *path = getenv(variable), *xdg = getenv("XDG_CONFIG_HOME"), *user = getenv("HOME");
    if (path && *path)
        return dt_strdup(path);
    if (xdg && *xdg)
        return dt_asprintf("%s/dt/%s", xdg, name);
    return dt_asprintf("%s/.config/dt/%s", user ? user : ".", name);
}
