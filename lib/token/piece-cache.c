/* SPDX-License-Identifier: MIT */
#include "token/piece-cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "hash/hash.h"

#define FIRST_BITS 12

uint64_t dt_piece_cache_hash(const unsigned char *piece, size_t size)
{
    return dt_hash(piece, size);
}

/* The slot of the piece, or the empty one where it belongs. */
static struct dt_piece_slot *find_slot(const struct dt_piece_cache *c, const unsigned char *piece,
                                       size_t size, uint64_t hash)
{
    size_t mask = ((size_t)1 << c->bits) - 1;
    for (size_t i = hash >> (64 - c->bits);; i = (i + 1) & mask) {
        struct dt_piece_slot *s = &c->slots[i];
        if (s->size == 0)
            return s;
        const uint32_t *stored = c->store + s->at;
        if (s->hash == hash && s->size == size && memcmp(stored + 1 + stored[0], piece, size) == 0)
            return s;
    }
}

const uint32_t *dt_piece_cache_find(const struct dt_piece_cache *c, const unsigned char *piece,
                                    size_t size, uint64_t hash, size_t *count)
{
    if (c->slots == NULL)
        return NULL;
    const struct dt_piece_slot *s = find_slot(c, piece, size, hash);
    if (s->size == 0)
        return NULL;
    *count = c->store[s->at];
    return c->store + s->at + 1;
}

/* Doubles the number of slots. */
static void grow(struct dt_piece_cache *c)
{
    struct dt_piece_slot *old = c->slots;
    size_t count = old ? (size_t)1 << c->bits : 0, mask;
    c->bits = old ? c->bits + 1 : FIRST_BITS;
    c->slots = dt_alloc((size_t)1 << c->bits, sizeof *c->slots);
    mask = ((size_t)1 << c->bits) - 1;
    for (size_t i = 0; i < count; i++) {
        size_t k = old[i].hash >> (64 - c->bits);
        if (old[i].size == 0)
            continue;
        while (c->slots[k].size > 0)
            k = (k + 1) & mask;
        c->slots[k] = old[i];
    }
    free(old);
}

void dt_piece_cache_add(struct dt_piece_cache *c, const unsigned char *piece, size_t size,
                        uint64_t hash, const uint32_t *ids, size_t count)
{
    size_t words = 1 + count + (size + 3) / 4;
    if (c->count == DT_PIECE_CACHE_PIECES ||
        (c->used + words) * sizeof *c->store > DT_PIECE_CACHE_BYTES)
        dt_piece_cache_release(c);
    if (c->slots == NULL || 2 * c->count >= (size_t)1 << c->bits)
        grow(c);
    if (c->used + words > c->room) {
        c->room = 2 * (c->used + words);
        c->store = dt_realloc(c->store, c->room, sizeof *c->store);
    }
    struct dt_piece_slot *s = find_slot(c, piece, size, hash);
    uint32_t *stored = c->store + c->used;
    *s = (struct dt_piece_slot){.hash = hash, .at = (uint32_t)c->used, .size = (uint32_t)size};
    stored[0] = (uint32_t)count;
    memcpy(stored + 1, ids, count * sizeof *ids);
    memcpy(stored + 1 + count, piece, size);
    c->used += words;
    c->count++;
}

void dt_piece_cache_release(struct dt_piece_cache *c)
{
    free(c->slots);
    free(c->store);
    *c = (struct dt_piece_cache){.slots = NULL};
}
