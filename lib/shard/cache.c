/* SPDX-License-Identifier: MIT */
#include "shard/cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

struct slot {
    void *frame;          /* NULL until first used */
    size_t size;          /* of that memory */
    dt_frame_slot *owner; /* NULL: free */
    bool used;            /* since the hand last passed */
};

/* slots[0] is never used, so that 0 can mean none. */
struct dt_frame_cache {
    size_t frame_size;
    struct slot *slots;
    uint32_t count, capacity, hand;
};

void dt_frame_cache_limit(struct dt_frame_cache *c, size_t budget)
{
    size_t frames = budget / c->frame_size;
    frames = frames < 2 ? 2 : frames < UINT32_MAX / 2 ? frames : UINT32_MAX / 2;
    c->capacity = c->count > 1 + (uint32_t)frames ? c->count : 1 + (uint32_t)frames;
    c->slots = dt_realloc(c->slots, c->capacity, sizeof *c->slots);
    memset(c->slots + c->count, 0, (c->capacity - c->count) * sizeof *c->slots);
}

struct dt_frame_cache *dt_frame_cache_new(size_t budget, size_t frame_size)
{
    struct dt_frame_cache *c = dt_alloc(1, sizeof *c);
    c->frame_size = frame_size;
    c->count = c->hand = 1;
    dt_frame_cache_limit(c, budget);
    return c;
}

void dt_frame_cache_free(struct dt_frame_cache *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 1; i < c->count; i++)
        free(c->slots[i].frame);
    free(c->slots);
    free(c);
}

/* A slot that is free or has not been used for a round. */
static uint32_t find_slot(struct dt_frame_cache *c)
{
    if (c->count < c->capacity)
        return c->count++;
    for (;;) {
        uint32_t i = c->hand;
        c->hand = c->hand + 1 < c->capacity ? c->hand + 1 : 1;
        if (c->slots[i].owner == NULL || !c->slots[i].used)
            return i;
        c->slots[i].used = false;
    }
}

void *dt_frame_cache_add(struct dt_frame_cache *c, dt_frame_slot *owner, size_t size)
{
    uint32_t i = find_slot(c);
    struct slot *s = &c->slots[i];
    if (s->owner)
        *s->owner = 0;
    s->owner = owner;
    s->used = false; /* only a second use keeps it */
    *owner = i;
    if (s->frame == NULL || size > s->size) {
        s->size = size > c->frame_size ? size : c->frame_size;
        free(s->frame);
        s->frame = dt_alloc(s->size, 1);
    }
    return s->frame;
}

const void *dt_frame_cache_get(struct dt_frame_cache *c, dt_frame_slot slot)
{
    c->slots[slot].used = true;
    return c->slots[slot].frame;
}

void dt_frame_cache_drop(struct dt_frame_cache *c, dt_frame_slot *slot)
{
    if (*slot == 0)
        return;
    c->slots[*slot].owner = NULL;
    *slot = 0;
}
