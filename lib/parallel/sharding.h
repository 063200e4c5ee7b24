/* SPDX-License-Identifier: MIT */
/*
 * Who owns what of a flat arena that several ranks share.
 *
 * The arena is cut into buckets (model/table.h), each bucket into blocks whose size
 * follows from the bucket's alone, and the blocks of each bucket are dealt evenly to
 * the owners in their order. So every owner has an even part of every bucket, in one
 * piece, and sums over blocks in their order do not depend on how many owners there are.
 * Several groups of owners may each have all of it.
 */
#ifndef DT_PARALLEL_SHARDING_H
#define DT_PARALLEL_SHARDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/range.h"
#include "device/arena.h"

struct dt_sharding {
    const int64_t *buckets; /* count + 1: first elements; borrowed */
    int count;
    int first_layer, layers; /* the buckets of layers, which are used one after another */
    int owners;              /* in each group */
    int groups;              /* each has everything */
    bool rooted;             /* the first owner owns all */
};

int64_t dt_sharding_block_size(const struct dt_sharding *sharding, int bucket);
int64_t dt_sharding_block_count(const struct dt_sharding *sharding, int bucket);

/* What an owner has of a bucket, in blocks of it, and in elements of the arena. */
struct dt_range dt_sharding_owned_blocks(const struct dt_sharding *sharding, int bucket, int owner);
struct dt_range dt_sharding_owned(const struct dt_sharding *sharding, int bucket, int owner);
/* Of what owners of several groups have alike, a group's even share. */
struct dt_range dt_sharding_owned_share(const struct dt_sharding *sharding, int bucket, int owner,
                                        int group);
/* Its elements in the buckets before that one; of all buckets with bucket = count. */
int64_t dt_sharding_owned_before(const struct dt_sharding *sharding, int bucket, int owner);

/* Room for buckets that come and go: those of layers, of which one is used while the
 * next one comes or the last one leaves, share two slots; any other has its own. */
struct dt_bucket_slots {
    const struct dt_sharding *sharding; /* borrowed */
    char **places;                      /* of each bucket; NULL while counting */
    int *holders;                       /* of each bucket's slot: who has it now; -1: nobody */
    int *slots;                         /* of each bucket */
};

/* Slots are numbered as the buckets; layers have the first two layers' numbers. */
void dt_bucket_slots_init(struct dt_bucket_slots *slots, const struct dt_sharding *sharding);
void dt_bucket_slots_layout(struct dt_bucket_slots *slots, size_t element_bytes,
                            struct dt_arena *arena);
void dt_bucket_slots_release(struct dt_bucket_slots *slots);
/* The bucket that has the slot of this one now, itself perhaps; -1: none. */
int dt_bucket_slots_holder(const struct dt_bucket_slots *slots, int bucket);
/* Gives the slot to the bucket. */
void *dt_bucket_slots_take(struct dt_bucket_slots *slots, int bucket);

#endif
