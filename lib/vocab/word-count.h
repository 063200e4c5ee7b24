/* SPDX-License-Identifier: MIT */
/* The pieces of a corpus with their counts, the input of BPE training. */
#ifndef DT_VOCAB_WORD_COUNT_H
#define DT_VOCAB_WORD_COUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "pretokenize/pattern.h"

struct dt_counted_word {
    size_t start; /* of its bytes, in bytes.data */
    uint32_t length, hash;
    uint64_t count;
};

/* All-zero is a valid empty table. Memory: about 40 bytes per distinct piece, plus its bytes;
 * twice that while growing. */
struct dt_word_table {
    struct dt_buffer bytes;
    struct dt_counted_word *words;
    uint32_t count, capacity;
    uint32_t *index; /* hash table of indices into words, UINT32_MAX: empty */
    uint32_t index_size;
    uint64_t sum; /* of the counts */
};

/* Longer pieces are counted in parts of this size to bound the cost of a single one. */
#define DT_WORD_MAX_BYTES 1024
/* The most pieces: more pairs of adjacent tokens than these have would be beyond an int64_t. */
#define DT_WORD_MAX_SUM ((uint64_t)INT64_MAX / DT_WORD_MAX_BYTES)

/* Adds a word of at most DT_WORD_MAX_BYTES and its count. */
void dt_word_counts_add(struct dt_word_table *c, const char *word, uint32_t length, uint64_t count);
/* Counts a word; each DT_WORD_MAX_BYTES of a longer one count as a word. */
void dt_word_counts_add_word(struct dt_word_table *c, const char *word, size_t size);
/* Counts the pieces of text by pattern. */
void dt_word_counts_add_text(struct dt_word_table *c, const struct dt_pattern *pattern,
                             const char *text, size_t size);
/* Adds the counts of other to those of c. */
void dt_word_counts_merge(struct dt_word_table *c, const struct dt_word_table *other);
void dt_word_counts_release(struct dt_word_table *c);

#endif
