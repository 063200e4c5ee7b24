/* SPDX-License-Identifier: MIT */
/* A sample of what tests/full/test-functions.c measures on all numbers. */
#include "test.h"

#include <math.h>

#include "device/cpu/functions.h"

/* The error in units in the last place of the exact value. */
static double ulps(float got, double want)
{
    int exponent;
    (void)frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The largest error at every step-th number from lowest to highest, of either sign. */
static double worst_error(float (*f)(float), double (*exact)(double), float lowest, float highest)
{
    const uint32_t step = 2003;
    double worst = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += step) {
        float x = dt_device_from_bits((uint32_t)bits);
        if (!(x >= lowest && x <= highest))
            continue;
        double error = ulps(f(x), exact((double)x));
        worst = error > worst ? error : worst;
    }
    print_message("%.3f ulp\n", worst);
    return worst;
}

static void errors_are_within_their_bounds(void **state)
{
    (void)state;
    assert_true(worst_error(dt_device_exp, exp, -0x1.5d589ep+6f, 0x1.62e42ep+6f) < 1);
    assert_true(worst_error(dt_device_log, log, 0x1p-149f, 0x1.fffffep+127f) < 1);
    assert_true(worst_error(dt_device_erf, erf, -INFINITY, INFINITY) < 1.2);
    assert_true(worst_error(dt_device_tanh, tanh, -INFINITY, INFINITY) < 1.4);
    assert_true(worst_error(dt_device_sigmoid, sigmoid, -86, INFINITY) < 2.5);
}

static void exp_flushes_subnormal_results_and_overflows(void **state)
{
    (void)state;
    assert_true(dt_device_exp(0) == 1 && dt_device_exp(-0.0f) == 1);
    assert_true(dt_device_exp(-0x1.5d589ep+6f) >= 0x1p-126f);
    assert_true(dt_device_exp(-0x1.5d58ap+6f) == 0 && dt_device_exp(-INFINITY) == 0);
    assert_true(dt_device_exp(0x1.62e42ep+6f) < INFINITY);
    assert_true(dt_device_exp(0x1.62e43p+6f) == INFINITY && dt_device_exp(INFINITY) == INFINITY);
    assert_true(isnan(dt_device_exp(NAN)) != 0);
}

static void log_has_its_special_values(void **state)
{
    (void)state;
    assert_true(dt_device_log(0) == -INFINITY && dt_device_log(-0.0f) == -INFINITY);
    assert_true(dt_device_log(INFINITY) == INFINITY && dt_device_log(1) == 0);
    assert_true(isnan(dt_device_log(-1)) != 0 && isnan(dt_device_log(NAN)) != 0);
    assert_true(isnan(dt_device_log(-0x1p-149f)) != 0);
}

static void erf_tanh_and_sigmoid_have_their_special_values(void **state)
{
    (void)state;
    assert_true(dt_device_erf(0) == 0 && signbit(dt_device_erf(-0.0f)) != 0);
    assert_true(dt_device_erf(INFINITY) == 1 && dt_device_erf(-INFINITY) == -1);
    assert_true(dt_device_tanh(0) == 0 && signbit(dt_device_tanh(-0.0f)) != 0);
    assert_true(dt_device_tanh(INFINITY) == 1 && dt_device_tanh(-INFINITY) == -1);
    assert_true(isnan(dt_device_tanh(NAN)) != 0);
    assert_true(isnan(dt_device_erf(NAN)) != 0 && isnan(dt_device_sigmoid(NAN)) != 0);
    assert_true(dt_device_sigmoid(0) == 0.5f && dt_device_sigmoid(-INFINITY) == 0);
    assert_true(dt_device_sigmoid(INFINITY) == 1);
}

/* Of results at a sample of all numbers. */
static uint64_t hash_of(float (*f)(float))
{
    uint64_t hash = 0;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 10007) {
        float y = f(dt_device_from_bits((uint32_t)bits));
        hash = (hash ^ (y == y ? dt_device_bits(y) : 0)) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash ^ hash >> 32;
}

static void bits_are_those_of_every_machine(void **state)
{
    (void)state;
    assert_true(hash_of(dt_device_exp) == 0x2bffb0688d5a1db7);
    assert_true(hash_of(dt_device_log) == 0x9a72fa31e6c87f22);
    assert_true(hash_of(dt_device_erf) == 0x29488fc4194ab121);
    assert_true(hash_of(dt_device_tanh) == 0xf76afbc935365e49);
    assert_true(hash_of(dt_device_sigmoid) == 0xc2d7ed8d58518232);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_within_their_bounds),
        cmocka_unit_test(exp_flushes_subnormal_results_and_overflows),
        cmocka_unit_test(log_has_its_special_values),
        cmocka_unit_test(erf_tanh_and_sigmoid_have_their_special_values),
        cmocka_unit_test(bits_are_those_of_every_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
