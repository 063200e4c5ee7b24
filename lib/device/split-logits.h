/* SPDX-License-Identifier: MIT */
/*
 * The parts of a row of logits whose statistics are computed separately, so that the loss has the
 * same bits for any number of tensor-parallel ranks: dt-arithmetic(7). The vocabulary has
 * DT_LOGIT_PARTS parts of equal width, of which the last ones may be narrower or empty. If the
 * number of ranks divides that of the parts, each rank has the same number of them; otherwise, each
 * rank has one part, and the bits depend on the ranks.
 */
#ifndef DT_DEVICE_SPLIT_LOGITS_H
#define DT_DEVICE_SPLIT_LOGITS_H

#include <stdint.h>

#define DT_LOGIT_PARTS      8
#define DT_LOGIT_PARTS_MOST 256 /* over all ranks */

/* The parts of one rank. */
struct dt_logit_parts {
    int64_t width; /* columns of a part; of the rank's last ones, possibly fewer */
    int64_t first; /* number of the rank's first part among those of all ranks */
    int64_t count;
};

/* columns: of the rank, which are all of them if ranks is 1. Where the rank's columns begin and end
 * at multiples of its parts, the bits do not depend on the ranks. */
static inline struct dt_logit_parts dt_logit_parts_of(int64_t vocabulary, int64_t columns, int rank,
                                                      int ranks)
{
    struct dt_logit_parts parts = {columns, rank, 1};
    if (DT_LOGIT_PARTS % ranks == 0) {
        parts.width = (vocabulary + DT_LOGIT_PARTS - 1) / DT_LOGIT_PARTS;
        parts.count = DT_LOGIT_PARTS / ranks;
        parts.first = rank * parts.count;
    }
    return parts;
}

#endif
