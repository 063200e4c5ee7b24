/* SPDX-License-Identifier: MIT */
#include "parallel/sharding.h"

#include <stdlib.h>

#include "base/buffer.h"

#define MAX_BLOCKS 256 /* of a bucket */
#define MIN_BLOCK  256 /* elements, except the last block of a bucket */
#define ALIGNMENT  16  /* elements: a cache line of fp32 */

static int64_t bucket_size(const struct dt_sharding *s, int bucket)
{
    return s->buckets[bucket + 1] - s->buckets[bucket];
}

int64_t dt_sharding_block_size(const struct dt_sharding *s, int bucket)
{
    int64_t even = (bucket_size(s, bucket) + MAX_BLOCKS - 1) / MAX_BLOCKS;
    int64_t size = even > MIN_BLOCK ? even : MIN_BLOCK;
    return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int64_t dt_sharding_block_count(const struct dt_sharding *s, int bucket)
{
    int64_t block = dt_sharding_block_size(s, bucket);
    return (bucket_size(s, bucket) + block - 1) / block;
}

struct dt_range dt_sharding_owned_blocks(const struct dt_sharding *s, int bucket, int owner)
{
    int64_t blocks = dt_sharding_block_count(s, bucket);
    if (s->root_owns_all)
        return (struct dt_range){owner == 0 ? 0 : blocks, blocks};
    return dt_range_part(blocks, owner, s->owners);
}

static int64_t first_element(const struct dt_sharding *s, int bucket, int64_t block)
{
    int64_t element = s->buckets[bucket] + block * dt_sharding_block_size(s, bucket);
    return element < s->buckets[bucket + 1] ? element : s->buckets[bucket + 1];
}

static struct dt_range even_piece(const struct dt_sharding *s, int bucket, int owner)
{
    int64_t first = s->buckets[bucket];
    int64_t size = bucket_size(s, bucket) / (s->owners * ALIGNMENT) * ALIGNMENT;
    return (struct dt_range){first + owner * size, owner + 1 < s->owners
                                                       ? first + (owner + 1) * size
                                                       : s->buckets[bucket + 1]};
}

struct dt_range dt_sharding_owned(const struct dt_sharding *s, int bucket, int owner)
{
    if (s->even)
        return even_piece(s, bucket, owner);
    struct dt_range blocks = dt_sharding_owned_blocks(s, bucket, owner);
    return (struct dt_range){first_element(s, bucket, blocks.first),
                             first_element(s, bucket, blocks.end)};
}

/* As if all groups were one: owners of the same number in different groups are neighbours. */
struct dt_range dt_sharding_owned_part(const struct dt_sharding *s, int bucket, int owner,
                                       int group)
{
    struct dt_sharding all = *s;
    all.owners *= s->groups;
    return dt_sharding_owned(&all, bucket, owner * s->groups + group);
}

int64_t dt_sharding_owned_before(const struct dt_sharding *s, int bucket, int owner)
{
    int64_t elements = 0;
    for (int b = 0; b < bucket; b++) {
        struct dt_range run = dt_sharding_owned(s, b, owner);
        elements += dt_range_count(run);
    }
    return elements;
}

/* --- slots ------------------------------------------------------------------------------------ */

static bool is_layer(const struct dt_sharding *s, int bucket)
{
    return bucket >= s->first_layer && bucket < s->first_layer + s->layers;
}

void dt_bucket_slots_init(struct dt_bucket_slots *s, const struct dt_sharding *sharding)
{
    size_t count = (size_t)sharding->count;
    int layers = 0; /* that this stage holds */
    *s = (struct dt_bucket_slots){.sharding = sharding};
    s->buffers = dt_alloc(count, sizeof *s->buffers);
    s->holders = dt_alloc(count, sizeof *s->holders);
    s->slots = dt_alloc(count, sizeof *s->slots);
    for (int b = 0; b < sharding->count; b++) {
        s->holders[b] = -1;
        s->slots[b] = is_layer(sharding, b) ? sharding->first_layer + layers % 2 : b;
        layers += is_layer(sharding, b) && bucket_size(sharding, b) > 0;
    }
}

void dt_bucket_slots_layout(struct dt_bucket_slots *s, size_t element_bytes, struct dt_arena *arena)
{
    for (int slot = 0; slot < s->sharding->count; slot++) {
        int64_t most = 0;
        for (int b = 0; b < s->sharding->count; b++)
            if (s->slots[b] == slot && bucket_size(s->sharding, b) > most)
                most = bucket_size(s->sharding, b);
        s->buffers[slot] = dt_arena_take(arena, (size_t)most * element_bytes);
    }
}

void dt_bucket_slots_release(struct dt_bucket_slots *s)
{
    free(s->buffers);
    free(s->holders);
    free(s->slots);
    *s = (struct dt_bucket_slots){0};
}

int dt_bucket_slots_holder(const struct dt_bucket_slots *s, int bucket)
{
    return s->holders[s->slots[bucket]];
}

void *dt_bucket_slots_buffer(const struct dt_bucket_slots *s, int bucket)
{
    return s->buffers[s->slots[bucket]];
}

void *dt_bucket_slots_take(struct dt_bucket_slots *s, int bucket)
{
    s->holders[s->slots[bucket]] = bucket;
    return dt_bucket_slots_buffer(s, bucket);
}
