/* SPDX-License-Identifier: MIT */
/*
 * The ranks of the pairs of tokens that merge: a hash table of eight bytes a pair, in groups of
 * four. Private to lib/token.
 *
 *     dt_pairs_add(&pairs, left, right, rank);
 *     uint32_t rank = dt_pairs_rank(&pairs, left, right);          DT_NO_PAIR: they do not merge
 */
#ifndef DT_TOKEN_PAIRS_H
#define DT_TOKEN_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#define DT_PAIR_ID_BITS 21
#define DT_PAIR_IDS     ((uint32_t)1 << DT_PAIR_ID_BITS)
#define DT_NO_PAIR      (((uint32_t)1 << (64 - 2 * DT_PAIR_ID_BITS)) - 1) /* ranks are less */

#define DT_PAIR_GROUP 4

/* A slot has the ids of the left and the right token, and in the last bits the rank. */
struct dt_pair_group {
    uint64_t slots[DT_PAIR_GROUP]; /* empty ones, which are the last, have all bits */
};

struct dt_pairs {
    struct dt_pair_group *groups;
    size_t count;  /* of pairs */
    unsigned bits; /* of the number of groups */
};

struct dt_ranked_pair {
    uint32_t left, right, rank; /* DT_NO_PAIR: the slot is empty */
};

/* Memory for a first pair; all-zero is valid for release. */
void dt_pairs_init(struct dt_pairs *pairs);
void dt_pairs_release(struct dt_pairs *pairs);
/* Adds a pair that is not in the table, of ids below DT_PAIR_IDS. */
void dt_pairs_add(struct dt_pairs *pairs, uint32_t left, uint32_t right, uint32_t rank);

static inline uint64_t dt_pairs_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << DT_PAIR_ID_BITS | right;
}

/* The first bits are the index of a group. */
static inline uint64_t dt_pairs_hash(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u;
}

static inline size_t dt_pairs_group(const struct dt_pairs *pairs, uint64_t key)
{
    return dt_pairs_hash(key) >> (64 - pairs->bits);
}

/* The number of slots, and the pair in one of them. */
static inline size_t dt_pairs_slots(const struct dt_pairs *pairs)
{
    return (size_t)DT_PAIR_GROUP << pairs->bits;
}

static inline struct dt_ranked_pair dt_pairs_at(const struct dt_pairs *pairs, size_t i)
{
    uint64_t slot = pairs->groups[i / DT_PAIR_GROUP].slots[i % DT_PAIR_GROUP];
    uint64_t key = slot >> (64 - 2 * DT_PAIR_ID_BITS);
    return (struct dt_ranked_pair){(uint32_t)(key >> DT_PAIR_ID_BITS),
                                   (uint32_t)key & (DT_PAIR_IDS - 1), (uint32_t)slot & DT_NO_PAIR};
}

/* The slot of a group that has the key; if none, UINT64_MAX. Without branches, for which pairs
 * merge is not predictable. */
static inline uint64_t dt_pairs_compare(const struct dt_pair_group *group, uint64_t key)
{
    uint64_t found = UINT64_MAX;
#pragma GCC unroll 4
    for (int i = 0; i < DT_PAIR_GROUP; i++)
        found = group->slots[i] >> (64 - 2 * DT_PAIR_ID_BITS) == key ? group->slots[i] : found;
    return found;
}

/* The same as dt_pairs_find(), if the group is full, as few are. */
uint32_t dt_pairs_find_further(const struct dt_pairs *pairs, size_t i, uint64_t key);

/* The rank of the pair of a key, whose group is i. */
static inline uint32_t dt_pairs_find(const struct dt_pairs *pairs, size_t i, uint64_t key)
{
    const struct dt_pair_group *group = &pairs->groups[i];
    uint64_t found = dt_pairs_compare(group, key);
    if (group->slots[DT_PAIR_GROUP - 1] != UINT64_MAX)
        return dt_pairs_find_further(pairs, i, key);
    return (uint32_t)found & DT_NO_PAIR;
}

static inline uint32_t dt_pairs_rank(const struct dt_pairs *pairs, uint32_t left, uint32_t right)
{
    uint64_t key = dt_pairs_key(left, right);
    return dt_pairs_find(pairs, dt_pairs_group(pairs, key), key);
}

#endif
