/* SPDX-License-Identifier: MIT */
/* How often each piece of a corpus occurs: all that BPE training needs of it. */
#ifndef DT_TOKEN_WORD_COUNT_H
#define DT_TOKEN_WORD_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "pretokenize/pattern.h"

struct dt_counted_word {
    size_t start; /* of its bytes, in bytes.data */
    uint32_t length, hash;
    uint64_t count;
};

/* All-zero is a valid empty count. Memory: about 40 bytes a distinct piece and
 * the piece itself; twice that while it grows. */
struct dt_word_table {
    struct dt_buffer bytes;
    struct dt_counted_word *words;
    uint32_t count, capacity;
    uint32_t *index; /* hash table of places in words, UINT32_MAX: empty */
    uint32_t index_size;
};

/* Longer pieces are counted in parts of this size, so that one endless piece
 * costs no more than many short ones. */
#define DT_WORD_LONGEST 1024

/* Counts a word, of which bytes over DT_WORD_LONGEST make further ones. */
void dt_word_counts_add_word(struct dt_word_table *c, const char *word, size_t size);
/* Counts the pieces that pattern cuts text into. */
void dt_word_counts_add_text(struct dt_word_table *c, const struct dt_pattern *pattern,
                             const char *text, size_t size);
/* Adds the counts of other to those of c. */
void dt_word_counts_merge(struct dt_word_table *c, const struct dt_word_table *other);
void dt_word_counts_release(struct dt_word_table *c);

#endif
