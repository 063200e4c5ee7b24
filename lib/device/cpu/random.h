/* SPDX-License-Identifier: MIT */
/* Vectorized dt_random (math/rng.h): DT_CPU_LANES blocks at once, with the same bits; and the
 * threshold of struct dt_dropout. */
#ifndef DT_DEVICE_CPU_RANDOM_H
#define DT_DEVICE_CPU_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "device/cpu/vector.h"
#include "device/device.h"

#if defined __AVX512F__
#define DT_CPU_WORDS 8
#elif defined __AVX2__
#define DT_CPU_WORDS 4
#else
#define DT_CPU_WORDS 2
#endif

typedef uint64_t dt_cpu_words __attribute__((vector_size(8 * DT_CPU_WORDS)));

/* The lower 32 bits of each lane times m. Compilers do not generate this instruction from plain
 * C. */
static inline dt_cpu_words dt_cpu_multiply_halves(dt_cpu_words x, uint32_t m)
{
#if defined __AVX512F__
    return (dt_cpu_words)_mm512_mul_epu32((__m512i)x, _mm512_set1_epi64(m));
#elif defined __AVX2__
    return (dt_cpu_words)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x(m));
#elif defined __SSE2__
    return (dt_cpu_words)_mm_mul_epu32((__m128i)x, _mm_set1_epi64x(m));
#else
    return (x & 0xffffffffu) * m;
#endif
}

static inline void dt_cpu_keep_halves(uint32_t *to, dt_cpu_words x)
{
    typedef uint32_t halves __attribute__((vector_size(4 * DT_CPU_WORDS)));
    halves lower = __builtin_convertvector(x, halves);
    memcpy(to, &lower, sizeof lower);
}

/* words[w][i] = dt_random(key, high, low[i]).word[w]. The upper halves of
 * lanes may hold garbage: only lower halves are multiplied, and returned. */
static inline void dt_cpu_random(uint64_t key, uint64_t high, const uint64_t low[DT_CPU_LANES],
                                 uint32_t words[4][DT_CPU_LANES])
{
    for (int i = 0; i < DT_CPU_LANES; i += DT_CPU_WORDS) {
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        dt_cpu_words c0, c1, c2 = {0}, c3 = {0};
        memcpy(&c0, low + i, sizeof c0);
        c1 = c0 >> 32, c2 += high, c3 += high >> 32;
        for (int round = 0; round < 10; round++) {
            dt_cpu_words p0 = dt_cpu_multiply_halves(c0, 0xD2511F53u);
            dt_cpu_words p1 = dt_cpu_multiply_halves(c2, 0xCD9E8D57u);
            c0 = (p1 >> 32) ^ c1 ^ k0;
            c1 = p1;
            c2 = (p0 >> 32) ^ c3 ^ k1;
            c3 = p0;
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        dt_cpu_keep_halves(words[0] + i, c0), dt_cpu_keep_halves(words[1] + i, c1);
        dt_cpu_keep_halves(words[2] + i, c2), dt_cpu_keep_halves(words[3] + i, c3);
    }
}

/* The lowest word whose element dropout keeps. */
static inline uint32_t dt_cpu_dropout_threshold(const struct dt_dropout *how)
{
    return (uint32_t)ceil((double)how->rate * 0x1p32);
}

#endif
