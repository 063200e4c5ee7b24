/* SPDX-License-Identifier: MIT */
#include "eval/rank-batches.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

bool dt_rank_batches_is_ours(const struct dt_comm *ranks, size_t piece)
{
    return ranks == NULL || piece % (size_t)dt_comm_size(ranks) == (size_t)dt_comm_rank(ranks);
}

/* Copies between results in index order and results grouped by rank. */
static void copy_turns(char *sorted, char *results, size_t count, size_t size, size_t ranks,
                       bool sort)
{
    for (size_t rank = 0; rank < ranks; rank++)
        for (size_t i = rank; i < count; i += ranks, sorted += size)
            memcpy(sort ? sorted : results + i * size, sort ? results + i * size : sorted, size);
}

int dt_rank_batches_gather(struct dt_comm *ranks, void *results, size_t count, size_t size,
                           struct dt_error *err)
{
    if (ranks == NULL || dt_comm_size(ranks) == 1 || count == 0)
        return 0;
    size_t all = (size_t)dt_comm_size(ranks);
    size_t *offsets = dt_alloc(all + 1, sizeof *offsets);
    char *sorted = dt_alloc(count, size);
    for (size_t rank = 0; rank < all; rank++)
        offsets[rank + 1] = offsets[rank] + (count + all - 1 - rank) / all * size;
    copy_turns(sorted, results, count, size, all, true);
    int rc = dt_comm_wait(ranks, dt_comm_all_gather(ranks, sorted, offsets), err);
    copy_turns(sorted, results, count, size, all, false);
    free(sorted);
    free(offsets);
    return rc;
}
