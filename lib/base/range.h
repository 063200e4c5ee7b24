/* SPDX-License-Identifier: MIT */
/* Runs of numbers, as of elements, rows or layers, and even parts of them. */
#ifndef DT_BASE_RANGE_H
#define DT_BASE_RANGE_H

#include <stdint.h>

/* Numbers first to below end. */
struct dt_range {
    int64_t first, end;
};

static inline int64_t dt_range_count(struct dt_range range)
{
    return range.end - range.first;
}

/* Where part number i of count even parts of total things begins; with i = count, their end. */
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
