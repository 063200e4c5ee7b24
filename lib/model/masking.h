/* SPDX-License-Identifier: MIT */
/*
 * The masked objective (Devlin et al. 2019): some tokens of each sequence are
 * chosen, and are to be predicted from those on both sides. Of the chosen, 80%
 * become the mask token, 10% another token, and 10% stay.
 *
 *     struct dt_masking *masking;
 *     DT_TRY(dt_masking_new(&masking, &options, err));
 *     batch.first_sample = sample;
 *     dt_batch_mask(&batch, masking, ids, B, T, T + 1);
 *
 * What is chosen, and what it becomes, is a function of the seed, the sequence's
 * global index and the place in it: a sequence that comes again under another
 * index is masked anew (Liu et al. 2019), and neither the layout of batches nor
 * the number of ranks matters.
 */
#ifndef DT_MODEL_MASKING_H
#define DT_MODEL_MASKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/batch.h"

/* What masking has to know of an id; flags are added up. */
enum dt_id_flag {
    DT_ID_SPECIAL = 1,  /* marks or fills; is never chosen, and replaces nothing */
    DT_ID_CONTINUES = 2 /* goes on with the word that the token before it began */
};

struct dt_masking_options {
    const uint8_t *flags; /* of each id, borrowed until dt_masking_new returns */
    uint32_t count;       /* of ids */
    uint32_t mask;        /* the id that stands for a masked token */
    double rate;          /* of tokens to choose, between 0 and 1: 0.15 */
    bool whole_words;     /* all tokens of a word are chosen together */
    uint64_t seed;
};

struct dt_masking;
/* *masking is owned by the caller. DT_EINVALID: a rate or mask that cannot be, or all
 * ids are special. */
int dt_masking_new(struct dt_masking **masking, const struct dt_masking_options *options,
                   struct dt_error *err) DT_MUST_CHECK;
void dt_masking_free(struct dt_masking *masking); /* NULL is fine */

/* Fills the batch, whose first_sample is set, with count sequences of length tokens:
 * the first of each row of ids, which are stride apart. (A row that a loader made for
 * the next token holds one more, with which the next row begins.) Ids marked
 * DT_NOT_PREDICTED are not chosen, as special ones. A sequence that has tokens to choose from has
 * one target at least. */
void dt_batch_mask(struct dt_batch *batch, const struct dt_masking *masking, const uint32_t *ids,
                   int64_t count, int64_t length, int64_t stride);

#endif
