/* SPDX-License-Identifier: MIT */
/*
 * BPE training on counted words (Sennrich et al. 2016): repeatedly makes a token of the most
 * frequent pair of adjacent tokens; of equally frequent pairs, of the one with the lower left
 * id, then right id.
 */
#ifndef DT_VOCAB_LEARN_H
#define DT_VOCAB_LEARN_H

#include <stdint.h>

#include "token/vocabulary.h"
#include "vocab/word-count.h"

/* Adds merges and their tokens to t until it has size tokens or no pair occurs min_count
 * times (at least 1). t already holds the initial symbols: bytes or, for
 * DT_TOKEN_WORD_PIECE, characters, with "##" before all except a word's first. WordPiece skips
 * words with characters outside t and adds tokens without merges. words is released.
 *
 * Memory: about 50 bytes per distinct word, 12 per byte of these, and 50 per distinct pair.
 * Time is proportional to the occurrences of merged pairs in distinct words, independent of
 * the corpus size. */
int dt_learn_merges(struct dt_tokenizer *t, struct dt_word_table *words, uint32_t size,
                    uint64_t min_count, struct dt_error *err) DT_MUST_CHECK;

#endif
