/* SPDX-License-Identifier: MIT */
/* A panel's pairs are the layout of an operand of vdpbf16ps: 16 columns a register. Of A, a pair is
 * broadcast. The sums of a tile of ROWS rows and a panel's columns are in registers for all of K.
 */
#include "device/cpu/gemm/bf16-panels.h"

#if DT_CPU_BF16_PANELS

#define ROWS    6
#define VECTORS (DT_PANEL / DT_CPU_VECTOR)
#define AHEAD   2048 /* bytes of a panel to prefetch */
#define DPBF16  __attribute__((target("avx512bf16")))

static bool is_supported(void)
{
    return __builtin_cpu_supports("avx512bf16");
}

/* Adds the products of DT_CPU_BF16_DEPTH terms. */
DPBF16 DT_CPU_INLINE void add(__m512 sums[ROWS][VECTORS], const uint16_t *a, int64_t stride,
                              const char *b, int64_t step, int rows)
{
    for (int k = 0; k < DT_CPU_BF16_DEPTH; k += 2, b += step) {
        __m512i y[VECTORS];
        DT_CPU_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            y[v] = _mm512_loadu_si512(b + v * 64);
            __builtin_prefetch(b + v * 64 + AHEAD, 0, 2);
        }
        DT_CPU_UNROLL
        for (int r = 0; r < rows; r++) {
            int32_t pair;
            memcpy(&pair, a + r * stride + k, sizeof pair);
            __m512i x = _mm512_set1_epi32(pair);
            DT_CPU_UNROLL
            for (int v = 0; v < VECTORS; v++)
                sums[r][v] = _mm512_dpbf16_ps(sums[r][v], (__m512bh)y[v], (__m512bh)x);
        }
    }
}

DPBF16 DT_CPU_INLINE void multiply_rows(const struct dt_cpu_bf16_left *a, int64_t row,
                                        const struct dt_cpu_panel *b, uint32_t *copy, float *to,
                                        int rows)
{
    __m512 sums[ROWS][VECTORS];
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int v = 0; v < VECTORS; v++)
        sums[r][v] = _mm512_setzero_ps();
    for (int64_t i = 0; i < a->steps; i++) {
        struct dt_cpu_bf16_right right = dt_cpu_bf16_right(b, i, copy);
        add(sums, a->data + row * a->stride + i * DT_CPU_BF16_DEPTH, a->stride, right.data,
            right.step, rows);
    }
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int v = 0; v < VECTORS; v++)
        _mm512_storeu_ps(to + r * DT_PANEL + v * DT_CPU_VECTOR, sums[r][v]);
}

#define KERNEL(n)                                                                                  \
    case n:                                                                                        \
        multiply_rows(a, row, b, copy, sums, n);                                                   \
        break;

DPBF16 static void multiply(const struct dt_cpu_bf16_left *a, int64_t row, int64_t rows,
                            const struct dt_cpu_panel *b, uint32_t *copy, float *sums)
{
    switch (rows) {
        KERNEL(1)
        KERNEL(2)
        KERNEL(3)
        KERNEL(4)
        KERNEL(5)
        KERNEL(6)
    }
}

const struct dt_cpu_bf16_kernel dt_cpu_dpbf16_kernel = {
    .rows = ROWS,
    .is_supported = is_supported,
    .multiply = multiply,
};

#endif
