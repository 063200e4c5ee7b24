/* SPDX-License-Identifier: MIT */
#include "token/cache-memory.h"

#include <stdint.h>
#include <sys/mman.h>

#include "base/buffer.h"
#include "base/system.h"

#define HUGE_PAGE ((size_t)2 << 20)

void *dt_cache_memory_new(size_t size)
{
    char *found =
        mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dt_checked(found == MAP_FAILED ? NULL : found);
    size_t before = (HUGE_PAGE - (uintptr_t)found % HUGE_PAGE) % HUGE_PAGE;
    if (before > 0)
        munmap(found, before);
    munmap(found + before + size, HUGE_PAGE - before);
    dt_system_prefer_huge_pages(found + before, size);
    return found + before;
}

void dt_cache_memory_free(void *memory, size_t size)
{
    if (memory)
        munmap(memory, size);
}
