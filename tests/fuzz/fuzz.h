/* SPDX-License-Identifier: MIT */
/* For fuzzers of libFuzzer (clang): data as a file. */
#ifndef DT_FUZZ_H
#define DT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory that holds data, and its path; close the descriptor after use. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[32])
{
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

static char fuzz_made[] = "/dev/shm/dt-fuzz-XXXXXX";

static inline void fuzz_remove_made(void)
{
    struct dt_error err;
    if (dt_file_remove_tree(fuzz_made, &err) < 0)
        abort();
}

/* A directory in memory, which lasts as long as the program. */
static inline const char *fuzz_directory(void)
{
    static bool made;
    if (!made && (mkdtemp(fuzz_made) == NULL || atexit(fuzz_remove_made) != 0))
        abort();
    made = true;
    return fuzz_made;
}

#endif
