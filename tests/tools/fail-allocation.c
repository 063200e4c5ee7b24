/* SPDX-License-Identifier: MIT */
/* Preloaded into a program of dt, lets allocation $FAIL_ALLOCATION fail (counted from 1 over the
 * process and all libraries; "5+": that and all after it), and writes the number of allocations to
 * $ALLOCATIONS. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long count;
static long first, last;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* Programs that dt starts, such as gnuplot(1), are not tested here. */
__attribute__((constructor)) static void begin(void)
{
    const char *number = getenv("FAIL_ALLOCATION");
    char *end = NULL;
    if (number == NULL || strncmp(program_invocation_short_name, "dt-", 3) != 0)
        return;
    first = strtol(number, &end, 10);
    last = *end == '+' ? LONG_MAX : first;
    count = 0;
}

static bool fails(void)
{
    long number = ++count;
    if (number < first || number > last)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    int saved = errno;
    void *got = memalign(alignment, size);
    errno = saved;
    if (got == NULL)
        return ENOMEM;
    *p = got;
    return 0;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("ALLOCATIONS");
    int file = path && last == 0 ? creat(path, 0666) : -1;
    if (file >= 0) {
        dprintf(file, "%ld\n", (long)count);
        close(file);
    }
}
