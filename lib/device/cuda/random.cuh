/* SPDX-License-Identifier: MIT */
/* dt_random of math/rng.h for kernels, with the same bits. */
#ifndef DT_DEVICE_CUDA_RANDOM_CUH
#define DT_DEVICE_CUDA_RANDOM_CUH

#include <math.h>

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"

__device__ __forceinline__ uint4 dt_cuda_random(uint64_t key, uint64_t high, uint64_t low)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)low, c1 = (uint32_t)(low >> 32);
    uint32_t c2 = (uint32_t)high, c3 = (uint32_t)(high >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

/* One of four words, without an array, which would be in local memory. */
__device__ __forceinline__ uint32_t dt_cuda_word(const uint4 &words, int number)
{
    uint32_t low = number & 1 ? words.y : words.x, high = number & 1 ? words.w : words.z;
    return number & 2 ? high : low;
}

/* The smallest word that keeps its element: struct dt_dropout. */
inline uint32_t dt_cuda_dropout_threshold(const struct dt_dropout *how)
{
    return (uint32_t)ceil((double)how->rate * 0x1p32);
}

#endif
