/* SPDX-License-Identifier: MIT */
#ifndef DT_TEST_CUDA_FP16_H
#define DT_TEST_CUDA_FP16_H

#include "cuda_runtime.h"

struct __half {
    uint16_t bits;
};

struct alignas(4) __half2 {
    __half x, y;
};

static inline float __half2float(__half x)
{
    unsigned exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    float value;
    if (exponent == 31)
        value = __uint_as_float(0x7f800000 | fraction << 13);
    else if (exponent == 0)
        value = (float)fraction * 0x1p-24f;
    else
        value = __uint_as_float((exponent + 112) << 23 | fraction << 13);
    return x.bits >> 15 ? -value : value;
}

/* To nearest even; beyond the largest number infinite. */
static inline __half __float2half_rn(float x)
{
    unsigned bits = __float_as_uint(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    if (size > 0x7f800000)
        return {0x7fff};
    if (size >= 0x477ff000)
        return {(uint16_t)(sign | 0x7c00)};
    if (size < 0x38800000) /* adding 1/2 rounds to the multiples of 2^-24 */
        return {(uint16_t)(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000))};
    return {(uint16_t)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13))};
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}

static inline __half __ushort_as_half(uint16_t bits)
{
    return {bits};
}

#endif
