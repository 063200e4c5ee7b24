/* SPDX-License-Identifier: MIT */
/*
 * Unigram training on counted words (Kudo 2018): from the frequent substrings of the words, EM and
 * pruning lead to the pieces under which the words are most probable.
 *
 *     DT_TRY(dt_learn_unigram(&learned, words, size, alphabet, "", err));
 *     ... learned.pieces[i], the most probable first
 *     dt_learned_release(&learned);
 */
#ifndef DT_VOCAB_LEARN_UNIGRAM_H
#define DT_VOCAB_LEARN_UNIGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "steps/piece-trie.h"
#include "vocab/word-count.h"

struct dt_learned {
    struct dt_trie_piece *pieces; /* [count]; their bytes belong to the words; id: the index */
    double *scores;               /* [count]: natural logarithms of probabilities */
    uint32_t count;
    uint32_t characters; /* that need a piece; set also if the vocabulary is too small for them */
    double likelihood;   /* mean logarithm of a word's probability, over all segmentations */
};

/* Learns up to size pieces, of up to 16 characters, all of the `alphabet` most frequent characters
 * among them. Words are UTF-8; those of more than 128 bytes do not count. One thread; the result
 * depends only on the words and their counts, not on their order. others: ASCII characters that
 * also need room, which their caller adds. DT_EINVALID if size is below the number of characters,
 * DT_EFORMAT without words.
 *
 * Memory: 24 bytes per character of the distinct words, and 100 per seed piece, of which there are
 * up to 1,000,000. */
int dt_learn_unigram(struct dt_learned *learned, const struct dt_word_table *words, uint32_t size,
                     uint32_t alphabet, const char *others, struct dt_error *err) DT_MUST_CHECK;

void dt_learned_release(struct dt_learned *learned);

#endif
