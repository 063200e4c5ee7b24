/* SPDX-License-Identifier: MIT */
#include "token/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/hash.h"
#include "token/character.h"
#include "token/vocabulary.h"

#define ID_LIMIT   (1u << 22) /* no published vocabulary comes near; ids size tables */
#define BYTE_LIMIT (1u << 30) /* of all tokens together */

/* Names that tokens ending a document have, the most usual first. */
static const char *const eot_names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"};

struct dt_tokenizer *dt_tokenizer_new(const struct dt_pattern *pattern)
{
    struct dt_tokenizer *t = dt_alloc(1, sizeof *t);
    t->pattern = pattern;
    t->eot = DT_NO_TOKEN;
    return t;
}

void dt_tokenizer_free(struct dt_tokenizer *t)
{
    if (t == NULL)
        return;
    dt_buffer_release(&t->bytes);
    free(t->tokens);
    free(t->traits);
    free(t->index);
    free(t->merges);
    free(t->slots);
    free(t->byte_pairs);
    free(t->added);
    free(t);
}

static bool has_bytes(const struct dt_tokenizer *t, uint32_t id, const char *bytes, size_t size)
{
    struct dt_token_place place = t->tokens[id];
    return place.length == size && memcmp(t->bytes.data + place.start, bytes, size) == 0;
}

/* The slot of the index that holds these bytes, or the empty one they would take. */
static uint32_t *index_slot(const struct dt_tokenizer *t, const char *bytes, size_t size)
{
    uint32_t mask = t->index_size - 1;
    for (uint32_t i = (uint32_t)dt_hash(bytes, size) & mask;; i = (i + 1) & mask)
        if (t->index[i] == DT_NO_TOKEN || has_bytes(t, t->index[i], bytes, size))
            return &t->index[i];
}

static void insert_into_index(struct dt_tokenizer *t, uint32_t id)
{
    struct dt_token_place place = t->tokens[id];
    uint32_t *slot = index_slot(t, t->bytes.data + place.start, place.length);
    if (*slot != DT_NO_TOKEN)
        return;
    *slot = id;
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
            insert_into_index(t, old[i]);
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

/* The first bytes of a token as a message shows them. */
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

int dt_tokenizer_add(struct dt_tokenizer *t, uint64_t id, const char *bytes, size_t size,
                     struct dt_error *err)
{
    char text[4 * SHOWN_BYTES + 4], other[4 * SHOWN_BYTES + 4];
    if (id >= ID_LIMIT)
        return dt_fail(err, DT_EFORMAT, "id %llu of token '%s' is not below %u",
                       (unsigned long long)id, shown(bytes, size, text), ID_LIMIT);
    if (size == 0)
        return dt_fail(err, DT_EFORMAT, "token %llu is empty", (unsigned long long)id);
    if (size > BYTE_LIMIT - t->bytes.size)
        return dt_fail(err, DT_EFORMAT, "the tokens are longer than %u bytes together", BYTE_LIMIT);
    make_room(t, (uint32_t)id);
    struct dt_token_place *place = &t->tokens[id];
    if (place->length > 0)
        return dt_fail(
            err, DT_EFORMAT, "id %llu stands for two tokens, '%s' and '%s'", (unsigned long long)id,
            shown(t->bytes.data + place->start, place->length, other), shown(bytes, size, text));
    *place = (struct dt_token_place){(uint32_t)t->bytes.size, (uint32_t)size};
    dt_buffer_append(&t->bytes, bytes, size);
    insert_into_index(t, (uint32_t)id);
    return 0;
}

void dt_tokenizer_mark_added(struct dt_tokenizer *t, uint32_t id, bool special)
{
    DT_GROW(t->added, t->added_count, t->added_capacity);
    t->added[t->added_count++] = (struct dt_added_token){id, special};
}

void dt_tokenizer_add_merge(struct dt_tokenizer *t, struct dt_merge merge)
{
    DT_GROW(t->merges, t->merge_count, t->merge_capacity);
    t->merges[t->merge_count++] = merge;
}

uint32_t dt_tokenizer_size(const struct dt_tokenizer *t)
{
    return t->size;
}

uint32_t dt_tokenizer_eot(const struct dt_tokenizer *t)
{
    return t->eot;
}

uint64_t dt_tokenizer_fingerprint(const struct dt_tokenizer *t)
{
    return t->fingerprint;
}

uint32_t dt_tokenizer_find(const struct dt_tokenizer *t, const char *bytes, size_t size)
{
    return t->index_size ? *index_slot(t, bytes, size) : DT_NO_TOKEN;
}

const char *dt_tokenizer_bytes(const struct dt_tokenizer *t, uint32_t id, size_t *size)
{
    *size = id < t->size ? t->tokens[id].length : 0;
    return *size ? t->bytes.data + t->tokens[id].start : "";
}

static bool has_trait(const struct dt_tokenizer *t, uint32_t id, enum dt_token_trait trait)
{
    return id < t->size && (t->traits[id] & trait);
}

bool dt_tokenizer_is_special(const struct dt_tokenizer *t, uint32_t id)
{
    return has_trait(t, id, DT_TOKEN_SPECIAL);
}

bool dt_tokenizer_continues_word(const struct dt_tokenizer *t, uint32_t id)
{
    return has_trait(t, id, DT_TOKEN_CONTINUES);
}

int dt_decode(const struct dt_tokenizer *t, const uint32_t *ids, size_t count,
              struct dt_buffer *text, struct dt_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= t->size || t->tokens[ids[i]].length == 0)
            return dt_fail(err, DT_EFORMAT, "id %u at place %zu is not in the vocabulary", ids[i],
                           i);
        struct dt_token_place place = t->tokens[ids[i]];
        dt_buffer_append(text, t->bytes.data + place.start, place.length);
    }
    return 0;
}

static int find_bytes(struct dt_tokenizer *t, struct dt_error *err)
{
    for (unsigned c = 0; c < 256; c++) {
        char byte = (char)c;
        t->byte_ids[c] = dt_tokenizer_find(t, &byte, 1);
        if (t->byte_ids[c] == DT_NO_TOKEN)
            return dt_fail(err, DT_EFORMAT, "no token stands for the byte 0x%02x", c);
    }
    return 0;
}

static int make_slots(struct dt_tokenizer *t, struct dt_error *err)
{
    t->slot_bits = 4;
    while ((1u << t->slot_bits) < 2 * t->merge_count)
        t->slot_bits++;
    uint32_t mask = (1u << t->slot_bits) - 1;
    t->slots = dt_alloc((size_t)mask + 1, sizeof *t->slots);
    for (uint32_t i = 0; i <= mask; i++)
        t->slots[i] = (struct dt_merge_slot){DT_NO_TOKEN, DT_NO_TOKEN, DT_NO_RANK};
    for (uint32_t rank = 0; rank < t->merge_count; rank++) {
        const struct dt_merge *m = &t->merges[rank];
        uint32_t earlier = dt_pair_rank(t, m->left, m->right);
        if (earlier != DT_NO_RANK)
            return dt_fail(err, DT_EFORMAT, "merges %u and %u (counted from 1) are the same",
                           earlier + 1, rank + 1);
        uint32_t i = dt_pair_hash(m->left, m->right, t->slot_bits);
        while (t->slots[i].rank != DT_NO_RANK)
            i = (i + 1) & mask;
        t->slots[i] = (struct dt_merge_slot){m->left, m->right, rank};
    }
    return 0;
}

static void make_byte_pairs(struct dt_tokenizer *t)
{
    t->byte_pairs = dt_alloc(65536, sizeof *t->byte_pairs);
    for (unsigned i = 0; i < 65536; i++)
        t->byte_pairs[i] = dt_pair_rank(t, t->byte_ids[i >> 8], t->byte_ids[i & 255]);
}

/* Half a character is taken for a part of a word: most such tokens are. */
static bool begins_inside_word(const struct dt_tokenizer *t, uint32_t id)
{
    size_t size;
    const char *bytes = dt_tokenizer_bytes(t, id, &size);
    if (size == 0)
        return false;
    uint32_t code;
    dt_character((const unsigned char *)bytes, (const unsigned char *)bytes + size, &code);
    if (code == DT_CHAR_INVALID)
        return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO; /* L, M, N */
}

static void find_traits(struct dt_tokenizer *t)
{
    t->traits = dt_alloc(t->size, sizeof *t->traits);
    for (uint32_t id = 0; id < t->size; id++)
        if (begins_inside_word(t, id))
            t->traits[id] = DT_TOKEN_CONTINUES;
    for (uint32_t i = 0; i < t->added_count; i++)
        t->traits[t->added[i].id] = t->added[i].special ? DT_TOKEN_SPECIAL : 0;
}

static bool is_added(const struct dt_tokenizer *t, uint32_t id)
{
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].id == id)
            return true;
    return false;
}

static void find_eot(struct dt_tokenizer *t)
{
    for (size_t i = 0; i < sizeof eot_names / sizeof *eot_names; i++) {
        uint32_t id = dt_tokenizer_find(t, eot_names[i], strlen(eot_names[i]));
        if (id != DT_NO_TOKEN && is_added(t, id)) {
            t->eot = id;
            return;
        }
    }
}

static void add_number(struct dt_buffer *b, uint32_t n)
{
    char bytes[4] = {(char)n, (char)(n >> 8), (char)(n >> 16), (char)(n >> 24)};
    dt_buffer_append(b, bytes, sizeof bytes);
}

/* Covers all that decides which ids a text gets, and nothing of how a file
 * spelled it. */
static uint64_t compute_fingerprint(const struct dt_tokenizer *t)
{
    struct dt_buffer all = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&all, t->pattern->name);
    add_number(&all, t->size);
    for (uint32_t id = 0; id < t->size; id++)
        add_number(&all, t->tokens[id].length);
    for (uint32_t id = 0; id < t->size; id++) {
        size_t size;
        const char *bytes = dt_tokenizer_bytes(t, id, &size);
        dt_buffer_append(&all, bytes, size);
    }
    add_number(&all, t->merge_count);
    for (uint32_t i = 0; i < t->merge_count; i++) {
        add_number(&all, t->merges[i].left);
        add_number(&all, t->merges[i].right);
    }
    for (uint32_t i = 0; i < t->added_count; i++)
        if (!t->added[i].special)
            add_number(&all, t->added[i].id);
    uint64_t hash = dt_hash(all.data, all.size);
    dt_buffer_release(&all);
    return hash;
}

int dt_tokenizer_finish(struct dt_tokenizer *t, struct dt_error *err)
{
    DT_TRY(find_bytes(t, err));
    DT_TRY(make_slots(t, err));
    make_byte_pairs(t);
    find_eot(t);
    find_traits(t);
    t->fingerprint = compute_fingerprint(t);
    return 0;
}
