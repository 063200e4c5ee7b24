/* SPDX-License-Identifier: MIT */
/*
 * Exact sums of fp32 numbers, or of their squares: no addition rounds, so the result depends
 * neither on the order of the terms nor on how threads and ranks divide them. The sum is a
 * fixed-point number of 32-bit limbs (a long accumulator, Kulisch 2011). It is rounded once.
 *
 *     struct dt_exact_sum sum = {0};
 *     dt_exact_sum_add_square(&sum, x);
 *     dt_exact_sum_merge(&sum, &other);
 *     double norm = sqrt(dt_exact_sum_round(&sum));
 *
 * A sum of zeros is {0}. Sums merge by integer addition of all of their words.
 */
#ifndef DT_MATH_EXACT_SUM_H
#define DT_MATH_EXACT_SUM_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define DT_EXACT_SUM_FUNCTION __host__ __device__ __forceinline__ static
#else
#define DT_EXACT_SUM_FUNCTION __attribute__((unused)) static inline
#endif

/* Of all bits from the square of the smallest fp32 number, 2^-298, to the sum of 2^62 squares of
 * the largest. */
#define DT_EXACT_SUM_LIMBS  19
#define DT_EXACT_SUM_LOWEST (-320) /* limb i counts multiples of 2^(32 i - 320) */

struct dt_exact_sum {
    int64_t limbs[DT_EXACT_SUM_LIMBS]; /* normalized: all but the last from 0 to below 2^32 */
    int64_t infinities[2];             /* terms that are inf and -inf; NaN counts as both */
};
#define DT_EXACT_SUM_WORDS (DT_EXACT_SUM_LIMBS + 2)

/* Adds value * 2^exponent, where exponent is at least -320 and the product below 2^288. The sum has
 * to be normalized after at most 2^29 calls. */
DT_EXACT_SUM_FUNCTION void dt_exact_sum_add_scaled(struct dt_exact_sum *sum, int64_t value,
                                                   int exponent)
{
    int bit = exponent - DT_EXACT_SUM_LOWEST, shift = bit % 32;
    int64_t *limb = sum->limbs + bit / 32, sign = value < 0 ? -1 : 1;
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t low = (size & 0xFFFFFFFF) << shift, high = (size >> 32) << shift;
    limb[0] += sign * (int64_t)(low & 0xFFFFFFFF);
    if (low >> 32 | high)
        limb[1] += sign * (int64_t)((low >> 32) + (high & 0xFFFFFFFF));
    if (high >> 32)
        limb[2] += sign * (int64_t)(high >> 32);
}

/* The bits of x as sign * *size * 2^exponent; returns the sign. */
DT_EXACT_SUM_FUNCTION int64_t dt_exact_sum_split(float x, int64_t *size, int *exponent)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int biased = (int)(bits >> 23 & 0xFF);
    *size = (int64_t)(bits & 0x7FFFFF) | (biased > 0 ? 0x800000 : 0);
    *exponent = (biased > 0 ? biased : 1) - 150;
    return bits >> 31 ? -1 : 1;
}

/* Counts x if it is not finite; otherwise returns 0. */
DT_EXACT_SUM_FUNCTION int dt_exact_sum_add_infinity(struct dt_exact_sum *sum, float x)
{
    if (x - x == 0)
        return 0;
    sum->infinities[0] += !(x < 0);
    sum->infinities[1] += !(x > 0);
    return 1;
}

DT_EXACT_SUM_FUNCTION void dt_exact_sum_add(struct dt_exact_sum *sum, float x)
{
    int64_t size;
    int exponent;
    if (dt_exact_sum_add_infinity(sum, x))
        return;
    int64_t sign = dt_exact_sum_split(x, &size, &exponent);
    dt_exact_sum_add_scaled(sum, sign * size, exponent);
}

DT_EXACT_SUM_FUNCTION void dt_exact_sum_add_square(struct dt_exact_sum *sum, float x)
{
    int64_t size;
    int exponent;
    if (dt_exact_sum_add_infinity(sum, x < 0 ? -x : x))
        return;
    (void)dt_exact_sum_split(x, &size, &exponent);
    dt_exact_sum_add_scaled(sum, size * size, 2 * exponent);
}

/* Carries, so that the limbs are normalized. */
DT_EXACT_SUM_FUNCTION void dt_exact_sum_normalize(struct dt_exact_sum *sum)
{
    for (int i = 0; i + 1 < DT_EXACT_SUM_LIMBS; i++) {
        int64_t low = sum->limbs[i] & 0xFFFFFFFF;
        sum->limbs[i + 1] += (sum->limbs[i] - low) / ((int64_t)1 << 32);
        sum->limbs[i] = low;
    }
}

/* sum += other; both are normalized, as is the result. */
DT_EXACT_SUM_FUNCTION void dt_exact_sum_merge(struct dt_exact_sum *sum,
                                              const struct dt_exact_sum *other)
{
    for (int i = 0; i < DT_EXACT_SUM_LIMBS; i++)
        sum->limbs[i] += other->limbs[i];
    sum->infinities[0] += other->infinities[0];
    sum->infinities[1] += other->infinities[1];
    dt_exact_sum_normalize(sum);
}

/* The sum, rounded once to nearest even. Infinite or NaN as a sum with such terms is; 0 has sign +.
 */
double dt_exact_sum_round(const struct dt_exact_sum *sum);

#endif
