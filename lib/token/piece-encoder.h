/* SPDX-License-Identifier: MIT */
/*
 * Encodes pieces of a text, remembering their ids. Private to lib/token.
 *
 *     dt_piece_encoder_init(&p, tokenizer, &work);
 *     dt_piece_encoder_encode(&p, text, readable, ends, count, &ids);
 *
 * Most pieces were seen before: one loop looks them up. Those that were not are looked up and
 * merged in several steps, each for all of them, so that they wait for the processor's memory
 * together.
 */
#ifndef DT_TOKEN_PIECE_ENCODER_H
#define DT_TOKEN_PIECE_ENCODER_H

#include "token/model.h"
#include "token/piece-cache.h"
#include "token/short-pieces.h"

#define DT_PIECE_BATCH 256 /* pieces at a time */

struct dt_piece_encoder {
    const struct dt_tokenizer *tokenizer;
    struct dt_model_work *work;
    struct dt_short_cache cache;
    struct dt_piece_cache longer; /* of pieces that are not in the other cache */
    uint32_t *made;               /* scratch for ids */
    size_t room;
};

/* Where the ids of a piece are, if they are known. */
struct dt_piece_place {
    struct dt_short_key key;
    struct dt_short_line *line; /* NULL: the piece is too long for a key; key.low: its hash */
};

void dt_piece_encoder_init(struct dt_piece_encoder *p, const struct dt_tokenizer *t,
                           struct dt_model_work *work);
void dt_piece_encoder_release(struct dt_piece_encoder *p);
/* Appends the ids of pieces, the bytes ends[i-1] .. ends[i]-1 of the text, of which `readable`
 * bytes may be read. */
void dt_piece_encoder_encode(struct dt_piece_encoder *p, const unsigned char *text, size_t readable,
                             const size_t *ends, size_t count, struct dt_ids *ids);

/* The bytes of the next part of a long piece, of whole characters. */
size_t dt_piece_encoder_part(const struct dt_tokenizer *t, const unsigned char *piece, size_t size);
/* Appends the ids of a piece of any length, which is not remembered. */
void dt_piece_encoder_encode_long(struct dt_piece_encoder *p, const unsigned char *piece,
                                  size_t size, struct dt_ids *ids);

#endif
