/* SPDX-License-Identifier: MIT */
#include "token/short-pieces.h"

#include "token/cache-memory.h"

#define FIRST_BITS 15
#define LAST_BITS  17

static size_t memory_of(const struct dt_short_cache *cache)
{
    return sizeof *cache->lines << cache->bits;
}

static void allocate(struct dt_short_cache *cache, unsigned bits)
{
    *cache = (struct dt_short_cache){.bits = bits};
    cache->limit = bits < LAST_BITS ? (size_t)1 << (bits - 1) : SIZE_MAX;
    cache->lines = dt_cache_memory_new(memory_of(cache));
}

void dt_short_cache_init(struct dt_short_cache *cache)
{
    allocate(cache, FIRST_BITS);
}

void dt_short_cache_release(struct dt_short_cache *cache)
{
    dt_cache_memory_free(cache->lines, memory_of(cache));
    *cache = (struct dt_short_cache){.lines = NULL};
}

static void move(struct dt_short_cache *to, struct dt_short_entry entry)
{
    size_t count = entry.key.high >> 60;
    entry.key.high &= UINT64_MAX >> 4;
    if (entry.key.high != 0)
        dt_short_cache_insert(to, dt_short_line_of(to, entry.key), entry, count);
}

void dt_short_cache_enlarge(struct dt_short_cache *cache)
{
    struct dt_short_cache old = *cache;
    allocate(cache, LAST_BITS);
    for (size_t i = 0; i < (size_t)1 << old.bits; i++) {
        move(cache, old.lines[i].entries[1]);
        move(cache, old.lines[i].entries[0]);
    }
    dt_short_cache_release(&old);
}
