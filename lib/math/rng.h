/* SPDX-License-Identifier: MIT */
/*
 * Counter-based random numbers: no state to save or to synchronize.
 *
 * dt_random(key, counter) is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
 * 2, 3", SC 2011). The same key and counter give the same 128 bits on every machine, rank and
 * thread, so a random value is addressed by (seed, step, sample, layer, element) and computed where
 * it is needed.
 *
 * struct dt_rng iterates over such a sequence.
 */
#ifndef DT_MATH_RNG_H
#define DT_MATH_RNG_H

#include <stdint.h>

struct dt_random {
    uint32_t word[4];
};

struct dt_random dt_random(uint64_t key, uint64_t counter_hi, uint64_t counter_lo);

/* A 64-bit key from several numbers, mixed with splitmix64: the way to key
 * by (seed, purpose, ...). */
uint64_t dt_random_key(uint64_t seed, uint64_t a, uint64_t b);

/* Bits to reals: [0, 1) with 24 and 53 bits. */
float dt_rng_uniform_float(uint32_t bits);
double dt_rng_uniform_double(uint64_t bits);

/* Two independent standard normal values from one block (Box and Muller 1958). */
void dt_rng_normal_pair(struct dt_random bits, double pair[2]);

struct dt_rng {
    uint64_t key, counter;
    struct dt_random block;
    int used; /* words of block already used */
};

void dt_rng_init(struct dt_rng *s, uint64_t key);
uint32_t dt_rng_u32(struct dt_rng *s);
uint64_t dt_rng_u64(struct dt_rng *s);
double dt_rng_double(struct dt_rng *s); /* [0, 1) */
/* Uniform in 0 .. n-1, without modulo bias (Lemire 2019); n > 0. */
uint32_t dt_rng_below(struct dt_rng *s, uint32_t n);

/* A pseudo-random permutation of 0 .. n-1: the position of element i. A Feistel network over the
 * smallest even-bit range that holds n, walked until it falls inside (Black and Rogaway 2002).
 * O(1) memory and time; n > 0, i < n. */
uint64_t dt_rng_permute(uint64_t key, uint64_t n, uint64_t i);

#endif
