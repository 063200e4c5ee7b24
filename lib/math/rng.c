/* SPDX-License-Identifier: MIT */
#include "math/rng.h"

#include <math.h>

#include "math/math.h"

struct dt_random dt_random(uint64_t key, uint64_t counter_hi, uint64_t counter_lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (struct dt_random){{c0, c1, c2, c3}};
}

static uint64_t splitmix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t dt_random_key(uint64_t seed, uint64_t a, uint64_t b)
{
    return splitmix(splitmix(splitmix(seed) ^ a) ^ b);
}

float dt_rng_uniform_float(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

double dt_rng_uniform_double(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

void dt_rng_normal_pair(struct dt_random bits, double pair[2])
{
    double u = dt_rng_uniform_double(((uint64_t)bits.word[0] << 32) | bits.word[1]);
    double v = dt_rng_uniform_double(((uint64_t)bits.word[2] << 32) | bits.word[3]);
    double radius = sqrt(-2.0 * dt_math_log(1 - u));
    double angle = 6.283185307179586 * v;
    pair[0] = radius * dt_math_cos(angle);
    pair[1] = radius * dt_math_sin(angle);
}

void dt_rng_init(struct dt_rng *s, uint64_t key)
{
    *s = (struct dt_rng){.key = key, .used = 4};
}

uint32_t dt_rng_u32(struct dt_rng *s)
{
    if (s->used == 4) {
        s->block = dt_random(s->key, 0, s->counter++);
        s->used = 0;
    }
    return s->block.word[s->used++];
}

uint64_t dt_rng_u64(struct dt_rng *s)
{
    uint64_t high = dt_rng_u32(s);
    return (high << 32) | dt_rng_u32(s);
}

double dt_rng_double(struct dt_rng *s)
{
    return dt_rng_uniform_double(dt_rng_u64(s));
}

uint32_t dt_rng_below(struct dt_rng *s, uint32_t n)
{
    uint32_t reject = (uint32_t)-n % n;
    uint64_t product;
    do {
        product = (uint64_t)dt_rng_u32(s) * n;
    } while ((uint32_t)product < reject);
    return (uint32_t)(product >> 32);
}

static uint64_t feistel(uint64_t key, int half_bits, uint64_t x)
{
    uint64_t mask = ((uint64_t)1 << half_bits) - 1;
    uint64_t left = x >> half_bits, right = x & mask;
    for (uint64_t round = 0; round < 6; round++) {
        uint64_t next = left ^ (splitmix(key ^ splitmix(right + (round << 56))) & mask);
        left = right;
        right = next;
    }
    return (left << half_bits) | right;
}

uint64_t dt_rng_permute(uint64_t key, uint64_t n, uint64_t i)
{
    int half_bits = 1;
    while (half_bits < 31 && ((uint64_t)1 << (2 * half_bits)) < n)
        half_bits++;
    do {
        i = feistel(key, half_bits, i);
    } while (i >= n);
    return i;
}
