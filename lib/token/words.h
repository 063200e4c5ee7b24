/* SPDX-License-Identifier: MIT */
/*
 * Words: the parts of a text that is cut before spaces after visible ASCII characters, where the
 * steps and the model of a tokenizer make the same ids of the parts as of the whole text. A cache
 * has the ids of words as they are in the text, before normalization; of words that begin with a
 * line feed, which the tokenizer makes a space, as if they began with a space.
 *
 *     size_t n = dt_words_find(t, text, size, ends, capacity);
 *     key = dt_words_key(text, size, readable, edges);
 *     dt_words_join_lines(&key);                               if t->words.joins_lines
 *     set = dt_words_set_of(&cache, key);
 *     entry = dt_words_look_up(set, key);
 *
 * Private to lib/token.
 */
#ifndef DT_TOKEN_WORDS_H
#define DT_TOKEN_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "token/vocabulary.h"

#define DT_WORDS_KEY_BYTES 23 /* longer words are not in the cache */
#define DT_WORDS_IDS       8

/* A word at an edge of the text has another key, as normalizers may edit edges. */
enum dt_words_edge { DT_WORDS_INSIDE = 0, DT_WORDS_FIRST = 0x80, DT_WORDS_LAST = 0x40 };

struct dt_words_key {
    uint64_t parts[3]; /* the bytes, zeros, and in the last byte the size and edges; 0: empty */
};

/* A cache line. */
struct dt_words_entry {
    struct dt_words_key key;
    uint32_t ids[DT_WORDS_IDS];
    uint32_t count;
    float limit; /* of a Unigram segmentation: dt_unigram_limit() */
};

/* The set of a key: the last of its words. */
#define DT_WORDS_WAYS 4
struct dt_words_set {
    struct dt_words_entry entries[DT_WORDS_WAYS]; /* the last used first */
};

_Static_assert(sizeof(struct dt_words_entry) == 64, "an entry is a cache line");

/* Fills t->words and t->has_words, once the tables of t are made. */
void dt_words_prepare(struct dt_tokenizer *t);

/* The end offsets of the first words of text, which is not empty; returns their number, from 1. The
 * last is size if it has no more words. capacity is at least 65, or size. */
size_t dt_words_find(const struct dt_tokenizer *t, const unsigned char *text, size_t size,
                     size_t *ends, size_t capacity);

/* All-zero is valid for release. */
struct dt_words_cache {
    struct dt_words_set *sets;
    unsigned bits; /* of their number */
};

/* Empty sets: 16 MiB. */
void dt_words_init_cache(struct dt_words_cache *cache);
void dt_words_release_cache(struct dt_words_cache *cache);
/* The entry for a key that is not in the set, which is empty. */
struct dt_words_entry *dt_words_replace(struct dt_words_set *set, struct dt_words_key key);

/* The key of 1 .. DT_WORDS_KEY_BYTES bytes; readable bytes may be read. */
static inline struct dt_words_key dt_words_key(const unsigned char *word, size_t size,
                                               size_t readable, unsigned edges)
{
    static const unsigned char masks[48] = {255, 255, 255, 255, 255, 255, 255, 255,
                                            255, 255, 255, 255, 255, 255, 255, 255,
                                            255, 255, 255, 255, 255, 255, 255, 255};
    struct dt_words_key key = {{0, 0, 0}}, mask;
    if (readable >= sizeof key) {
        memcpy(&key, word, sizeof key);
        memcpy(&mask, masks + 24 - size, sizeof mask);
        for (int i = 0; i < 3; i++)
            key.parts[i] &= mask.parts[i];
    } else {
        memcpy(&key, word, size);
    }
    key.parts[2] |= (uint64_t)(size | edges) << 56;
    return key;
}

/* Makes a line feed at the start a space. */
static inline void dt_words_join_lines(struct dt_words_key *key)
{
    if ((key->parts[0] & 0xff) == '\n')
        key->parts[0] ^= '\n' ^ ' ';
}

/* A hash of this many bits. */
static inline size_t dt_words_hash(struct dt_words_key key, unsigned bits)
{
    const uint64_t a = 0x9e3779b97f4a7c15u, b = 0xd6e8feb86659fd93u;
    uint64_t h = (key.parts[0] ^ (key.parts[2] << 31 | key.parts[2] >> 33)) * b + key.parts[1] * a;
    return (h ^ h >> 32) * a >> (64 - bits);
}

static inline struct dt_words_set *dt_words_set_of(const struct dt_words_cache *cache,
                                                   struct dt_words_key key)
{
    return &cache->sets[dt_words_hash(key, cache->bits)];
}

static inline bool dt_words_same(struct dt_words_key a, struct dt_words_key b)
{
    return ((a.parts[0] ^ b.parts[0]) | (a.parts[1] ^ b.parts[1]) | (a.parts[2] ^ b.parts[2])) == 0;
}

/* Moves the entry of a key to the front of its set. NULL: there is none. */
const struct dt_words_entry *dt_words_move_to_front(struct dt_words_set *set,
                                                    struct dt_words_key key);

/* The entry of a word in its set, which may be NULL. NULL: there is none. Only that it is among the
 * first two is a branch: which of them it is, is not predictable. */
static inline const struct dt_words_entry *dt_words_look_up(struct dt_words_set *set,
                                                            struct dt_words_key key)
{
    if (set == NULL)
        return NULL;
    const struct dt_words_entry *entry = set->entries;
    entry += !dt_words_same(entry->key, key);
    return dt_words_same(entry->key, key) ? entry : dt_words_move_to_front(set, key);
}

#endif
