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

/* Scratch memory for long pieces, reused between calls; all-zero is valid. */
struct dt_bpe_work {
    struct dt_bpe_symbol *symbols;
    uint64_t *heap;
    size_t capacity;
};

void dt_bpe_work_release(struct dt_bpe_work *work);

/* Encodes a piece of 1 .. DT_BPE_MAX_PIECE bytes; ids has room for size ids. Returns the
 * number of ids. O(n log n). */
size_t dt_bpe_encode(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                     const unsigned char *piece, size_t size, uint32_t *ids);

#endif
