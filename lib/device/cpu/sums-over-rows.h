/* SPDX-License-Identifier: MIT */
/*
 * Sums over rows in the order of dt-arithmetic(7), which depends on the number of rows and of parts
 * alone. The rows are parts contiguous parts, and a part is blocks of 64 rows, numbered over all
 * parts; threads compute the sums of blocks separately.
 *
 *     struct dt_cpu_sums_over_rows s = dt_cpu_sums_over_rows(dev, rows, parts, width);
 *     for each block, on any thread:
 *         add rows *from to below *to in ascending order to dt_cpu_open_block(&s, block, &from,
 * &to) dt_cpu_add_blocks(&s, first, end, total): for any range of the width
 */
#ifndef DT_DEVICE_CPU_SUMS_OVER_ROWS_H
#define DT_DEVICE_CPU_SUMS_OVER_ROWS_H

#include "device/cpu/cpu.h"

#define DT_CPU_BLOCK_ROWS 64

struct dt_cpu_sums_over_rows {
    float *sums; /* parts x part_blocks x width */
    int64_t rows, parts, part_blocks, width;
};

static inline int64_t dt_cpu_part_start(int64_t rows, int64_t parts, int64_t part)
{
    return rows * part / parts;
}

/* parts 0: one part. */
static inline struct dt_cpu_sums_over_rows
dt_cpu_sums_over_rows(struct dt_device *dev, int64_t rows, int parts, int64_t width)
{
    struct dt_cpu_sums_over_rows s = {.rows = rows, .parts = parts > 1 ? parts : 1, .width = width};
    int64_t most = (rows + s.parts - 1) / s.parts; /* of a part */
    s.part_blocks = most > 0 ? (most + DT_CPU_BLOCK_ROWS - 1) / DT_CPU_BLOCK_ROWS : 1;
    s.sums = dt_cpu_shared_scratch(dev, (size_t)(s.parts * s.part_blocks * width));
    return s;
}

/* All blocks, also the empty ones. */
static inline int64_t dt_cpu_count_blocks(const struct dt_cpu_sums_over_rows *s)
{
    return s->parts * s->part_blocks;
}

/* The rows of a block, and where its sums are; not zeroed. */
static inline float *dt_cpu_find_block(const struct dt_cpu_sums_over_rows *s, int64_t block,
                                       int64_t *from, int64_t *to)
{
    int64_t part = block / s->part_blocks;
    int64_t end = dt_cpu_part_start(s->rows, s->parts, part + 1);
    *from = dt_cpu_part_start(s->rows, s->parts, part) + block % s->part_blocks * DT_CPU_BLOCK_ROWS;
    *to = *from + DT_CPU_BLOCK_ROWS < end ? *from + DT_CPU_BLOCK_ROWS : end;
    return s->sums + block * s->width;
}

/* The same, zeroed. */
static inline float *dt_cpu_open_block(const struct dt_cpu_sums_over_rows *s, int64_t block,
                                       int64_t *from, int64_t *to)
{
    float *sums = dt_cpu_find_block(s, block, from, to);
    memset(sums, 0, (size_t)s->width * sizeof *sums);
    return sums;
}

static inline void dt_cpu_add_row(float *restrict sum, const float *restrict x, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] += x[j];
}

/* sum = a chain from +0 over count rows of n, at least one. Several at a time, so that the sum is
 * read and written less often. row(context, i, scratch) is row i, perhaps in scratch (4 x n). */
typedef const float *dt_cpu_row_at(const void *context, int64_t i, float *scratch);

DT_CPU_INLINE void dt_cpu_chain_rows(float *restrict sum, dt_cpu_row_at *row, const void *context,
                                     int64_t count, int64_t n, float *scratch)
{
    const float *x = row(context, 0, scratch);
    for (int64_t j = 0; j < n; j++)
        sum[j] = 0.0f + x[j];
    int64_t i = 1;
    for (; i + 4 <= count; i += 4) {
        const float *a = row(context, i, scratch), *b = row(context, i + 1, scratch + n);
        const float *c = row(context, i + 2, scratch + 2 * n);
        const float *d = row(context, i + 3, scratch + 3 * n);
        for (int64_t j = 0; j < n; j++)
            sum[j] = sum[j] + a[j] + b[j] + c[j] + d[j];
    }
    for (; i < count; i++)
        dt_cpu_add_row(sum, row(context, i, scratch), n);
}

/* Adds count rows of n, stride apart, in a binary tree; the first becomes the sum. */
static inline void dt_cpu_add_tree(float *x, int64_t stride, int64_t count, int64_t n)
{
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t i = 0; i + step < count; i += 2 * step)
            dt_cpu_add_row(x + i * stride, x + (i + step) * stride, n);
}

/* Columns first .. end-1 of the sum over all blocks, which are overwritten. */
static inline float *dt_cpu_sum_blocks(const struct dt_cpu_sums_over_rows *s, int64_t first,
                                       int64_t end)
{
    for (int64_t part = 0; part < s->parts; part++) {
        int64_t rows = dt_cpu_part_start(s->rows, s->parts, part + 1) -
                       dt_cpu_part_start(s->rows, s->parts, part);
        dt_cpu_add_tree(s->sums + part * s->part_blocks * s->width + first, s->width,
                        (rows + DT_CPU_BLOCK_ROWS - 1) / DT_CPU_BLOCK_ROWS, end - first);
    }
    dt_cpu_add_tree(s->sums + first, s->part_blocks * s->width, s->parts, end - first);
    return s->sums + first;
}

/* total[0 ...] += columns first .. end-1 of the sum over all blocks. */
static inline void dt_cpu_add_blocks(const struct dt_cpu_sums_over_rows *s, int64_t first,
                                     int64_t end, float *total)
{
    dt_cpu_add_row(total, dt_cpu_sum_blocks(s, first, end), end - first);
}

#endif
