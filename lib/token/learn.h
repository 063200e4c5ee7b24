/* SPDX-License-Identifier: MIT */
/*
 * Learning of BPE merges from counted words (Sennrich et al. 2016): again and
 * again the most frequent pair of neighbouring tokens becomes a token; of
 * equally frequent pairs, the one with the lesser left id, then right id.
 */
#ifndef DT_TOKEN_LEARN_H
#define DT_TOKEN_LEARN_H

#include <stdint.h>

#include "token/vocabulary.h"
#include "token/word-count.h"

/* Adds merges and the tokens they make to t, which holds all symbols that words
 * consist of at first, until it has size tokens or no pair is left that occurs
 * min_count times (at least 1). The symbols are bytes or, for DT_TOKEN_WORD_PIECE,
 * characters, with "##" before all but a word's first; a word with a character
 * that is no token is passed over, and only tokens are added, no merges. words
 * is released on the way.
 *
 * Memory: about 50 bytes a distinct word, 12 a byte of them, and 50 a distinct
 * pair; time grows with the occurrences of the merged pairs in distinct words,
 * not with the corpus. */
int dt_learn_merges(struct dt_tokenizer *t, struct dt_word_table *words, uint32_t size,
                    uint64_t min_count, struct dt_error *err) DT_MUST_CHECK;

#endif
