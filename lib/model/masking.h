/* SPDX-License-Identifier: MIT */
/*
 * Masked language modeling (Devlin et al. 2019): some tokens of each sequence become targets, to be
 * predicted from the tokens on both sides. Of these, 80% are replaced by the mask token, 10% by a
 * random token, and 10% are kept.
 *
 *     struct dt_masking *masking;
 *     DT_TRY(dt_masking_new(&masking, &options, err));
 *     batch.first_sample = sample;
 *     dt_batch_mask(&batch, masking, ids, B, T, T + 1);
 *
 * The choice is a pure function of the seed, the global index of the sequence and the position. In
 * the next epoch a sequence has another index and other targets (dynamic masking, Liu et al. 2019);
 * batch size and number of ranks do not matter.
 */
#ifndef DT_MODEL_MASKING_H
#define DT_MODEL_MASKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/batch.h"

/* Properties of an id; flags, combined by bitwise or. */
enum dt_id_flag {
    DT_ID_SPECIAL = 1,  /* never a target, and never a random replacement */
    DT_ID_CONTINUES = 2 /* continues the word of the token before */
};

struct dt_masking_options {
    const uint8_t *flags; /* of each id, borrowed until dt_masking_new returns */
    uint32_t count;       /* of ids */
    uint32_t mask;        /* id of the mask token */
    double rate;          /* fraction of tokens that become targets, between 0 and 1: 0.15 */
    bool whole_words;     /* whole-word masking: all tokens of a word or none */
    uint64_t seed;
};

struct dt_masking;
/* *masking is owned by the caller. DT_EINVALID: a rate or mask out of range, or only special
 * ids. */
int dt_masking_new(struct dt_masking **masking, const struct dt_masking_options *options,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_masking_free(struct dt_masking *masking); /* NULL is fine */

/* Fills the batch, whose first_sample is set, with count sequences of length tokens:
 * the first of each row of ids, which are stride apart. (Rows made for
 * next-token prediction have length + 1 ids.) Ids with DT_NOT_PREDICTED are never targets. A
 * sequence with at least one candidate has at least one target. */
void dt_batch_mask(struct dt_batch *batch, const struct dt_masking *masking, const uint32_t *ids,
                   int64_t count, int64_t length, int64_t stride);

#endif
