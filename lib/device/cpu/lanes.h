/* SPDX-License-Identifier: MIT */
/*
 * Sums inside a row in the order of dt-arithmetic(7): element j belongs to lane j mod 16, each lane
 * is a chain, and then halves of the lanes are added.
 *
 *     static inline void add_squares(dt_cpu_vector *sums, const dt_cpu_vector *x, const float
 * *mean)
 *     {
 *         dt_cpu_vector difference = x[0] - mean[0];
 *         sums[0] = dt_cpu_vector_fma(difference, difference, sums[0]);
 *     }
 *     struct dt_cpu_row_sums s = dt_cpu_lanes_sum(add_squares, (const float *[]){x}, 1, &mean, n);
 */
#ifndef DT_DEVICE_CPU_LANES_H
#define DT_DEVICE_CPU_LANES_H

#include "device/cpu/vector.h"

/* Two sums; a second one that is not used costs nothing. */
struct dt_cpu_row_sums {
    float sum[2];
};

/* Adds the terms of the same elements of some rows to the two sums of their lanes. */
typedef void dt_cpu_terms(dt_cpu_vector *sums, const dt_cpu_vector *rows, const float *constants);

#define DT_CPU_TERM_ROWS 3 /* at most */

DT_CPU_INLINE void dt_cpu_lanes_add_terms(dt_cpu_lanes sums[2], dt_cpu_terms *add,
                                          const float *const *rows, int count, int64_t at,
                                          const float *constants)
{
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANE_VECTORS; i++) {
        dt_cpu_vector of[2] = {sums[0].part[i], sums[1].part[i]}, x[DT_CPU_TERM_ROWS];
        DT_CPU_UNROLL
        for (int r = 0; r < count; r++)
            x[r] = dt_cpu_vector_load(rows[r] + at + i * DT_CPU_VECTOR);
        add(of, x, constants);
        sums[0].part[i] = of[0];
        sums[1].part[i] = of[1];
    }
}

/* The last n elements, fewer than the lanes: the other lanes stay. */
DT_CPU_INLINE void dt_cpu_lanes_add_rest(dt_cpu_lanes sums[2], dt_cpu_terms *add,
                                         const float *const *rows, int count, int64_t at, int64_t n,
                                         const float *constants)
{
    float padded[DT_CPU_TERM_ROWS][DT_CPU_LANES] = {{0}}, kept[DT_CPU_LANES], added[DT_CPU_LANES];
    const float *of[DT_CPU_TERM_ROWS] = {padded[0], padded[1], padded[2]};
    dt_cpu_lanes next[2] = {sums[0], sums[1]};
    for (int r = 0; r < count; r++)
        memcpy(padded[r], rows[r] + at, (size_t)n * sizeof *padded[r]);
    dt_cpu_lanes_add_terms(next, add, of, count, 0, constants);
    for (int s = 0; s < 2; s++) {
        dt_cpu_lanes_store(kept, sums[s]);
        dt_cpu_lanes_store(added, next[s]);
        memcpy(kept, added, (size_t)n * sizeof *kept);
        sums[s] = dt_cpu_lanes_load(kept);
    }
}

/* The sums of the terms of count rows of n elements. */
DT_CPU_INLINE struct dt_cpu_row_sums dt_cpu_lanes_sum(dt_cpu_terms *add, const float *const *rows,
                                                      int count, const float *constants, int64_t n)
{
    dt_cpu_lanes sums[2] = {dt_cpu_lanes_of(0), dt_cpu_lanes_of(0)};
    int64_t whole = n / DT_CPU_LANES * DT_CPU_LANES;
    for (int64_t j = 0; j < whole; j += DT_CPU_LANES)
        dt_cpu_lanes_add_terms(sums, add, rows, count, j, constants);
    if (whole < n)
        dt_cpu_lanes_add_rest(sums, add, rows, count, whole, n - whole, constants);
    return (struct dt_cpu_row_sums){{dt_cpu_lanes_fold(sums[0]), dt_cpu_lanes_fold(sums[1])}};
}

#endif
