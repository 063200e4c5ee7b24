/* SPDX-License-Identifier: MIT */
/*
 * Which data-parallel rank owns which elements of a flat arena (ZeRO's sharding).
 *
 * The arena is cut into buckets (model/table.h) and each bucket into blocks. The size of a block
 * depends on the bucket's size alone, so sums over blocks in order have the same bits for any
 * number of owners. Each owner has one contiguous run of blocks of every bucket:
 *
 *     bucket of 10 blocks      | 0  1 | 2  3  4 | 5  6 | 7  8  9 |
 *     owner, of 4                  0       1        2       3
 *
 * With hybrid sharding (distributed.shard_ranks) there are several groups of owners, and each group
 * holds the whole arena.
 */
#ifndef DT_PARALLEL_SHARDING_H
#define DT_PARALLEL_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/range.h"
#include "device/arena.h"

struct dt_sharding {
    const int64_t *buckets;  /* count + 1: first element of each; borrowed */
    int count;               /* buckets */
    int first_layer, layers; /* buckets of layers: used one after the other */
    int owners;              /* of a group */
    int groups;              /* each holds the whole arena */
    bool root_owns_all;      /* the first owner owns everything: a parameter server */
    bool even;               /* all owners have as many elements, but that the last may have more,
                              * instead of whole blocks: for a library's collectives */
};

/* Elements of a block, and blocks of a bucket. */
int64_t dt_sharding_block_size(const struct dt_sharding *sharding, int bucket);
int64_t dt_sharding_block_count(const struct dt_sharding *sharding, int bucket);

/* What an owner has of a bucket: in blocks of the bucket, and in elements of the arena. */
struct dt_range dt_sharding_owned_blocks(const struct dt_sharding *sharding, int bucket, int owner);
struct dt_range dt_sharding_owned(const struct dt_sharding *sharding, int bucket, int owner);
/* Owners of the same number in all groups hold the same elements: a group's even part of these, in
 * elements of the arena. */
struct dt_range dt_sharding_owned_part(const struct dt_sharding *sharding, int bucket, int owner,
                                       int group);
/* Elements that an owner has of the buckets before that one; of all buckets with bucket = count. */
int64_t dt_sharding_owned_before(const struct dt_sharding *sharding, int bucket, int owner);

/*
 * Double buffers for buckets that are gathered and released. Layers alternate between two slots:
 * one is in use while the other one is prefetched or reduced. Every other bucket has its own slot.
 *
 *     slot A   layer 0 ........... layer 2 ...........
 *     slot B   ....... layer 1 ........... layer 3 ...
 */
struct dt_bucket_slots {
    const struct dt_sharding *sharding; /* borrowed */
    int *slots;                         /* of each bucket: its slot */
    char **buffers;                     /* of each slot; NULL while the arena counts */
    int *holders;                       /* of each slot: the bucket in it; -1: none */
};

/* Slots are numbered as buckets are; layers use the numbers of the first two. */
void dt_bucket_slots_init(struct dt_bucket_slots *slots, const struct dt_sharding *sharding);
void dt_bucket_slots_layout(struct dt_bucket_slots *slots, size_t element_bytes,
                            struct dt_arena *arena);
void dt_bucket_slots_release(struct dt_bucket_slots *slots);
/* The bucket in this bucket's slot, which may be the bucket itself; -1: none. */
int dt_bucket_slots_holder(const struct dt_bucket_slots *slots, int bucket);
/* The buffer of this bucket's slot. */
void *dt_bucket_slots_buffer(const struct dt_bucket_slots *slots, int bucket);
/* Puts the bucket into its slot and returns the buffer. */
void *dt_bucket_slots_take(struct dt_bucket_slots *slots, int bucket);

#endif
