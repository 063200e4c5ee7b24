/* SPDX-License-Identifier: MIT */
/* The largest errors of device/functions.h, which dt-arithmetic(7) states: every number but those
 * so near 0 that the result is 1, 1/2 or x 2 / sqrt(pi). The reference is the C library's in fp64,
 * whose error is 2^-29 of fp32's last place. */
#include "test.h"

#include <math.h>

#include "device/cpu/functions.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The largest error from lowest to highest, both positive, in units in the last place. */
static double worst_error(float (*f)(float), double (*exact)(double), float lowest, float highest,
                          int sign)
{
    double worst = 0;
    for (uint32_t bits = dt_device_bits(lowest); bits <= dt_device_bits(highest); bits++) {
        float x = (float)sign * dt_device_from_bits(bits);
        double want = exact((double)x);
        int exponent;
        (void)frexp(want, &exponent);
        double error = fabs((double)f(x) - want) * ldexp(1, exponent < -125 ? 149 : 24 - exponent);
        worst = error > worst ? error : worst;
    }
    print_message("%.4f\n", worst);
    return worst;
}

static void exp_is_within_1_ulp(void **state)
{
    (void)state;
    assert_true(worst_error(dt_device_exp, exp, 0x1p-26f, 0x1.5d589ep+6f, -1) < 1);
    assert_true(worst_error(dt_device_exp, exp, 0x1p-26f, 0x1.62e42ep+6f, 1) < 1);
}

static void log_is_within_1_ulp(void **state)
{
    (void)state;
    assert_true(worst_error(dt_device_log, log, 0x1p-149f, 0x1.fffffep+127f, 1) < 1);
}

static void erf_is_within_1_2_ulp(void **state)
{
    (void)state;
    assert_true(worst_error(dt_device_erf, erf, 0x1p-30f, 5, 1) < 1.2);
    assert_true(worst_error(dt_device_erf, erf, 0x1p-30f, 5, -1) < 1.2);
}

static void tanh_is_within_1_4_ulp(void **state)
{
    (void)state;
    assert_true(worst_error(dt_device_tanh, tanh, 0x1p-30f, 12, 1) < 1.4);
    assert_true(worst_error(dt_device_tanh, tanh, 0x1p-30f, 12, -1) < 1.4);
}

static void sigmoid_is_within_2_5_ulp(void **state)
{
    (void)state;
    assert_true(worst_error(dt_device_sigmoid, sigmoid, 0x1p-26f, 87, -1) < 2.5);
    assert_true(worst_error(dt_device_sigmoid, sigmoid, 0x1p-26f, 100, 1) < 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_1_ulp),       cmocka_unit_test(log_is_within_1_ulp),
        cmocka_unit_test(erf_is_within_1_2_ulp),     cmocka_unit_test(tanh_is_within_1_4_ulp),
        cmocka_unit_test(sigmoid_is_within_2_5_ulp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
