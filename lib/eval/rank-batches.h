/* SPDX-License-Identifier: MIT */
/*
 * Pieces of work that ranks take in turn, each one whole by one rank:
 *
 *     for (size_t i = 0; i < count; i++)
 *         if (dt_rank_batches_is_ours(ranks, i))
 *             results[i] = ...
 *     DT_TRY(dt_rank_batches_gather(ranks, results, count, sizeof *results, err));
 *
 * Then every rank has all results, with the bits that one rank alone would have given
 * them. Sums over them, in their order, are the same for any number of ranks.
 */
#ifndef DT_EVAL_RANK_BATCHES_H
#define DT_EVAL_RANK_BATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm.h"

/* ranks NULL: this one alone, in both. */
bool dt_rank_batches_is_ours(const struct dt_comm *ranks, size_t piece);
/* results: count of size bytes each, of which this rank has made its own. Every rank calls. */
int dt_rank_batches_gather(struct dt_comm *ranks, void *results, size_t count, size_t size,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
