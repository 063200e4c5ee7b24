/* SPDX-License-Identifier: MIT */
/*
 * WordPiece (Schuster and Nakajima, "Japanese and Korean voice search", 2012): greedy longest
 * match from the left; tokens inside a word have the prefix "##".
 */
#ifndef DT_TOKEN_WORD_PIECE_H
#define DT_TOKEN_WORD_PIECE_H

#include "token/vocabulary.h"

#define DT_WORD_PIECE_PREFIX "##" /* of tokens inside a word */

/* Encodes a word of 1 byte or more: ids and, unless ends is NULL, the end offset of each; both
 * have room for size. Returns the number of ids: 1, the unknown token, if the vocabulary does
 * not cover the word or it has more than max_word_chars characters. Overwrites the
 * DT_BERT_HEADROOM bytes before word; word is unchanged on return. */
size_t dt_word_piece_encode(const struct dt_tokenizer *t, char *word, size_t size,
                            size_t characters, uint32_t *ids, size_t *ends);

#endif
