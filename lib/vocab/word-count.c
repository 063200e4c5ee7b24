/* SPDX-License-Identifier: MIT */
#include "vocab/word-count.h"

#include <stdlib.h>
#include <string.h>

#include "hash/hash.h"

#define BATCH 256
#define EMPTY UINT32_MAX

void dt_word_counts_release(struct dt_word_table *c)
{
    dt_buffer_release(&c->bytes);
    free(c->words);
    free(c->index);
    *c = (struct dt_word_table){.words = NULL};
}

static void grow_index(struct dt_word_table *c)
{
    c->index_size = c->index_size ? 2 * c->index_size : 1024;
    c->index = dt_realloc(c->index, c->index_size, sizeof *c->index);
    memset(c->index, 0xff, c->index_size * sizeof *c->index);
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t slot = c->words[i].hash & (c->index_size - 1);
        while (c->index[slot] != EMPTY)
            slot = (slot + 1) & (c->index_size - 1);
        c->index[slot] = i;
    }
}

void dt_word_counts_add(struct dt_word_table *c, const char *word, uint32_t length, uint64_t count)
{
    c->sum += count;
    if (2 * c->count >= c->index_size)
        grow_index(c);
    uint32_t hash = (uint32_t)dt_hash(word, length), mask = c->index_size - 1, slot = hash & mask;
    for (; c->index[slot] != EMPTY; slot = (slot + 1) & mask) {
        struct dt_counted_word *known = &c->words[c->index[slot]];
        if (known->hash == hash && known->length == length &&
            memcmp(c->bytes.data + known->start, word, length) == 0) {
            known->count += count;
            return;
        }
    }
    c->index[slot] = c->count;
    DT_GROW(c->words, c->count, c->capacity);
    c->words[c->count++] = (struct dt_counted_word){c->bytes.size, length, hash, count};
    dt_buffer_append(&c->bytes, word, length);
}

void dt_word_counts_add_word(struct dt_word_table *c, const char *word, size_t size)
{
    for (; size > DT_WORD_MAX_BYTES; word += DT_WORD_MAX_BYTES, size -= DT_WORD_MAX_BYTES)
        dt_word_counts_add(c, word, DT_WORD_MAX_BYTES, 1);
    dt_word_counts_add(c, word, (uint32_t)size, 1);
}

void dt_word_counts_add_text(struct dt_word_table *c, const struct dt_pattern *pattern,
                             const char *text, size_t size)
{
    size_t ends[BATCH];
    while (size > 0) {
        const unsigned char *bytes = (const unsigned char *)text;
        size_t n = pattern->split(bytes, bytes + size, ends, BATCH), from = 0;
        for (size_t i = 0; i < n; from = ends[i++])
            dt_word_counts_add_word(c, text + from, ends[i] - from);
        text += from;
        size -= from;
    }
}

void dt_word_counts_merge(struct dt_word_table *c, const struct dt_word_table *other)
{
    for (uint32_t i = 0; i < other->count; i++) {
        const struct dt_counted_word *w = &other->words[i];
        dt_word_counts_add(c, other->bytes.data + w->start, w->length, w->count);
    }
}
