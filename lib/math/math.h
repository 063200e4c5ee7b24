/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions in fp64 whose bits do not depend on the machine: additions,
 * multiplications, divisions and integer operations in a fixed order. Those of the C library
 * differ between its versions and processors. What is computed for parameters, data and generated
 * text uses these; what is only printed may use <math.h>.
 *
 * NaN gives NaN. Errors are below those stated, in units in the last place
 * (tests/math/test-math.c).
 */
#ifndef DT_MATH_MATH_H
#define DT_MATH_MATH_H

#include <stdint.h>
#include <string.h>

/* 2^exponent, a normal number; exact. */
static inline double dt_math_power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* 1 ulp; infinity above 709.78, and 0 below -745.13. */
double dt_math_exp(double x);
/* 1 ulp; -infinity at 0, NaN below. */
double dt_math_log(double x);
/* x to the power of y; 1 + |y ln x| / 16 ulp. NaN for x below 0. */
double dt_math_pow(double x, double y);
/* 1 ulp, or 2^-90 beside a zero, for x up to 2^23 in magnitude; NaN beyond. */
double dt_math_cos(double x);
double dt_math_sin(double x);

#endif
