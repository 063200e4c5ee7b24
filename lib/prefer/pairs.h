/* SPDX-License-Identifier: MIT */
/*
 * Preferences as samples of training: pairs of a chosen and a rejected answer.
 *
 * `dt-tokenize --chat --pairs` writes two documents of each record, first the chosen answer after
 * its prompt, then the rejected one. Both carry the hash of the chosen text, so that dt-shard puts
 * them into the same split, and pairs that were torn apart are found.
 *
 *     documents    chosen 0 | rejected 0 | chosen 1 | rejected 1 | ...
 *     sample 1     [ chosen 1, padding | rejected 1, padding ]      twice T + 1 ids
 */
#ifndef DT_PREFER_PAIRS_H
#define DT_PREFER_PAIRS_H

#include "shard/dataset.h"

/* Makes *data a data set of pairs for sequences of T = length tokens, and owns the documents that
 * it had; a sample has dt_pairs_row(length) + 1 ids. DT_EINVALID, naming path and the pair, if the
 * data are not pairs, or an answer is longer than T + 1 tokens. After a failure *data stays. */
int dt_pairs_open(struct dt_dataset **data, const char *path, uint32_t length,
                  struct dt_error *err) DT_MUST_CHECK;

/* The length of a sample, as the data set counts it. */
static inline uint32_t dt_pairs_row(uint32_t length)
{
    return 2 * length + 1;
}

#endif
