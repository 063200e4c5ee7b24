/* SPDX-License-Identifier: MIT */
/* The pieces that Unigram training begins with: characters and frequent substrings of words. */
#ifndef DT_VOCAB_UNIGRAM_SEEDS_H
#define DT_VOCAB_UNIGRAM_SEEDS_H

#include <stddef.h>
#include <stdint.h>

#include "steps/piece-trie.h"
#include "vocab/word-count.h"

struct dt_unigram_seeds {
    struct dt_trie_piece
        *pieces;    /* [count]: characters, the most frequent first, then substrings */
    double *scores; /* [count]: logarithms of the share of occurrences */
    uint32_t characters, count;
};

/* Finds the `alphabet` most frequent characters of the words of up to `longest` bytes, and up to
 * `most` substrings of these characters that occur in two words or places, up to 16 characters and
 * not extensible without losing occurrences, with the most occurrences times characters. The bytes
 * belong to the words. */
void dt_unigram_seeds_find(struct dt_unigram_seeds *seeds, const struct dt_word_table *words,
                           size_t longest, uint32_t alphabet, uint32_t most);
void dt_unigram_seeds_release(struct dt_unigram_seeds *seeds);

#endif
