/* SPDX-License-Identifier: MIT */
/* Rows of a matrix become vectors of its columns, in registers. */
#ifndef DT_DEVICE_CPU_TRANSPOSE_H
#define DT_DEVICE_CPU_TRANSPOSE_H

#include "device/cpu/vector.h"

#if DT_CPU_VECTOR == 16
#define DT_CPU_INDICES(f)                                                                          \
    f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), \
        f(15)
#elif DT_CPU_VECTOR == 8
#define DT_CPU_INDICES(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#else
#define DT_CPU_INDICES(f) f(0), f(1), f(2), f(3)
#endif

/* 4 floats of every 4th row. */
DT_CPU_INLINE dt_cpu_vector dt_cpu_load_quads(const float *from, int64_t stride)
{
#if DT_CPU_VECTOR == 16
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(from));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 4 * stride), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 8 * stride), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(from + 12 * stride), 3);
#elif DT_CPU_VECTOR == 8
    __m256 v = _mm256_castps128_ps256(_mm_loadu_ps(from));
    return _mm256_insertf128_ps(v, _mm_loadu_ps(from + 4 * stride), 1);
#else
    (void)stride;
    return dt_cpu_vector_load(from);
#endif
}

/* In each quad: single elements, and pairs, of x and y in turn. */
#define DT_CPU_LOW(i)        (((i)&1) * DT_CPU_VECTOR + ((i) & ~3) + ((i) >> 1 & 1))
#define DT_CPU_HIGH(i)       (DT_CPU_LOW(i) + 2)
#define DT_CPU_LOW_PAIR(i)   (((i) >> 1 & 1) * DT_CPU_VECTOR + ((i) & ~3) + ((i)&1))
#define DT_CPU_HIGH_PAIR(i)  (DT_CPU_LOW_PAIR(i) + 2)
#define DT_CPU_MIX(x, y, of) __builtin_shufflevector(x, y, DT_CPU_INDICES(of))

/* columns[j] = element j of DT_CPU_VECTOR rows. */
DT_CPU_INLINE void dt_cpu_transpose(const float *from, int64_t stride, dt_cpu_vector columns[4])
{
    dt_cpu_vector r0 = dt_cpu_load_quads(from, stride);
    dt_cpu_vector r1 = dt_cpu_load_quads(from + stride, stride);
    dt_cpu_vector r2 = dt_cpu_load_quads(from + 2 * stride, stride);
    dt_cpu_vector r3 = dt_cpu_load_quads(from + 3 * stride, stride);
    dt_cpu_vector low = DT_CPU_MIX(r0, r1, DT_CPU_LOW), high = DT_CPU_MIX(r0, r1, DT_CPU_HIGH);
    r0 = DT_CPU_MIX(r2, r3, DT_CPU_LOW);
    r1 = DT_CPU_MIX(r2, r3, DT_CPU_HIGH);
    columns[0] = DT_CPU_MIX(low, r0, DT_CPU_LOW_PAIR);
    columns[1] = DT_CPU_MIX(low, r0, DT_CPU_HIGH_PAIR);
    columns[2] = DT_CPU_MIX(high, r1, DT_CPU_LOW_PAIR);
    columns[3] = DT_CPU_MIX(high, r1, DT_CPU_HIGH_PAIR);
}

#endif
