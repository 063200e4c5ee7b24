/* SPDX-License-Identifier: MIT */
/*
 * The ids of pieces of any number of bytes and ids: a hash table that grows with the text, up to 36
 * MiB, and then starts empty. Private to lib/token.
 *
 *     uint64_t hash = dt_piece_cache_hash(piece, size);
 *     const uint32_t *ids = dt_piece_cache_find(&cache, piece, size, hash, &count);
 *     if (ids == NULL)
 *         dt_piece_cache_add(&cache, piece, size, hash, ids, count);
 */
#ifndef DT_TOKEN_PIECE_CACHE_H
#define DT_TOKEN_PIECE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#define DT_PIECE_CACHE_LONGEST 4096               /* bytes of a piece */
#define DT_PIECE_CACHE_BYTES   ((size_t)20 << 20) /* of ids and bytes */
#define DT_PIECE_CACHE_PIECES  ((size_t)1 << 19)

struct dt_piece_slot {
    uint64_t hash;
    uint32_t at, size; /* words of the store before the piece; its bytes, 0 if the slot is empty */
};

/* All-zero is empty. */
struct dt_piece_cache {
    struct dt_piece_slot *slots;
    uint32_t *store;   /* of each piece the number of its ids, the ids, the bytes */
    size_t used, room; /* words of the store */
    size_t count;
    unsigned bits; /* of the number of slots */
};

uint64_t dt_piece_cache_hash(const unsigned char *piece, size_t size);
/* The ids of a piece, valid until the next one is added; NULL if it is not in the cache. */
const uint32_t *dt_piece_cache_find(const struct dt_piece_cache *cache, const unsigned char *piece,
                                    size_t size, uint64_t hash, size_t *count);
/* Adds a piece of 1 .. DT_PIECE_CACHE_LONGEST bytes that is not in the cache. */
void dt_piece_cache_add(struct dt_piece_cache *cache, const unsigned char *piece, size_t size,
                        uint64_t hash, const uint32_t *ids, size_t count);
void dt_piece_cache_release(struct dt_piece_cache *cache);

/* Loads the slot of a hash into the processor's cache, and then what the slot refers to. */
static inline void dt_piece_cache_prefetch_slot(const struct dt_piece_cache *cache, uint64_t hash)
{
    if (cache->slots)
        __builtin_prefetch(&cache->slots[hash >> (64 - cache->bits)]);
}

static inline void dt_piece_cache_prefetch_ids(const struct dt_piece_cache *cache, uint64_t hash)
{
    if (cache->slots)
        __builtin_prefetch(&cache->store[cache->slots[hash >> (64 - cache->bits)].at]);
}

#endif
