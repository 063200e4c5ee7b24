/* SPDX-License-Identifier: MIT */
/* Encodes a piece by the model of a tokenizer; private to lib/token. */
#ifndef DT_TOKEN_MODEL_H
#define DT_TOKEN_MODEL_H

#include "token/bpe.h"
#include "token/unigram.h"
#include "token/vocabulary.h"

/* Scratch memory of a thread. */
struct dt_model_work {
    struct dt_bpe_work bpe;
    struct dt_buffer word; /* of WordPiece */
    struct dt_unigram_work *unigram;
    bool continues; /* the piece goes on where the last ended, at a cut of token/words.h */
};

void dt_model_work_init(struct dt_model_work *work, const struct dt_tokenizer *t);
void dt_model_work_release(struct dt_model_work *work);

/* As dt_split_function: splits a piece where that does not change its ids. */
size_t dt_model_split(const struct dt_tokenizer *t, const unsigned char *text,
                      const unsigned char *end, size_t *ends, size_t capacity);

/* The bytes up to which a piece is encoded as a whole. */
size_t dt_model_longest_piece(const struct dt_tokenizer *t);

/* Encodes a piece of 1 .. dt_model_longest_piece() bytes. ids and, unless it is NULL, ends have
 * room for size elements; ends[i] is the end offset in the piece of id i. Returns the number of
 * ids, from 0. */
size_t dt_model_encode(const struct dt_tokenizer *t, struct dt_model_work *work,
                       const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends);

/* The token of all bytes of a piece, if the tokenizer ignores the merges of such pieces; else
 * DT_NO_TOKEN. */
uint32_t dt_model_find_whole(const struct dt_tokenizer *t, const unsigned char *piece, size_t size);

/* Encodes pieces without tokens of dt_model_find_whole(), in less time than one by one. */
void dt_model_encode_pieces(const struct dt_tokenizer *t, struct dt_model_work *work,
                            struct dt_bpe_piece *pieces, size_t count);

#endif
