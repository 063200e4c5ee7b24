/* SPDX-License-Identifier: MIT */
#include "shard/cache.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/buffer.h"

#define SLAB_FRAMES 1024u /* frames per allocation */

struct slot {
    void *frame; /* in a slab, or allocated if larger; NULL until first used */
    size_t size; /* of that memory */
    bool own;
    dt_frame_slot *owner; /* NULL: free */
    bool used;            /* referenced since the clock hand passed */
};

/* slots[0] is unused: 0 means not cached. */
struct dt_frame_cache {
    size_t frame_size;
    struct slot *slots;
    uint32_t count, capacity, hand;
    uint32_t allocated; /* capacity of the array slots, which grows with count */
    char **slabs;
    uint32_t slab_count, slab_capacity, slab_left; /* unused frames in the last slab */
};

void dt_frame_cache_limit(struct dt_frame_cache *c, size_t budget)
{
    size_t frames = budget / c->frame_size;
    frames = frames < 2 ? 2 : frames < UINT32_MAX / 2 ? frames : UINT32_MAX / 2;
    c->capacity = c->count > 1 + (uint32_t)frames ? c->count : 1 + (uint32_t)frames;
}

struct dt_frame_cache *dt_frame_cache_new(size_t budget, size_t frame_size)
{
    struct dt_frame_cache *c = dt_alloc(1, sizeof *c);
    c->frame_size = (frame_size + 15) / 16 * 16; /* frames are aligned for any id */
    c->count = c->hand = 1;
    dt_frame_cache_limit(c, budget);
    return c;
}

void dt_frame_cache_free(struct dt_frame_cache *c)
{
    if (c == NULL)
        return;
    for (uint32_t i = 1; i < c->count; i++)
        if (c->slots[i].own)
            free(c->slots[i].frame);
    for (uint32_t i = 0; i < c->slab_count; i++)
        free(c->slabs[i]);
    free(c->slabs);
    free(c->slots);
    free(c);
}

/* Memory for a frame of up to frame_size bytes. */
static void *take_from_slab(struct dt_frame_cache *c)
{
    if (c->slab_left == 0) {
        uint32_t left = c->capacity - c->count + 1;
        c->slab_left = left < SLAB_FRAMES ? left : SLAB_FRAMES;
        DT_GROW(c->slabs, c->slab_count, c->slab_capacity);
        c->slabs[c->slab_count++] = dt_realloc(NULL, c->slab_left, c->frame_size);
    }
    return c->slabs[c->slab_count - 1] + --c->slab_left * c->frame_size;
}

/* Gives the slot memory for size bytes. */
static void make_room(struct dt_frame_cache *c, struct slot *s, size_t size)
{
    if (s->frame && size <= s->size)
        return;
    if (s->own)
        free(s->frame);
    s->own = size > c->frame_size;
    s->size = s->own ? size : c->frame_size;
    s->frame = s->own ? dt_realloc(NULL, size, 1) : take_from_slab(c);
}

/* A free slot, or the victim of the clock algorithm. */
static uint32_t find_slot(struct dt_frame_cache *c)
{
    if (c->count < c->capacity) {
        DT_GROW(c->slots, c->count, c->allocated);
        c->slots[c->count] = (struct slot){0};
        return c->count++;
    }
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
    s->used = false; /* only a second reference protects it */
    *owner = i;
    make_room(c, s, size);
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
