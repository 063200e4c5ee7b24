/* SPDX-License-Identifier: MIT */
/*
 * Byte-pair encoding of one piece (Sennrich et al., "Neural machine translation
 * of rare words with subword units", 2016): as long as any two neighbours
 * merge, the pair of the lowest rank does, the leftmost first.
 */
#ifndef DT_TOKEN_BPE_H
#define DT_TOKEN_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "token/vocabulary.h"

/* The longest piece: what is longer is encoded in parts of this size, so that
 * memory stays bounded (32 bytes a byte of the longest piece). */
#define DT_BPE_LONGEST ((size_t)1 << 22)

/* Memory for long pieces, kept between calls; all-zero is valid. */
struct dt_bpe_work {
    struct dt_bpe_symbol *symbols;
    uint64_t *heap;
    size_t capacity;
};

void dt_bpe_work_release(struct dt_bpe_work *work);

/* Writes the ids of a piece of 1 .. DT_BPE_LONGEST bytes to ids, which has room
 * for size of them, and returns their number. Takes O(n log n). */
size_t dt_bpe_encode(const struct dt_tokenizer *t, struct dt_bpe_work *work,
                     const unsigned char *piece, size_t size, uint32_t *ids);

#endif
