/* SPDX-License-Identifier: MIT */
#include "math/exact-sum.h"

#include <math.h>
#include <string.h>

#include "math/math.h"

#define BELOW  2                                /* digits below the lowest limb, which are 0 */
#define DIGITS (BELOW + DT_EXACT_SUM_LIMBS + 1) /* the last limb has two */

/* The digits to base 2^32 of the magnitude of a sum; returns its sign. */
static double digits_of(const struct dt_exact_sum *sum, uint32_t digits[DIGITS])
{
    struct dt_exact_sum s = *sum;
    dt_exact_sum_normalize(&s);
    double sign = s.limbs[DT_EXACT_SUM_LIMBS - 1] < 0 ? -1 : 1;
    for (int i = 0; i < DT_EXACT_SUM_LIMBS && sign < 0; i++)
        s.limbs[i] = -s.limbs[i];
    dt_exact_sum_normalize(&s);
    for (int i = 0; i < DT_EXACT_SUM_LIMBS; i++)
        digits[BELOW + i] = (uint32_t)s.limbs[i];
    digits[BELOW + DT_EXACT_SUM_LIMBS] = (uint32_t)(s.limbs[DT_EXACT_SUM_LIMBS - 1] >> 32);
    return sign;
}

double dt_exact_sum_round(const struct dt_exact_sum *sum)
{
    uint32_t digits[DIGITS] = {0};
    if (sum->infinities[0] > 0 || sum->infinities[1] > 0)
        return sum->infinities[1] == 0 ? INFINITY : sum->infinities[0] == 0 ? -INFINITY : NAN;
    double sign = digits_of(sum, digits);
    int top = DIGITS - 1, shift = 0;
    while (top > BELOW && digits[top] == 0)
        top--;
    /* The first 64 bits, whose last one also says whether any bit below them is set: the
     * conversion to 53 bits then rounds as that of all bits. */
    uint64_t first = (uint64_t)digits[top] << 32 | digits[top - 1];
    while (first != 0 && first >> 63 == 0) {
        first = first << 1 | (digits[top - 2] >> (31 - shift) & 1);
        shift++;
    }
    uint32_t rest = digits[top - 2] << shift;
    for (int i = 0; i < top - 2; i++)
        rest |= digits[i];
    return sign * (double)(first | (rest != 0)) *
           dt_math_power_of_two(32 * (top - 1 - BELOW) + DT_EXACT_SUM_LOWEST - shift);
}
