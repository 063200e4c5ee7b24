/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>

#include "device/cpu/functions.h"

/* The error in units in the last place of the exact value. */
static double ulps(float got, double want)
{
    float near = (float)want;
    return fabs((double)got - want) / ((double)nextafterf(near, INFINITY) - (double)near);
}

static void exp_is_accurate_to_two_ulp(void **state)
{
    (void)state;
    double worst = 0;
    for (float x = -86.9f; x < 88.0f; x += 0.00037f) {
        double error = ulps(dt_cpu_exp(x), exp((double)x));
        worst = error > worst ? error : worst;
    }
    assert_true(worst < 2);
    assert_true(dt_cpu_exp(0) == 1);
    assert_true(dt_cpu_exp(-88.5f) == 0);
    assert_true(dt_cpu_exp(-INFINITY) == 0);
    assert_true(dt_cpu_exp(1000) > 1e38f);
    assert_true(isnan(dt_cpu_exp(NAN)) != 0);
}

static void tanh_is_accurate_and_bounded(void **state)
{
    (void)state;
    for (float x = -20; x < 20; x += 0.0011f)
        assert_true(fabs((double)dt_cpu_tanh(x) - tanh((double)x)) < 2e-7);
    assert_true(dt_cpu_tanh(1e30f) == 1 && dt_cpu_tanh(-1e30f) == -1);
}

static void erf_is_accurate_to_two_ulp(void **state)
{
    (void)state;
    double worst = 0;
    for (float x = -6; x < 6; x += 0.00007f) {
        double error = ulps(fabsf(dt_cpu_erf(x)), fabs(erf((double)x)));
        worst = error > worst ? error : worst;
        assert_true((dt_cpu_erf(x) < 0) == (x < 0));
    }
    assert_true(worst < 2);
    assert_true(dt_cpu_erf(0) == 0 && dt_cpu_erf(INFINITY) == 1 && dt_cpu_erf(-INFINITY) == -1);
    assert_true(fabs((double)dt_cpu_erf(1e-30f) / 1.1283791671e-30 - 1) < 1e-7);
    assert_true(isnan(dt_cpu_erf(NAN)) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_accurate_to_two_ulp),
        cmocka_unit_test(erf_is_accurate_to_two_ulp),
        cmocka_unit_test(tanh_is_accurate_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
