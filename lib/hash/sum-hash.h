/* SPDX-License-Identifier: MIT */
/*
 * A hash of elements that does not depend on the order in which they are added: parts of a tensor
 * are hashed where they are, and their hashes are added.
 *
 *     struct dt_sum_hash hash = {{0}};
 *     dt_sum_hash_add(&hash, seed, 0, values, 1000);        one rank
 *     dt_sum_hash_add(&hash, seed, 1000, more, 500);        another
 *
 * An element has an index and 32 bits. seed + index * 2^32 + bits, where indices from 2^32 on add
 * to the low half too, is mixed as by MurmurHash3's finalizer, and a second time with another
 * multiplier; the hash is the two sums modulo 2^64. It detects errors and changes: a difference
 * of random elements is missed with probability 2^-128. It does not protect from a forger, who can
 * choose elements with a given sum.
 */
#ifndef DT_HASH_SUM_HASH_H
#define DT_HASH_SUM_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_sum_hash {
    uint64_t sums[2];
};

#ifdef __CUDACC__
#define DT_SUM_HASH_FUNCTION __host__ __device__ __forceinline__ static
#else
#define DT_SUM_HASH_FUNCTION __attribute__((always_inline, unused)) static inline
#endif

/* Adds one element: for the loops of this module and of engines. The multipliers are those of
 * MurmurHash3, and 2^64 divided by the golden ratio. */
DT_SUM_HASH_FUNCTION void dt_sum_hash_mix(uint64_t *sum, uint64_t *other, uint64_t seed,
                                          uint64_t index, uint32_t bits)
{
    uint64_t z = seed + (index << 32 | index >> 32) + bits;
    z = (z ^ z >> 33) * UINT64_C(0xff51afd7ed558ccd);
    z = (z ^ z >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    *sum += z ^ z >> 33;
    *other += (z ^ z >> 29) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Adds the hash of other elements. */
DT_SUM_HASH_FUNCTION void dt_sum_hash_merge(struct dt_sum_hash *hash,
                                            const struct dt_sum_hash *other)
{
    hash->sums[0] += other->sums[0];
    hash->sums[1] += other->sums[1];
}

#ifdef __cplusplus
extern "C" {
#endif

/* The seed of the elements of a tensor. */
uint64_t dt_sum_hash_seed(const char *name);
/* Adds count elements of consecutive indices, from first on: values of 4 bytes, or of 2, which are
 * widened. */
void dt_sum_hash_add(struct dt_sum_hash *hash, uint64_t seed, uint64_t first,
                     const uint32_t *values, size_t count);
void dt_sum_hash_add_narrow(struct dt_sum_hash *hash, uint64_t seed, uint64_t first,
                            const uint16_t *values, size_t count);
bool dt_sum_hash_equal(const struct dt_sum_hash *a, const struct dt_sum_hash *b);

#define DT_SUM_HASH_HEX 33 /* 32 digits and the final 0 */
char *dt_sum_hash_hex(const struct dt_sum_hash *hash, char text[DT_SUM_HASH_HEX]);

#ifdef __cplusplus
}
#endif
#endif
