/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "token/bpe.h"
#include "token/tokenizer.h"
#include "token/vocabulary.h"

/* Text repeats its words, so an encoder remembers the ids of short pieces: a
 * table of fixed size, two entries to a cache line, the older one replaced. An
 * entry is only ever made by running the merges, since a piece that happens to
 * be in the vocabulary need not be what its merges lead to. */
#define CACHE_BITS 16
#define KEY_BYTES  15 /* and one for the length */
#define KEY_IDS    4
#define BATCH      256

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "keys are packed little-endian");

struct key {
    uint64_t low, high; /* the bytes, zeros, and in the last byte the length */
};

struct entry {
    struct key key;        /* zero if empty */
    uint32_t ids[KEY_IDS]; /* DT_NO_TOKEN behind the last */
};

struct line {
    struct entry newer, older;
};

struct dt_encoder {
    const struct dt_tokenizer *tokenizer;
    struct line *cache;
    struct dt_bpe_work work;
    uint32_t *added; /* the active ones, longest first */
    uint32_t added_count;
    bool added_starts[256]; /* the bytes that they start with */
};

static int longer_first(const void *a, const void *b, void *tokenizer)
{
    const struct dt_tokenizer *t = tokenizer;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint32_t length_x = t->tokens[x].length, length_y = t->tokens[y].length;
    return length_x != length_y ? (length_x < length_y) - (length_x > length_y) : (x > y) - (x < y);
}

void dt_encoder_allow_special(struct dt_encoder *e, int allow)
{
    const struct dt_tokenizer *t = e->tokenizer;
    e->added_count = 0;
    memset(e->added_starts, 0, sizeof e->added_starts);
    for (uint32_t i = 0; i < t->added_count; i++) {
        if (t->added[i].special && !allow)
            continue;
        uint32_t id = t->added[i].id;
        e->added[e->added_count++] = id;
        e->added_starts[(unsigned char)t->bytes.data[t->tokens[id].start]] = true;
    }
    qsort_r(e->added, e->added_count, sizeof *e->added, longer_first, (void *)(uintptr_t)t);
}

struct dt_encoder *dt_encoder_new(const struct dt_tokenizer *t)
{
    struct dt_encoder *e = dt_alloc(1, sizeof *e);
    size_t size = sizeof *e->cache << CACHE_BITS;
    void *lines = NULL;
    if (posix_memalign(&lines, sizeof *e->cache, size) != 0)
        lines = dt_realloc(NULL, size, 1); /* slower, or ends the program */
    e->tokenizer = t;
    e->cache = memset(lines, 0, size);
    e->added = dt_alloc(t->added_count, sizeof *e->added);
    dt_encoder_allow_special(e, 0);
    return e;
}

void dt_encoder_free(struct dt_encoder *e)
{
    if (e == NULL)
        return;
    free(e->cache);
    free(e->added);
    dt_bpe_work_release(&e->work);
    free(e);
}

/* The key of a piece of 1 .. KEY_BYTES bytes, of which readable may be read. */
static inline struct key make_key(const unsigned char *piece, size_t size, size_t readable)
{
    static const unsigned char masks[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                            255, 255, 255, 255, 255, 255, 255, 255};
    struct key key = {0, 0}, mask;
    if (readable >= sizeof key) {
        memcpy(&key, piece, sizeof key);
        memcpy(&mask, masks + 16 - size, sizeof mask);
        key.low &= mask.low;
        key.high &= mask.high;
    } else {
        memcpy(&key, piece, size);
    }
    key.high |= (uint64_t)size << 56;
    return key;
}

static inline size_t line_of(struct key key)
{
    uint64_t h = (key.low ^ key.high * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    return (h ^ h << 29) >> (64 - CACHE_BITS);
}

static inline bool same_key(struct key a, struct key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

static void encode_long(struct dt_encoder *e, const unsigned char *piece, size_t size,
                        struct dt_ids *ids)
{
    while (size > 0) {
        size_t part = size < DT_BPE_LONGEST ? size : DT_BPE_LONGEST;
        dt_ids_reserve(ids, ids->count + part);
        ids->count += dt_bpe_encode(e->tokenizer, &e->work, piece, part, ids->data + ids->count);
        piece += part;
        size -= part;
    }
}

/* Encodes a piece that the cache lacks, and puts it there if it fits. */
static void encode_new(struct dt_encoder *e, const unsigned char *piece, struct key key,
                       struct line *line, struct dt_ids *ids)
{
    size_t count =
        dt_bpe_encode(e->tokenizer, &e->work, piece, key.high >> 56, ids->data + ids->count);
    if (count <= KEY_IDS) {
        struct entry made = {key, {DT_NO_TOKEN, DT_NO_TOKEN, DT_NO_TOKEN, DT_NO_TOKEN}};
        memcpy(made.ids, ids->data + ids->count, count * sizeof *made.ids);
        line->older = line->newer;
        line->newer = made;
    }
    ids->count += count;
}

/* Appends the ids of an entry, with no branch on their number. */
static inline void take_entry(const struct entry *entry, struct dt_ids *ids)
{
    memcpy(ids->data + ids->count, entry->ids, sizeof entry->ids);
    ids->count += 1u + (entry->ids[1] != DT_NO_TOKEN) + (entry->ids[2] != DT_NO_TOKEN) +
                  (entry->ids[3] != DT_NO_TOKEN);
}

static void encode_pieces(struct dt_encoder *e, const unsigned char *text, size_t size,
                          const size_t *ends, size_t count, struct dt_ids *ids)
{
    struct key keys[BATCH];
    size_t from = 0;
    for (size_t i = 0; i < count; from = ends[i++]) {
        if (ends[i] - from > KEY_BYTES)
            continue;
        keys[i] = make_key(text + from, ends[i] - from, size - from);
        __builtin_prefetch(&e->cache[line_of(keys[i])]);
    }
    dt_ids_reserve(ids, ids->count + count * KEY_BYTES);
    from = 0;
    for (size_t i = 0; i < count; from = ends[i++]) {
        if (ends[i] - from > KEY_BYTES) {
            encode_long(e, text + from, ends[i] - from, ids);
            dt_ids_reserve(ids, ids->count + (count - i) * KEY_BYTES);
            continue;
        }
        struct line *line = &e->cache[line_of(keys[i])];
        if (same_key(line->newer.key, keys[i]))
            take_entry(&line->newer, ids);
        else if (same_key(line->older.key, keys[i]))
            take_entry(&line->older, ids);
        else
            encode_new(e, text + from, keys[i], line, ids);
    }
}

static void encode_plain(struct dt_encoder *e, const unsigned char *text, size_t size,
                         struct dt_ids *ids)
{
    size_t ends[BATCH];
    while (size > 0) {
        size_t count = e->tokenizer->pattern->split(text, text + size, ends, BATCH);
        encode_pieces(e, text, size, ends, count, ids);
        text += ends[count - 1];
        size -= ends[count - 1];
    }
}

/* The added token at text, the longest if there are several; DT_NO_TOKEN if none. */
static uint32_t added_at(const struct dt_encoder *e, const unsigned char *text, size_t size)
{
    if (!e->added_starts[*text])
        return DT_NO_TOKEN;
    for (uint32_t i = 0; i < e->added_count; i++) {
        size_t length;
        const char *bytes = dt_tokenizer_bytes(e->tokenizer, e->added[i], &length);
        if (length <= size && memcmp(bytes, text, length) == 0)
            return e->added[i];
    }
    return DT_NO_TOKEN;
}

void dt_encode(struct dt_encoder *e, const char *text, size_t size, struct dt_ids *ids)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + size, *from = p;
    while (e->added_count > 0 && p < end) {
        uint32_t id = added_at(e, p, (size_t)(end - p));
        if (id == DT_NO_TOKEN) {
            p++;
            continue;
        }
        encode_plain(e, from, (size_t)(p - from), ids);
        dt_ids_add(ids, id);
        p += e->tokenizer->tokens[id].length;
        from = p;
    }
    encode_plain(e, from, (size_t)(end - from), ids);
}
