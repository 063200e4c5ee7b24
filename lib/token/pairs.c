/* SPDX-License-Identifier: MIT */
#include "token/pairs.h"

#include <string.h>

#include "token/cache-memory.h"

#define FIRST_BITS 11 /* 64 KiB, pages of any size */

static size_t memory_of(const struct dt_pairs *p)
{
    return sizeof *p->groups << p->bits;
}

static void allocate(struct dt_pairs *p, unsigned bits)
{
    *p = (struct dt_pairs){.bits = bits};
    p->groups = dt_cache_memory_new(memory_of(p));
    memset(p->groups, 0xff, memory_of(p));
}

void dt_pairs_init(struct dt_pairs *p)
{
    allocate(p, FIRST_BITS);
}

void dt_pairs_release(struct dt_pairs *p)
{
    dt_cache_memory_free(p->groups, memory_of(p));
    *p = (struct dt_pairs){.groups = NULL};
}

static size_t next_group(const struct dt_pairs *p, size_t i)
{
    return (i + 1) & (((size_t)1 << p->bits) - 1);
}

static void insert(struct dt_pairs *p, struct dt_ranked_pair pair)
{
    uint64_t key = dt_pairs_key(pair.left, pair.right);
    for (size_t i = dt_pairs_group(p, key);; i = next_group(p, i))
        for (int k = 0; k < DT_PAIR_GROUP; k++)
            if (p->groups[i].slots[k] == UINT64_MAX) {
                p->groups[i].slots[k] = key << (64 - 2 * DT_PAIR_ID_BITS) | pair.rank;
                p->count++;
                return;
            }
}

uint32_t dt_pairs_find_further(const struct dt_pairs *p, size_t i, uint64_t key)
{
    for (;; i = next_group(p, i)) {
        uint64_t found = dt_pairs_compare(&p->groups[i], key);
        if (found != UINT64_MAX || p->groups[i].slots[DT_PAIR_GROUP - 1] == UINT64_MAX)
            return (uint32_t)found & DT_NO_PAIR;
    }
}

static void grow(struct dt_pairs *p)
{
    struct dt_pairs old = *p;
    allocate(p, old.bits + 1);
    for (size_t i = 0; i < dt_pairs_slots(&old); i++)
        if (dt_pairs_at(&old, i).rank != DT_NO_PAIR)
            insert(p, dt_pairs_at(&old, i));
    dt_pairs_release(&old);
}

/* At most 1 of 5 slots is in use, so that few groups are full. */
void dt_pairs_add(struct dt_pairs *p, uint32_t left, uint32_t right, uint32_t rank)
{
    if (5 * p->count >= dt_pairs_slots(p))
        grow(p);
    insert(p, (struct dt_ranked_pair){left, right, rank});
}
