/* SPDX-License-Identifier: MIT */
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* The files of one version of control groups. */
struct version {
    const char *mount, *limit, *usage, *inactive, *active;
};

static const struct version version1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                        "memory.usage_in_bytes", "total_inactive_file",
                                        "total_active_file"};
static const struct version version2 = {"/sys/fs/cgroup", "memory.max", "memory.current",
                                        "inactive_file", "active_file"};

/* The number after the word name in a line; name is NULL for a file of one number. */
static bool read_number(const char *path, const char *name, size_t *number)
{
    FILE *file = dt_checked_errno(fopen(path, "re"));
    char line[256];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        size_t skip = name ? strlen(name) : 0;
        unsigned long long value;
        if (name && (strncmp(line, name, skip) != 0 || strchr(" :", line[skip]) == NULL))
            continue;
        found = sscanf(line + skip, "%*[: ]%llu", &value) == 1 ||
                sscanf(line + skip, "%llu", &value) == 1; /* "max" means no limit */
        if (found)
            *number = (size_t)value;
    }
    if (file)
        fclose(file);
    return found;
}

static bool group_number(const char *group, const char *file, const char *name, size_t *number)
{
    char *path = dt_asprintf("%s/%s", group, file);
    bool found = read_number(path, name, number);
    free(path);
    return found;
}

static size_t left_in_group(const char *group, const struct version *v)
{
    size_t limit, used, inactive = 0, active = 0;
    if (!group_number(group, v->limit, NULL, &limit) || !group_number(group, v->usage, NULL, &used))
        return SIZE_MAX;
    group_number(group, "memory.stat", v->inactive, &inactive);
    group_number(group, "memory.stat", v->active, &active);
    used -= used < inactive + active ? used : inactive + active;
    return limit > used ? limit - used : 0;
}

/* The minimum over a group and its ancestors; ancestors outside the mounted part of the
 * hierarchy are ignored. */
static size_t left_in_groups(const char *root, const char *path, const struct version *v)
{
    char *group = dt_asprintf("%s%s%s", root, v->mount, strcmp(path, "/") == 0 ? "" : path);
    size_t top = strlen(root) + strlen(v->mount), least = SIZE_MAX;
    for (bool more = true; more;) {
        size_t left = left_in_group(group, v);
        least = left < least ? left : least;
        more = strlen(group) > top;
        if (more)
            *strrchr(group, '/') = '\0';
    }
    free(group);
    return least;
}

size_t dt_memory_available(const char *root)
{
    char *meminfo = dt_asprintf("%s/proc/meminfo", root), line[4096];
    char *groups = dt_asprintf("%s/proc/self/cgroup", root);
    size_t kibibytes, least = SIZE_MAX;
    if (read_number(meminfo, "MemAvailable", &kibibytes))
        least = kibibytes * 1024;
    FILE *file = dt_checked_errno(fopen(groups, "re"));
    while (file && fgets(line, sizeof line, file)) { /* "4:memory:/path", or "0::/path" */
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        bool two = strcmp(line, "0:") == 0;
        if (!two && strcmp(names, ":memory") != 0)
            continue;
        size_t left = left_in_groups(root, path, two ? &version2 : &version1);
        least = left < least ? left : least;
    }
    if (file)
        fclose(file);
    free(meminfo);
    free(groups);
    return least;
}
