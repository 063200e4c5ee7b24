/* SPDX-License-Identifier: MIT */
/* A directory of a test's own, in TMPDIR: setups and teardowns of cmocka. */
#ifndef DT_TESTS_SCRATCH_H
#define DT_TESTS_SCRATCH_H

#include "test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

static char scratch[PATH_MAX]; /* absolute where TMPDIR is */

static inline int make_scratch(void **state)
{
    const char *parent = getenv("TMPDIR");
    (void)state;
    snprintf(scratch, sizeof scratch, "%s/dt-test-XXXXXX", parent && *parent ? parent : "/tmp");
    if (mkdtemp(scratch))
        return 0;
    perror(scratch);
    return -1;
}

static inline int remove_scratch(void **state)
{
    struct dt_error err;
    (void)state;
    if (dt_file_remove_tree(scratch, &err) == 0)
        return 0;
    print_error("%s\n", err.text);
    return -1;
}

/* The same, as the current directory. */
static inline int enter_scratch(void **state)
{
    return make_scratch(state) < 0 ? -1 : chdir(scratch);
}

static inline int leave_scratch(void **state)
{
    return chdir("/") < 0 ? -1 : remove_scratch(state);
}

/* Writes a file, not through dt_file_write, which waits for the disk. */
static inline void write_bytes(const char *path, const void *data, size_t size)
{
    remove(path); /* a file system may sync a file that is truncated and rewritten */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

#endif
