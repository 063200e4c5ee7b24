/* SPDX-License-Identifier: MIT */
#include "dedup/exact-duplicates.h"

#include <stdlib.h>

#include "base/buffer.h"

#define FIRST_CAPACITY 1024 /* a power of two, as every later one */

static bool is_empty(struct dt_hash128 hash)
{
    return hash.low == 0 && hash.high == 0;
}

/* The slot of the hash, or the empty slot for it. */
static struct dt_hash128 *find(const struct dt_duplicates *set, struct dt_hash128 hash)
{
    for (uint64_t i = hash.low;; i++) {
        struct dt_hash128 *slot = &set->slots[i & (set->capacity - 1)];
        if (is_empty(*slot) || (slot->low == hash.low && slot->high == hash.high))
            return slot;
    }
}

static void grow(struct dt_duplicates *set)
{
    struct dt_duplicates larger = {.count = set->count,
                                   .capacity = set->capacity ? 2 * set->capacity : FIRST_CAPACITY};
    larger.slots = dt_alloc(larger.capacity, sizeof *larger.slots);
    for (uint64_t i = 0; i < set->capacity; i++)
        if (!is_empty(set->slots[i]))
            *find(&larger, set->slots[i]) = set->slots[i];
    free(set->slots);
    *set = larger;
}

bool dt_duplicates_add(struct dt_duplicates *set, struct dt_hash128 hash)
{
    if (is_empty(hash))
        hash.low = 1; /* zero marks an empty slot */
    if (4 * set->count >= 3 * set->capacity)
        grow(set);
    struct dt_hash128 *slot = find(set, hash);
    if (!is_empty(*slot))
        return false;
    *slot = hash;
    set->count++;
    return true;
}

uint64_t dt_duplicates_bytes(const struct dt_duplicates *set)
{
    return set->capacity * sizeof *set->slots;
}

void dt_duplicates_release(struct dt_duplicates *set)
{
    free(set->slots);
    *set = (struct dt_duplicates){0};
}
