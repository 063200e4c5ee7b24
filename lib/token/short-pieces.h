/* SPDX-License-Identifier: MIT */
/*
 * The ids of short pieces: a 2-way set-associative table, a set per cache line, the older entry
 * replaced. It starts with 2 MiB and grows to 8 MiB. Private to lib/token.
 *
 *     dt_short_cache_init(&cache);
 *     dt_short_cache_grow(&cache);                                 lines move
 *     struct dt_short_key key = dt_short_key_of(piece, size, readable);
 *     struct dt_short_line *line = dt_short_line_of(&cache, key);
 *     const struct dt_short_entry *entry = dt_short_line_find(line, key, &count);
 *     if (entry == NULL)
 *         dt_short_cache_add(&cache, line, key, ids, count);
 */
#ifndef DT_TOKEN_SHORT_PIECES_H
#define DT_TOKEN_SHORT_PIECES_H

#include <stdint.h>
#include <string.h>

#define DT_SHORT_KEY 15 /* bytes of a piece, and one for their number */
#define DT_SHORT_IDS 4

struct dt_short_key {
    uint64_t low, high; /* the bytes, zeros, and in the last byte their number, below 16 */
};

struct dt_short_entry {
    struct dt_short_key key; /* zero if empty; its last four bits are the number of ids */
    uint32_t ids[DT_SHORT_IDS];
};

struct dt_short_line {
    struct dt_short_entry entries[2]; /* the newer first */
};

/* All-zero is valid for release. */
struct dt_short_cache {
    struct dt_short_line *lines;
    unsigned bits; /* of their number */
    size_t added;  /* entries */
    size_t limit;  /* of them; more lines are made then */
};

void dt_short_cache_init(struct dt_short_cache *cache);
void dt_short_cache_release(struct dt_short_cache *cache);
void dt_short_cache_enlarge(struct dt_short_cache *cache);

/* Makes more lines if many entries were added. */
static inline void dt_short_cache_grow(struct dt_short_cache *cache)
{
    if (cache->added >= cache->limit)
        dt_short_cache_enlarge(cache);
}

/* The key of a piece of 1 .. DT_SHORT_KEY bytes; readable bytes may be read from piece. */
static inline struct dt_short_key dt_short_key_of(const unsigned char *piece, size_t size,
                                                  size_t readable)
{
    static const unsigned char masks[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                            255, 255, 255, 255, 255, 255, 255, 255};
    struct dt_short_key key = {0, 0};
    uint64_t low, high;
    if (readable >= sizeof key) {
        memcpy(&key, piece, sizeof key);
        memcpy(&low, masks + 16 - size, sizeof low);
        memcpy(&high, masks + 24 - size, sizeof high);
        key.low &= low;
        key.high &= high;
    } else {
        memcpy(&key, piece, size);
    }
    key.high |= (uint64_t)size << 56;
    return key;
}

static inline uint64_t dt_short_key_hash(struct dt_short_key key)
{
    uint64_t h = (key.low ^ key.high * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    return h ^ h << 29;
}

static inline struct dt_short_line *dt_short_line_of(const struct dt_short_cache *cache,
                                                     struct dt_short_key key)
{
    return &cache->lines[dt_short_key_hash(key) >> (64 - cache->bits)];
}

/* NULL if the key is not in its line. Only that is a branch: which of two it is, is not
 * predictable. */
static inline const struct dt_short_entry *
dt_short_line_find(const struct dt_short_line *line, struct dt_short_key key, size_t *count)
{
    const struct dt_short_entry *entry = line->entries;
    uint64_t differs = (entry->key.low ^ key.low) | (entry->key.high ^ key.high) << 4;
    entry += differs != 0;
    uint64_t high = entry->key.high ^ key.high;
    *count = high >> 60;
    return ((entry->key.low ^ key.low) | high << 4) == 0 ? entry : NULL;
}

/* Adds an entry that is not in the line. */
static inline void dt_short_cache_insert(struct dt_short_cache *cache, struct dt_short_line *line,
                                         struct dt_short_entry made, size_t count)
{
    made.key.high |= (uint64_t)count << 60;
    line->entries[1] = line->entries[0];
    line->entries[0] = made;
    cache->added++;
}

/* Adds a piece that is not in the line, if it has from 1 to DT_SHORT_IDS ids. */
static inline void dt_short_cache_add(struct dt_short_cache *cache, struct dt_short_line *line,
                                      struct dt_short_key key, const uint32_t *ids, size_t count)
{
    if (count == 0 || count > DT_SHORT_IDS)
        return;
    struct dt_short_entry made = {.key = key};
    memcpy(made.ids, ids, count * sizeof *ids);
    dt_short_cache_insert(cache, line, made, count);
}

#endif
