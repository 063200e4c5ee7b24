/* SPDX-License-Identifier: MIT */
/*
 * Measurements for the rules of dt-rules(5), computed lazily and once per document: words, lines,
 * paragraphs, repeated word sequences.
 *
 *     struct dt_measures m = {0};
 *     dt_measures_start(&m, text, size);
 *     if (dt_measure_words(&m)->count < 50)
 *         drop();
 *     dt_measures_start(&m, next_text, next_size);
 *     ...
 *     dt_measures_release(&m);
 */
#ifndef DT_CLEAN_MEASURE_H
#define DT_CLEAN_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clean/stop-words.h"
#include "clean/words.h"

/* Elements equal to an earlier one. */
struct dt_repeats {
    size_t elements, repeated; /* all; the repeated ones */
    uint64_t chars;            /* code points of the repeated ones */
};

struct dt_word_counts {
    size_t count;          /* words and punctuation */
    size_t proper;         /* those that are not all symbols */
    uint64_t proper_chars; /* code points of them */
    size_t with_letter;
    const struct dt_word *items;
};

/* Words between blanks, as Dolma counts them. */
struct dt_plain_words {
    size_t count, with_letter;
    double median_length; /* code points */
};

struct dt_line_counts {
    size_t count;    /* as Python's splitlines() sees them */
    size_t bullets;  /* begin with a bullet or a hyphen, after blanks */
    size_t ellipses; /* end with an ellipsis, before blanks */
};

/* Lines that are not blank, split at LF only. */
struct dt_filled_lines {
    size_t stopped; /* end with a mark that ends sentences */
    size_t brief;   /* at most 30 code points */
    struct dt_repeats all;
    uint64_t feeds; /* LFs in the text */
};

#define DT_SHORT_SEQUENCE   4 /* up to here one search, from the next on another */
#define DT_LONGEST_SEQUENCE 10
struct dt_sequences {        /* of n words */
    uint64_t top_chars;      /* of short ones: count times length of the most frequent one, blanks
                              * included */
    uint64_t repeated_chars; /* of longer ones: in repeated sequences, without blanks */
    uint64_t later_chars;    /* of DT_SHORT_SEQUENCE + 1 words: repeated_chars of no length exceeds
                              * it */
};

/* Positions where repeated sequences begin, in order, and an id per sequence: equal sequences
 * have equal ids. */
struct dt_candidates {
    uint32_t *place, *name;
    size_t count;
};

/* What struct dt_sequences does not exceed; faster to find. */
struct dt_sequence_bounds {
    uint64_t top_chars[5]; /* of n words, n from 2 to 4 */
};

struct dt_hash_slot {
    uint64_t key;
    uint32_t count, mark; /* mark is for the user of the table */
};

/* Open addressing, a power of two slots; a key is never 0. */
struct dt_hash_table {
    struct dt_hash_slot *slots;
    size_t capacity, used; /* number of slots; slots in use */
};

struct dt_measures {
    const char *text;
    size_t size;
    const struct dt_stop_words *stop_words; /* set by the caller at any time; NULL: English */
    unsigned known;                         /* which fields below are valid */
    uint64_t chars, hashes, dots;
    struct dt_words words;
    size_t seen_words, kept_words; /* of dt_measures_keep_line(): in the lines so far */
    struct dt_word_counts word_counts;
    struct dt_plain_words plain_words;
    struct dt_line_counts lines;
    struct dt_filled_lines filled_lines;
    struct dt_repeats paragraphs,
        split_lines; /* split at LF runs of two and more; of one and more */
    struct dt_sequences sequences[DT_LONGEST_SEQUENCE + 1];
    struct dt_sequence_bounds bounds;
    struct dt_hash_table table;
    struct dt_candidates short_ones, long_ones; /* scratch memory of the sequences */
    uint32_t *names;
    uint64_t *seen;
    size_t places_capacity, seen_capacity;
    uint32_t *lengths;
    size_t lengths_capacity;
};

/* Discards all measurements; text is borrowed and must be valid UTF-8. */
void dt_measures_start(struct dt_measures *m, const char *text, size_t size);
/* The same for a text that lost only lines and blanks around them: words that are known are kept,
 * but for those of the lines that went. */
void dt_measures_restart(struct dt_measures *m, const char *text, size_t size);
/* Before that, of each line of the old text that is not blank, in order: whether it stays; before
 * the first one, dt_measures_keep_start(). */
void dt_measures_keep_start(struct dt_measures *m);
void dt_measures_keep_line(struct dt_measures *m, bool stays);
void dt_measures_release(struct dt_measures *m);
/* How words are found from now on: see struct dt_words. Words of another kind are discarded. */
void dt_measures_set_words(struct dt_measures *m, enum dt_segmentation segmentation,
                           unsigned traits);

uint64_t dt_measure_chars(struct dt_measures *m);
uint64_t dt_measure_number_signs(struct dt_measures *m); /* # */
uint64_t dt_measure_ellipses(struct dt_measures *m);     /* ... and U+2026 */
const struct dt_word_counts *dt_measure_words(struct dt_measures *m);
const struct dt_plain_words *dt_measure_plain_words(struct dt_measures *m);
/* The number of different stop words among the words; among the plain ones. */
size_t dt_measure_stop_words(struct dt_measures *m);
size_t dt_measure_plain_stop_words(struct dt_measures *m);
const struct dt_line_counts *dt_measure_lines(struct dt_measures *m);
const struct dt_filled_lines *dt_measure_filled_lines(struct dt_measures *m);
const struct dt_repeats *dt_measure_paragraphs(struct dt_measures *m);
const struct dt_repeats *dt_measure_split_lines(struct dt_measures *m);
/* n from 2 to DT_LONGEST_SEQUENCE. */
const struct dt_sequences *dt_measure_sequences(struct dt_measures *m, int n);
const struct dt_sequence_bounds *dt_measure_sequence_bounds(struct dt_measures *m);

/* Shared by the files that measure. */
void dt_hash_table_clear(struct dt_hash_table *t, size_t elements); /* makes room for elements */
/* The slot of key, created if missing (with count 0). */
static inline struct dt_hash_slot *dt_hash_table_find(struct dt_hash_table *t, uint64_t key)
{
    size_t mask = t->used - 1;
    key |= key == 0;
    for (size_t i = (size_t)key & mask;; i = (i + 1) & mask) {
        struct dt_hash_slot *slot = &t->slots[i];
        if (slot->key == key)
            return slot;
        if (slot->key == 0) {
            slot->key = key;
            return slot;
        }
    }
}
/* Those of more than DT_SHORT_SEQUENCE words after the bounds. */
void dt_measure_range_of_sequences(struct dt_measures *m, size_t from, size_t to);
void dt_measure_bounds_of_sequences(struct dt_measures *m);

#endif
