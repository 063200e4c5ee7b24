/* SPDX-License-Identifier: MIT */
/*
 * WordPiece (Schuster and Nakajima, "Japanese and Korean voice search", 2012):
 * a word is the longest token that it begins with, and then, again and again,
 * the longest token with "##" that the rest begins with.
 */
#ifndef DT_TOKEN_WORD_PIECE_H
#define DT_TOKEN_WORD_PIECE_H

#include "token/vocabulary.h"

#define DT_WORD_PIECE_PREFIX "##" /* of tokens that go on with a word */

/* Writes the ids of a word of 1 byte or more, and, unless ends is NULL, the
 * offset in it behind each; both have room for size. Returns their number: 1,
 * the unknown token, where tokens do not cover the word or it has more
 * characters than longest_word. The DT_BERT_HEADROOM bytes before word are
 * overwritten; word is as before. */
size_t dt_word_piece_encode(const struct dt_tokenizer *t, char *word, size_t size,
                            size_t characters, uint32_t *ids, size_t *ends);

#endif
