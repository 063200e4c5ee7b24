/* SPDX-License-Identifier: MIT */
/*
 * Vectors, and the fused multiply-add a b + c with one rounding, on every instruction set. The
 * engines are compiled without contraction: only a fused multiply-add that is written is one.
 *
 *     dt_cpu_fmaf          of floats; loops of it vectorize
 *     dt_cpu_vector_fma    of registers, DT_CPU_VECTOR floats
 *     dt_cpu_lanes_fma     of 16 floats: the lanes of sums inside a row
 *
 * +, - and * of dt_cpu_vector are written as operators.
 */
#ifndef DT_DEVICE_CPU_VECTOR_H
#define DT_DEVICE_CPU_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi" /* only inlined functions take vectors */

#if defined(__AVX512F__)
#define DT_CPU_VECTOR 16
#elif defined(__AVX2__)
#define DT_CPU_VECTOR 8
#else
#define DT_CPU_VECTOR 4
#endif
#define DT_CPU_LANES        16
#define DT_CPU_LANE_VECTORS (DT_CPU_LANES / DT_CPU_VECTOR)

#define DT_CPU_INLINE static inline __attribute__((always_inline))
/* Arrays of vectors stay in registers only if all loops over them are unrolled. */
#define DT_CPU_UNROLL _Pragma("GCC unroll 16")

typedef float dt_cpu_vector __attribute__((vector_size(4 * DT_CPU_VECTOR), aligned(4), may_alias));

/* A structure, because GCC 12 keeps vectors wider than a register in memory. */
typedef struct {
    dt_cpu_vector part[DT_CPU_LANE_VECTORS];
} dt_cpu_lanes;

/* Without the instruction: the product is exact in double, and the sum is rounded to odd there, by
 * the addition's error (Knuth's TwoSum), and then to float (Boldo and Melquiond 2008). */
DT_CPU_INLINE float dt_cpu_fmaf(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
    double rounded = sum - product, error = (product - (sum - rounded)) + (addend - rounded);
    uint64_t bits, sign;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&sign, &error, sizeof sign);
    uint64_t step = (1 - ((bits ^ sign) >> 63 << 1)) & ((bits & 1) - 1);
    bits += error > 0 || error < 0 ? step : 0; /* not of infinities and NaNs */
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
#endif
}

#if defined(__x86_64__) && !defined(__FMA__)
/* The sum of products and addends, rounded to odd. */
DT_CPU_INLINE __m128d dt_cpu_odd_sum(__m128d product, __m128d addend)
{
    const __m128d zero = _mm_setzero_pd();
    __m128d sum = product + addend, rounded = sum - product;
    __m128d error = (product - (sum - rounded)) + (addend - rounded);
    __m128i bits = _mm_castpd_si128(sum), one = _mm_set1_epi64x(1);
    __m128i down = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(error)), 63);
    __m128i step = _mm_sub_epi64(one, _mm_add_epi64(down, down));
    __m128i even = _mm_sub_epi64(_mm_and_si128(bits, one), one);
    __m128d inexact = _mm_or_pd(_mm_cmplt_pd(error, zero), _mm_cmpgt_pd(error, zero));
    step = _mm_and_si128(_mm_and_si128(step, even), _mm_castpd_si128(inexact));
    return _mm_castsi128_pd(_mm_add_epi64(bits, step));
}

/* Not 0 where rounding a sum first to double may change its float: halfway between two floats, or
 * below the normal ones. */
DT_CPU_INLINE __m128i dt_cpu_needs_odd_sum(__m128d sum)
{
    const __m128i kept = _mm_set1_epi64x(0x7fffffff1fffffff);
    const __m128i halfway = _mm_set1_epi64x((int64_t)0xffffffff10000000);
    const __m128i normal = _mm_set1_epi64x(0x3810000080000000);
    __m128i bits = _mm_and_si128(_mm_castpd_si128(sum), kept);
    return _mm_or_si128(_mm_cmpeq_epi32(bits, halfway), _mm_cmpgt_epi32(normal, bits));
}

DT_CPU_INLINE __m128 dt_cpu_emulated_fma(__m128 a, __m128 b, __m128 c)
{
    __m128d low = _mm_cvtps_pd(a) * _mm_cvtps_pd(b), low_c = _mm_cvtps_pd(c);
    __m128d high = _mm_cvtps_pd(_mm_movehl_ps(a, a)) * _mm_cvtps_pd(_mm_movehl_ps(b, b));
    __m128d high_c = _mm_cvtps_pd(_mm_movehl_ps(c, c));
    __m128d low_sum = low + low_c, high_sum = high + high_c;
    __m128i odd = _mm_or_si128(dt_cpu_needs_odd_sum(low_sum), dt_cpu_needs_odd_sum(high_sum));
    if (__builtin_expect(_mm_movemask_epi8(odd) != 0, 0)) {
        low_sum = dt_cpu_odd_sum(low, low_c);
        high_sum = dt_cpu_odd_sum(high, high_c);
    }
    return _mm_movelh_ps(_mm_cvtpd_ps(low_sum), _mm_cvtpd_ps(high_sum));
}
#endif

DT_CPU_INLINE dt_cpu_vector dt_cpu_vector_fma(dt_cpu_vector a, dt_cpu_vector b, dt_cpu_vector c)
{
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_FEATURE_FMA)
    return vfmaq_f32(c, a, b);
#elif defined(__x86_64__)
    return dt_cpu_emulated_fma(a, b, c);
#else
    for (int i = 0; i < DT_CPU_VECTOR; i++)
        c[i] = dt_cpu_fmaf(a[i], b[i], c[i]);
    return c;
#endif
}

DT_CPU_INLINE dt_cpu_vector dt_cpu_vector_of(float x)
{
#if DT_CPU_VECTOR == 16
    return (dt_cpu_vector){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#elif DT_CPU_VECTOR == 8
    return (dt_cpu_vector){x, x, x, x, x, x, x, x};
#else
    return (dt_cpu_vector){x, x, x, x};
#endif
}

/* From and to any address of floats. */
DT_CPU_INLINE dt_cpu_vector dt_cpu_vector_load(const float *from)
{
    return *(const dt_cpu_vector *)from; /* GCC 12 copies halves by memcpy */
}

DT_CPU_INLINE void dt_cpu_vector_store(float *to, dt_cpu_vector v)
{
    *(dt_cpu_vector *)to = v;
}

DT_CPU_INLINE dt_cpu_lanes dt_cpu_lanes_of(float x)
{
    dt_cpu_lanes v;
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANE_VECTORS; i++)
        v.part[i] = dt_cpu_vector_of(x);
    return v;
}

DT_CPU_INLINE dt_cpu_lanes dt_cpu_lanes_load(const float *from)
{
    dt_cpu_lanes v;
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANE_VECTORS; i++)
        v.part[i] = dt_cpu_vector_load(from + i * DT_CPU_VECTOR);
    return v;
}

DT_CPU_INLINE void dt_cpu_lanes_store(float *to, dt_cpu_lanes v)
{
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANE_VECTORS; i++)
        dt_cpu_vector_store(to + i * DT_CPU_VECTOR, v.part[i]);
}

DT_CPU_INLINE dt_cpu_lanes dt_cpu_lanes_add(dt_cpu_lanes a, dt_cpu_lanes b)
{
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANE_VECTORS; i++)
        a.part[i] += b.part[i];
    return a;
}

DT_CPU_INLINE dt_cpu_lanes dt_cpu_lanes_fma(dt_cpu_lanes a, dt_cpu_lanes b, dt_cpu_lanes c)
{
    DT_CPU_UNROLL
    for (int i = 0; i < DT_CPU_LANE_VECTORS; i++)
        c.part[i] = dt_cpu_vector_fma(a.part[i], b.part[i], c.part[i]);
    return c;
}

/* The sum of the lanes: halves are added until one lane is left. */
DT_CPU_INLINE float dt_cpu_lanes_fold(dt_cpu_lanes v)
{
    float x[DT_CPU_LANES];
    dt_cpu_lanes_store(x, v);
    for (int half = DT_CPU_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

#endif
