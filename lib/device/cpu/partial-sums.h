/* SPDX-License-Identifier: MIT */
/* Parallel sums over rows, with the same bits for any number of threads: the number of rows alone
 * divides them into blocks, each block has separate partial sums, and these are added in block
 * order.
 *
 *     struct dt_cpu_partial_sums sums = dt_cpu_partial_sums(dev, rows, width);
 *     for each block, on any thread:
 *         add rows sums.block_rows * block ... to dt_cpu_open_block(&sums, block)
 *     dt_cpu_add_blocks(&sums, from, to, total): for any range of the width */
#ifndef DT_DEVICE_CPU_PARTIAL_SUMS_H
#define DT_DEVICE_CPU_PARTIAL_SUMS_H

#include "device/cpu/cpu.h"

struct dt_cpu_partial_sums {
    float *sums; /* blocks x width */
    int64_t blocks, block_rows, width;
};

static inline struct dt_cpu_partial_sums dt_cpu_partial_sums(struct dt_device *dev, int64_t rows,
                                                             int64_t width)
{
    enum { FEWEST_ROWS = 32, MOST_BLOCKS = 64 };
    int64_t block_rows = (rows + MOST_BLOCKS - 1) / MOST_BLOCKS;
    block_rows = block_rows < FEWEST_ROWS ? FEWEST_ROWS : block_rows;
    int64_t blocks = (rows + block_rows - 1) / block_rows;
    float *sums = dt_cpu_shared_scratch(dev, (size_t)(blocks * width));
    return (struct dt_cpu_partial_sums){sums, blocks, block_rows, width};
}

/* The sums of a block, zeroed. */
static inline float *dt_cpu_open_block(const struct dt_cpu_partial_sums *s, int64_t block)
{
    float *sums = s->sums + block * s->width;
    memset(sums, 0, (size_t)s->width * sizeof *sums);
    return sums;
}

/* total[0 ...] += columns from ... to of all blocks. */
static inline void dt_cpu_add_blocks(const struct dt_cpu_partial_sums *s, int64_t from, int64_t to,
                                     float *restrict total)
{
    for (int64_t block = 0; block < s->blocks; block++) {
        const float *restrict sums = s->sums + block * s->width + from;
        for (int64_t j = 0; j < to - from; j++)
            total[j] += sums[j];
    }
}

#endif
