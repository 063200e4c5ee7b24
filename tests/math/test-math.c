/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "hash/hash.h"
#include "math/math.h"
#include "math/rng.h"

#define SAMPLES 200000

/* The C library's functions in long double are the reference, where it has more bits. */
#define HAS_REFERENCE (LDBL_MANT_DIG > DBL_MANT_DIG)

/* The difference in units in the last place of the reference, but for what it has below least. */
static double ulps(double x, long double reference, double least)
{
    int exponent;
    if ((long double)x == reference)
        return 0;
    (void)frexpl(reference, &exponent);
    exponent = exponent < -1021 ? -1021 : exponent;
    long double apart = fabsl((long double)x - reference) - (long double)least;
    return apart < 0 ? 0 : (double)ldexpl(apart, DBL_MANT_DIG - exponent);
}

static double uniform(struct dt_rng *rng, double from, double to)
{
    return from + (to - from) * dt_rng_double(rng);
}

static void at_most(double *worst, double error)
{
    *worst = error > *worst ? error : *worst;
}

static void functions_have_the_stated_errors(void **state)
{
    double exponential = 0, logarithm = 0, power = 0, sine = 0, cosine = 0;
    struct dt_rng rng;
    (void)state;
    if (!HAS_REFERENCE)
        skip();
    dt_rng_init(&rng, 1);
    for (int i = 0; i < SAMPLES; i++) {
        double x = uniform(&rng, -745, 709.7), near = uniform(&rng, -1, 1);
        double y = exp(uniform(&rng, -700, 700)), z = 1 + uniform(&rng, -0.4, 0.6);
        double angle = i % 2 ? uniform(&rng, -8, 8) : uniform(&rng, -0x1p23, 0x1p23);
        double base = uniform(&rng, 0, 1), exponent = uniform(&rng, -700, 700) / log(base);
        at_most(&exponential, ulps(dt_math_exp(x), expl(x), 0));
        at_most(&exponential, ulps(dt_math_exp(near), expl(near), 0));
        at_most(&logarithm, ulps(dt_math_log(y), logl(y), 0));
        at_most(&logarithm, ulps(dt_math_log(z), logl(z), 0));
        at_most(&power, ulps(dt_math_pow(base, exponent), powl(base, exponent), 0) -
                            fabs(exponent * log(base)) / 16);
        at_most(&sine, ulps(dt_math_sin(angle), sinl(angle), 0x1p-90));
        at_most(&cosine, ulps(dt_math_cos(angle), cosl(angle), 0x1p-90));
    }
    printf("# ulp: exp %.3f log %.3f pow %.3f sin %.3f cos %.3f\n", exponential, logarithm, power,
           sine, cosine);
    assert_true(exponential < 1 && logarithm < 1 && power < 1);
    assert_true(sine < 1 && cosine < 1);
}

static void positions_of_long_sequences_have_exact_angles(void **state)
{
    double sine = 0, cosine = 0;
    (void)state;
    if (!HAS_REFERENCE)
        skip();
    for (int j = 0; j < 32; j++)
        for (int64_t t = 131072 - 2000; t < 131072; t++) {
            double angle = (double)t * dt_math_pow(10000, -2.0 * j / 64);
            at_most(&sine, ulps(dt_math_sin(angle), sinl(angle), 0));
            at_most(&cosine, ulps(dt_math_cos(angle), cosl(angle), 0));
        }
    assert_true(sine < 1 && cosine < 1);
}

static void special_values_are_those_of_the_c_library(void **state)
{
    const double of[] = {
        0,      -0.0,   1,     -1,       2,         0.5,       1e308,
        -1e308, 1e-320, NAN,   INFINITY, -INFINITY, 0x1p-1074, 3,
        -745,   709.78, 710.5, -746.5,   42,        0x1p-1022, 0x1.fffffffffffffp1023,
        -0.25};
    const int count = sizeof of / sizeof *of;
    (void)state;
    for (int i = 0; i < count; i++) {
        double got[2] = {dt_math_exp(of[i]), dt_math_log(of[i])};
        double wanted[2] = {exp(of[i]), log(of[i])};
        for (int f = 0; f < 2; f++)
            assert_true(isnan(wanted[f])
                            ? isnan(got[f])
                            : got[f] == wanted[f] || fabs(got[f] - wanted[f]) <=
                                                         0x1p-52 * fabs(wanted[f]) + 0x1p-1074);
        for (int j = 0; j < count && (of[i] >= 0 && !signbit(of[i])); j++) {
            double power = dt_math_pow(of[i], of[j]), same = pow(of[i], of[j]);
            assert_true(power == same || (isnan(power) && isnan(same)) ||
                        fabs(power - same) <= 0x1p-49 * same + 0x1p-1074);
        }
    }
    assert_true(dt_math_sin(0) == 0 && dt_math_cos(0) == 1);
    assert_true(isnan(dt_math_sin(INFINITY)) && isnan(dt_math_cos(NAN)));
    assert_true(isnan(dt_math_sin(0x1.0000000000001p23)) && !isnan(dt_math_sin(0x1p23)));
    assert_true(isnan(dt_math_pow(-1, 2)) && isnan(dt_math_pow(-0x1p-1074, 1)));
}

/* On every machine: no compiler may contract or reorder what they compute. */
static void bits_are_those_of_every_machine(void **state)
{
    struct dt_rng rng;
    uint64_t hash = 0;
    (void)state;
    dt_rng_init(&rng, 2);
    for (int i = 0; i < 20000; i++) {
        double x = uniform(&rng, -40, 40), y = uniform(&rng, 0, 1000);
        double values[] = {dt_math_exp(x), dt_math_log(y), dt_math_pow(y, x), dt_math_sin(1000 * x),
                           dt_math_cos(y)};
        hash = dt_hash_seeded(values, sizeof values, hash);
    }
    assert_int_equal(hash, 0xa86bd135764405d4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_the_stated_errors),
        cmocka_unit_test(positions_of_long_sequences_have_exact_angles),
        cmocka_unit_test(special_values_are_those_of_the_c_library),
        cmocka_unit_test(bits_are_those_of_every_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
