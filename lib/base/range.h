/* SPDX-License-Identifier: MIT */
/* Ranges of indices (elements, rows, layers) and their even partition. */
#ifndef DT_BASE_RANGE_H
#define DT_BASE_RANGE_H

#include <stdint.h>

/* Half-open: first to end - 1. */
struct dt_range {
    int64_t first, end;
};

static inline int64_t dt_range_count(struct dt_range range)
{
    return range.end - range.first;
}

/* The start of part i when total elements are split into count even parts; total if i = count. */
static inline int64_t dt_range_part_first(int64_t total, int64_t i, int64_t count)
{
    return total * i / count;
}

static inline struct dt_range dt_range_part(int64_t total, int64_t i, int64_t count)
{
    return (struct dt_range){dt_range_part_first(total, i, count),
                             dt_range_part_first(total, i + 1, count)};
}

#endif
