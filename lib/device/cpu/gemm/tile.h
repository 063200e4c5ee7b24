/* SPDX-License-Identifier: MIT */
/*
 * Products of small matrices in a thread's scratch memory. A library packs its operands at every
 * call; these are already packed, and fit in the L1 cache.
 *
 * Each element of C is one chain of fused multiply-adds over k in ascending order, for every shape.
 */
#ifndef DT_DEVICE_CPU_TILE_H
#define DT_DEVICE_CPU_TILE_H

#include <stdint.h>

#include "device/cpu/vector.h"

/* The tile of C in registers. */
#if defined(__AVX512F__)
#define DT_CPU_TILE_ROWS 8
#else
#define DT_CPU_TILE_ROWS 4
#endif
#define DT_CPU_TILE_VECTORS 2

/* One tile of C += A B: element (i, p) of A is a[i * row_step + p * k_step]. */
DT_CPU_INLINE void dt_cpu_tile(float *c, int64_t ldc, const float *a, int64_t row_step,
                               int64_t k_step, const float *b, int64_t ldb, int64_t k, int vectors)
{
    dt_cpu_vector sum[DT_CPU_TILE_ROWS][DT_CPU_TILE_VECTORS];
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_TILE_ROWS; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        sum[i][j] = dt_cpu_vector_load(c + i * ldc + j * DT_CPU_VECTOR);
    for (int64_t p = 0; p < k; p++) {
        DT_CPU_UNROLL
        for (int i = 0; i < DT_CPU_TILE_ROWS; i++)
            DT_CPU_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] =
                dt_cpu_vector_fma(dt_cpu_vector_of(a[i * row_step + p * k_step]),
                                  dt_cpu_vector_load(b + p * ldb + j * DT_CPU_VECTOR), sum[i][j]);
    }
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_TILE_ROWS; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        dt_cpu_vector_store(c + i * ldc + j * DT_CPU_VECTOR, sum[i][j]);
}

/* m is a multiple of DT_CPU_TILE_ROWS, n of DT_CPU_VECTOR. */
DT_CPU_INLINE void dt_cpu_tiles(float *c, int64_t ldc, const float *a, int64_t row_step,
                                int64_t k_step, const float *b, int64_t ldb, int64_t m, int64_t n,
                                int64_t k)
{
    const int64_t wide = DT_CPU_TILE_VECTORS * DT_CPU_VECTOR;
    for (int64_t j = 0; j < n; j += wide)
        for (int64_t i = 0; i < m; i += DT_CPU_TILE_ROWS)
            if (n - j >= wide)
                dt_cpu_tile(c + i * ldc + j, ldc, a + i * row_step, row_step, k_step, b + j, ldb, k,
                            DT_CPU_TILE_VECTORS);
            else
                dt_cpu_tile(c + i * ldc + j, ldc, a + i * row_step, row_step, k_step, b + j, ldb, k,
                            1);
}

/* C (m x n) += A (m x k) B (k x n). */
static inline void dt_cpu_multiply(float *c, int64_t ldc, const float *a, int64_t lda,
                                   const float *b, int64_t ldb, int64_t m, int64_t n, int64_t k)
{
    dt_cpu_tiles(c, ldc, a, lda, 1, b, ldb, m, n, k);
}

/* C (m x n) += A' B, where A is k x m. */
static inline void dt_cpu_multiply_transposed(float *c, int64_t ldc, const float *a, int64_t lda,
                                              const float *b, int64_t ldb, int64_t m, int64_t n,
                                              int64_t k)
{
    dt_cpu_tiles(c, ldc, a, 1, lda, b, ldb, m, n, k);
}

#endif
