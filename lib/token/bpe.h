/* SPDX-License-Identifier: MIT */
/*
 * Byte-pair encoding of one piece (Sennrich et al., "Neural machine translation of rare words
 * with subword units", 2016): merges the adjacent pair of the lowest rank, the leftmost of
 * equals, until no pair has a rank.
 */
#ifndef DT_TOKEN_BPE_H
#define DT_TOKEN_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "token/vocabulary.h"

/* Maximum bytes of a piece. Longer pieces are encoded in parts of this size to bound memory
 * (32 bytes per byte of the longest piece). */
#define DT_BPE_MAX_PIECE ((size_t)1 << 22)

/* Scratch memory, reused between calls; all-zero is valid. */
struct dt_bpe_work {
    struct dt_bpe_symbol *symbols;
    uint64_t *heap;
    size_t capacity;
    struct dt_buffer spelled; /* a character with prefix and suffix */
};

void dt_bpe_work_release(struct dt_bpe_work *work);

/* A piece of 1 .. DT_BPE_MAX_PIECE bytes; ids has room for as many. */
struct dt_bpe_piece {
    const unsigned char *bytes;
    size_t size;
    uint32_t *ids;
    size_t count; /* of the ids */
};

/* Encodes pieces, in less time than one by one. */
void dt_bpe_encode_pieces(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                          struct dt_bpe_piece *pieces, size_t count);

/* Encodes a piece of 1 .. DT_BPE_MAX_PIECE bytes; ids and, unless it is NULL, ends have room for
 * size elements; ends[i] is the end offset of id i. Returns the number of ids. O(n log n). */
size_t dt_bpe_encode(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                     const unsigned char *piece, size_t size, uint32_t *ids, size_t *ends);

/* --- cuts --------------------------------------------------------------------------------------
 * Text without pre-tokenizer is one piece per document. A merge cannot join a character with the
 * mark U+2581 after it unless a token contains both in this order, so the text may be cut
 * before the other marks and each part encoded separately. */
struct dt_bpe_cuts {
    bool ascii[128]; /* characters that a token has before a mark */
    uint32_t *others;
    size_t count, capacity;
};

/* NULL if a cut could change ids, or if the vocabulary has no marks. The caller owns it. */
struct dt_bpe_cuts *dt_bpe_cuts_new(const struct dt_tokenizer *t);
void dt_bpe_cuts_free(struct dt_bpe_cuts *cuts); /* NULL is fine */

/* As dt_split_function: splits text .. end, valid UTF-8 or not, at cuts. */
size_t dt_bpe_cuts_split(const struct dt_bpe_cuts *cuts, const unsigned char *text,
                         const unsigned char *end, size_t *ends, size_t capacity);

#endif
