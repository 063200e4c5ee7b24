/* SPDX-License-Identifier: MIT */
/*
 * Word n-grams (shingles) as hashes, for near duplicates and contamination. Text is normalized as
 * in FineWeb: lower case, without diacritics and punctuation, each number as 0. Removed characters
 * separate words; dt-rules(5) has the definition.
 *
 *     struct dt_shingles s = {0};
 *     dt_shingles_find(&s, 5, text, size);
 *     for (size_t i = 0; i < s.count; i++)
 *         use(s.items[i]);
 *     dt_shingles_release(&s);
 */
#ifndef DT_DEDUP_SHINGLE_H
#define DT_DEDUP_SHINGLE_H

#include <stddef.h>
#include <stdint.h>

#define DT_SHINGLE_WORDS 64 /* maximum words of a shingle */

struct dt_shingles { /* all-zero is a valid empty list */
    uint64_t *items; /* in the order of the text, duplicates included */
    size_t count, capacity;
    size_t words;   /* of the text, each character of a script without blanks as one */
    uint64_t whole; /* hash of all words; of the bytes of a text without words */
};

/* Replaces the list by the shingles of n words (1 .. DT_SHINGLE_WORDS) of text, which must be
 * valid UTF-8. Empty for fewer than n words: then whole is what there is to compare. */
void dt_shingles_find(struct dt_shingles *s, int n, const char *text, size_t size);
void dt_shingles_release(struct dt_shingles *s);

#endif
