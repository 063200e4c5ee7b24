/* SPDX-License-Identifier: MIT */
/*
 * Products of small matrices in a thread's scratch memory. A library packs its operands at every
 * call; these are already packed, and fit in the L1 cache.
 *
 * Each element of C is one sum over k in ascending order, for every shape.
 */
#ifndef DT_DEVICE_CPU_TILE_H
#define DT_DEVICE_CPU_TILE_H

#include <stdbool.h>
#include <stdint.h>

/* Floats per vector register, and the tile of C in registers. */
#if defined __AVX512F__
#define DT_CPU_VECTOR    16
#define DT_CPU_TILE_ROWS 8
#elif defined __AVX__
#define DT_CPU_VECTOR    8
#define DT_CPU_TILE_ROWS 4
#else
#define DT_CPU_VECTOR    4
#define DT_CPU_TILE_ROWS 4
#endif
#define DT_CPU_TILE_VECTORS 2

typedef float dt_cpu_vector __attribute__((vector_size(4 * DT_CPU_VECTOR), aligned(4), may_alias));

/* One tile of C += A B: element (i, p) of A is a[i * row_step + p * k_step]. */
static inline __attribute__((always_inline)) void dt_cpu_tile(float *c, int64_t ldc, const float *a,
                                                              int64_t row_step, int64_t k_step,
                                                              const float *b, int64_t ldb,
                                                              int64_t k, int vectors)
{
    dt_cpu_vector sum[DT_CPU_TILE_ROWS][DT_CPU_TILE_VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < DT_CPU_TILE_ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            sum[i][j] = *(const dt_cpu_vector *)(c + i * ldc + j * DT_CPU_VECTOR);
    for (int64_t p = 0; p < k; p++) {
#pragma GCC unroll 8
        for (int i = 0; i < DT_CPU_TILE_ROWS; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sum[i][j] += a[i * row_step + p * k_step] *
                             *(const dt_cpu_vector *)(b + p * ldb + j * DT_CPU_VECTOR);
    }
#pragma GCC unroll 8
    for (int i = 0; i < DT_CPU_TILE_ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            *(dt_cpu_vector *)(c + i * ldc + j * DT_CPU_VECTOR) = sum[i][j];
}

/* m is a multiple of DT_CPU_TILE_ROWS, n of DT_CPU_VECTOR. */
static inline __attribute__((always_inline)) void
dt_cpu_tiles(float *c, int64_t ldc, const float *a, int64_t row_step, int64_t k_step,
             const float *b, int64_t ldb, int64_t m, int64_t n, int64_t k)
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
