/* SPDX-License-Identifier: MIT */
/*
 * Scans 16 bytes at a time with the vector extensions of GCC and clang.
 *
 *     for (; i + DT_BLOCK <= size; i += DT_BLOCK) {
 *         dt_block b = dt_block_load(text + i);
 *         size_t n = dt_block_first((dt_block)((b == '"') | (b == '\\')));
 *         if (n < DT_BLOCK)
 *             return i + n;
 *     }
 */
#ifndef DT_BASE_BYTE_SCAN_H
#define DT_BASE_BYTE_SCAN_H

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DT_BLOCK 16

typedef unsigned char dt_block __attribute__((vector_size(DT_BLOCK)));

static inline dt_block dt_block_load(const char *p)
{
    dt_block b;
    memcpy(&b, p, sizeof b);
    return b;
}

/* The index of the first non-zero byte, or DT_BLOCK. */
static inline size_t dt_block_first(dt_block b)
{
#ifdef __SSE2__
    int zero = _mm_movemask_epi8((__m128i)(dt_block)(b == 0)); /* of bits 0 to 15 */
    return (size_t)__builtin_ctz(~(unsigned)zero);
#else
    uint64_t halves[2];
    size_t n = 0;
    memcpy(halves, &b, sizeof halves);
    if ((halves[0] | halves[1]) == 0)
        return DT_BLOCK;
    n = halves[0] ? 0 : 8;
    return n + (size_t)__builtin_ctzll(halves[n / 8]) / 8;
#endif
}

#endif
