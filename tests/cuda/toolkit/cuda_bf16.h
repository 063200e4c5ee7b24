/* SPDX-License-Identifier: MIT */
#ifndef DT_TEST_CUDA_BF16_H
#define DT_TEST_CUDA_BF16_H

#include "cuda_runtime.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float((unsigned)x.bits << 16);
}

/* To nearest even; a NaN becomes one that is not lost by the cut. */
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    unsigned bits = __float_as_uint(x);
    if (x != x)
        return {0x7fff};
    return {(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

static inline __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits)
{
    return {bits};
}

#endif
