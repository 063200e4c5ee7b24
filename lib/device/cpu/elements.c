/* SPDX-License-Identifier: MIT */
/* bf16 is the upper half of fp32. fp16 has 5 bits of exponent (bias 15) and 10 of fraction; the
 * conversions support its subnormal numbers. */
#include "device/cpu/elements.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void widen_bf16(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = from_bits((uint32_t)from[i] << 16);
}

static void narrow_bf16(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(from[i]), odd = bits >> 16 & 1;
        uint32_t rounded = (bits + 0x7fff + odd) >> 16, quiet = bits >> 16 | 0x40;
        to[i] = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
    }
}

/* The product corrects the exponent's bias, and normalizes subnormal numbers. */
static inline float wide_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    uint32_t finite = bits_of(from_bits(size << 13) * 0x1p112f);
    uint32_t quiet = size > 0x7c00 ? 0x400000 : 0;
    return from_bits(sign | (size >= 0x7c00 ? size << 13 | 0x7f800000 | quiet : finite));
}

/* Below 2^-14, adding 0.5 shifts the fraction to its position in fp16, and rounds. */
static inline uint16_t narrow_to_f16(float x)
{
    uint32_t bits = bits_of(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t subnormal = bits_of(from_bits(size) + 0.5f) - 0x3f000000;
    uint32_t half = size < 0x38800000 ? subnormal : normal;
    half = size >= 0x477ff000 ? 0x7c00 : half; /* 65520: rounds to infinity */
    half = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : half;
    return (uint16_t)(sign | half);
}

/* Converts the whole vectors of n elements by vector instructions. Returns the number of elements
 * converted. */
static int64_t widen_vectors(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;
    (void)to, (void)from, (void)n;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(from + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
#endif
    return i;
}

static int64_t narrow_vectors(uint16_t *to, const float *from, int64_t n)
{
    int64_t i = 0;
    (void)to, (void)from, (void)n;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((void *)(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    return i;
}

void dt_cpu_widen(float *restrict to, enum dt_dtype dtype, const void *from, int64_t n)
{
    const uint16_t *restrict halves = from;
    if (dtype == DT_DTYPE_BF16)
        widen_bf16(to, halves, n);
    else
        for (int64_t i = widen_vectors(to, halves, n); i < n; i++)
            to[i] = wide_f16(halves[i]);
}

void dt_cpu_narrow(enum dt_dtype dtype, void *to, const float *restrict from, int64_t n)
{
    uint16_t *restrict halves = to;
    if (dtype == DT_DTYPE_BF16)
        narrow_bf16(halves, from, n);
    else
        for (int64_t i = narrow_vectors(halves, from, n); i < n; i++)
            halves[i] = narrow_to_f16(from[i]);
}
