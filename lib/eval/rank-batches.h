/* SPDX-License-Identifier: MIT */
/*
 * Work items distributed round-robin over the ranks:
 *
 *     for (size_t i = 0; i < count; i++)
 *         if (dt_rank_batches_is_ours(ranks, i))
 *             results[i] = ...
 *     DT_TRY(dt_rank_batches_gather(ranks, results, count, sizeof *results, err));
 *
 * Every rank then has all results, with the bits of a single rank. Sums over them, in index order,
 * do not depend on the number of ranks.
 */
#ifndef DT_EVAL_RANK_BATCHES_H
#define DT_EVAL_RANK_BATCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm.h"

/* ranks: NULL for a single process, in both functions. */
bool dt_rank_batches_is_ours(const struct dt_comm *ranks, size_t piece);
/* Collective. results: count items of size bytes; this rank has filled those of
 * dt_rank_batches_is_ours. */
int dt_rank_batches_gather(struct dt_comm *ranks, void *results, size_t count, size_t size,
                           struct dt_error *err) DT_MUST_CHECK;

#endif
