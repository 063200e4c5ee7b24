/* SPDX-License-Identifier: MIT */
#include "token/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"

/* Tables have this size; published vocabularies are far smaller. */
#define ID_BITS  22
#define ID_LIMIT (1u << ID_BITS)

static bool has_bytes(const struct dt_tokenizer *t, uint32_t id, const char *bytes, size_t size)
{
    struct dt_token_extent extent = t->tokens[id];
    return extent.length == size && memcmp(t->bytes.data + extent.start, bytes, size) == 0;
}

/* Of an entry of the index. */
static inline uint32_t id_of(uint32_t entry)
{
    return entry & (ID_LIMIT - 1);
}

/* The bits of an entry above its id; never all of them, which DT_NO_TOKEN has. */
static inline uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> (33 + ID_BITS)) << ID_BITS;
}

/* The index slot of the token with these bytes, or the empty slot for it. Tags spare most looks at
 * other tokens. */
static uint32_t *index_slot(const struct dt_tokenizer *t, const char *bytes, size_t size,
                            uint64_t hash)
{
    uint32_t mask = t->index_size - 1, tag = tag_of(hash);
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t entry = t->index[i];
        if (entry == DT_NO_TOKEN ||
            ((entry ^ tag) < ID_LIMIT && has_bytes(t, id_of(entry), bytes, size)))
            return &t->index[i];
    }
}

static void insert_into_index(struct dt_tokenizer *t, uint32_t id)
{
    struct dt_token_extent extent = t->tokens[id];
    const char *bytes = t->bytes.data + extent.start;
    uint64_t hash = dt_hash(bytes, extent.length);
    uint32_t *slot = index_slot(t, bytes, extent.length, hash);
    if (*slot != DT_NO_TOKEN)
        return;
    *slot = id | tag_of(hash);
    t->indexed++;
}

static void grow_index(struct dt_tokenizer *t)
{
    uint32_t old_size = t->index_size, *old = t->index;
    t->index_size = old_size ? 2 * old_size : 1024;
    t->index = dt_alloc(t->index_size, sizeof *t->index);
    memset(t->index, 0xff, t->index_size * sizeof *t->index);
    t->indexed = 0;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i] != DT_NO_TOKEN)
            insert_into_index(t, id_of(old[i]));
    free(old);
}

static void make_room(struct dt_tokenizer *t, uint32_t id)
{
    if (id >= t->capacity) {
        uint32_t capacity = t->capacity ? 2 * t->capacity : 1024;
        capacity = capacity > id ? capacity : id + 1;
        t->tokens = dt_realloc(t->tokens, capacity, sizeof *t->tokens);
        memset(t->tokens + t->capacity, 0, (capacity - t->capacity) * sizeof *t->tokens);
        t->capacity = capacity;
    }
    if (id >= t->size)
        t->size = id + 1;
    if (2 * t->indexed >= t->index_size)
        grow_index(t);
}

/* The first bytes of a token, escaped for a message. */
#define SHOWN_BYTES 32
static const char *shown(const char *bytes, size_t size, char text[4 * SHOWN_BYTES + 4])
{
    char *to = text;
    for (size_t i = 0; i < size && i < SHOWN_BYTES; i++) {
        bool plain = bytes[i] >= ' ' && bytes[i] <= '~';
        to += sprintf(to, plain ? "%c" : "\\x%02x", (unsigned char)bytes[i]);
    }
    strcpy(to, size > SHOWN_BYTES ? "..." : "");
    return text;
}

int dt_tokenizer_add_unreachable(struct dt_tokenizer *t, uint64_t id, const char *bytes,
                                 size_t size, struct dt_error *err)
{
    char text[4 * SHOWN_BYTES + 4], other[4 * SHOWN_BYTES + 4];
    if (id >= ID_LIMIT)
        return dt_fail(err, DT_EFORMAT, "id %llu of token '%s' is not below %u",
                       (unsigned long long)id, shown(bytes, size, text), ID_LIMIT);
    if (size == 0)
        return dt_fail(err, DT_EFORMAT, "token %llu is empty", (unsigned long long)id);
    if (size > DT_VOCABULARY_BYTES - t->bytes.size)
        return dt_fail(err, DT_EFORMAT, "the tokens are longer than %u bytes together",
                       DT_VOCABULARY_BYTES);
    make_room(t, (uint32_t)id);
    struct dt_token_extent *extent = &t->tokens[id];
    if (extent->length > 0)
        return dt_fail(
            err, DT_EFORMAT, "id %llu has two tokens, '%s' and '%s'", (unsigned long long)id,
            shown(t->bytes.data + extent->start, extent->length, other), shown(bytes, size, text));
    *extent = (struct dt_token_extent){(uint32_t)t->bytes.size, (uint32_t)size};
    t->longest = size > t->longest ? (uint32_t)size : t->longest;
    dt_buffer_append(&t->bytes, bytes, size);
    return 0;
}

int dt_tokenizer_add(struct dt_tokenizer *t, uint64_t id, const char *bytes, size_t size,
                     struct dt_error *err)
{
    DT_TRY(dt_tokenizer_add_unreachable(t, id, bytes, size, err));
    insert_into_index(t, (uint32_t)id);
    return 0;
}

int dt_tokenizer_add_distinct(struct dt_tokenizer *t, uint64_t id, const char *bytes, size_t size,
                              struct dt_error *err)
{
    char text[4 * SHOWN_BYTES + 4];
    const uint32_t other = dt_tokenizer_find(t, bytes, size);
    if (other != DT_NO_TOKEN)
        return dt_fail(err, DT_EFORMAT, "tokens %u and %llu are both '%s'", other,
                       (unsigned long long)id, shown(bytes, size, text));
    return dt_tokenizer_add(t, id, bytes, size, err);
}

void dt_tokenizer_mark_added(struct dt_tokenizer *t, struct dt_added_token token)
{
    DT_GROW(t->added, t->added_count, t->added_capacity);
    t->added[t->added_count++] = token;
}

void dt_tokenizer_add_merge(struct dt_tokenizer *t, struct dt_merge merge)
{
    DT_GROW(t->merges, t->merge_count, t->merge_capacity);
    t->merges[t->merge_count++] = merge;
}

uint32_t dt_tokenizer_find(const struct dt_tokenizer *t, const char *bytes, size_t size)
{
    if (t->index_size == 0)
        return DT_NO_TOKEN;
    uint32_t entry = *index_slot(t, bytes, size, dt_hash(bytes, size));
    return entry == DT_NO_TOKEN ? DT_NO_TOKEN : id_of(entry);
}

uint32_t dt_vocabulary_find(const struct dt_tokenizer *t, const char *bytes, size_t size)
{
    uint32_t id = dt_tokenizer_find(t, bytes, size);
    return id != DT_NO_TOKEN && t->traits[id] & DT_TOKEN_APART ? DT_NO_TOKEN : id;
}

uint32_t dt_tokenizer_find_mask(const struct dt_tokenizer *t)
{
    static const char *const spellings[] = {"[MASK]", "<mask>", "<|mask|>"};
    uint32_t id = DT_NO_TOKEN;
    for (int i = 0; i < 3 && id == DT_NO_TOKEN; i++)
        id = dt_tokenizer_find(t, spellings[i], strlen(spellings[i]));
    return id;
}

const char *dt_tokenizer_bytes(const struct dt_tokenizer *t, uint32_t id, size_t *size)
{
    *size = id < t->size ? t->tokens[id].length : 0;
    return *size ? t->bytes.data + t->tokens[id].start : "";
}
