/* SPDX-License-Identifier: MIT */
/* Preloaded into a program, writes "fsync PATH" and "rename PATH" (of the new name) to the file
 * $DURABILITY, one line per successful call, in order. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *call, const char *path)
{
    FILE *f = fopen(getenv("DURABILITY"), "a");
    if (f == NULL)
        abort();
    fprintf(f, "%s %s\n", call, path);
    fclose(f);
}

int fsync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    int rc = real(fd);
    if (rc == 0 && size > 0) {
        path[size] = 0;
        note("fsync", path);
    }
    return rc;
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    int rc = real(from, to);
    if (rc == 0)
        note("rename", to);
    return rc;
}
