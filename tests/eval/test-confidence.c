/* SPDX-License-Identifier: MIT */
/* Confidence of means and their differences. */
#include "test.h"

#include <math.h>

#include "eval/confidence.h"

static void differences_without_variance_are_not_certain(void **state)
{
    static const double zeros[2000], ones[4] = {1, 1, 1, 1};
    double twos[2000];
    (void)state;
    for (int i = 0; i < 2000; i++)
        twos[i] = 2;
    assert_true(dt_confidence_paired_p(zeros, zeros, 3) == 1);
    assert_true(dt_confidence_paired_p(zeros, ones, 1) == 1);
    assert_true(dt_confidence_paired_p(zeros, ones, 2) == 0.5);
    assert_true(dt_confidence_paired_p(ones, zeros, 4) == 0.125);
    assert_true(dt_confidence_paired_p(twos, zeros, 2000) < 1e-300);
    assert_true(dt_confidence_paired_p(zeros, zeros, 0) == 1);
}

static void p_is_that_of_the_normal_distribution(void **state)
{
    const double x[8] = {1, 2, 3, 4, -3, -1, 2, 4}, y[8] = {0};
    (void)state;
    double error = dt_confidence_standard_error(x, 8);
    assert_true(fabs(error - 0.8660254037844385) < 1e-12);
    assert_true(fabs(dt_confidence_paired_p(x, y, 8) - erfc(1.5 / error / sqrt(2))) < 1e-12);
    assert_true(isnan(dt_confidence_standard_error(x, 1)));
}

/* Of two items 1 and 1.0001 apart the normal distribution would say 0. */
static void few_items_are_not_certain(void **state)
{
    const double x[5] = {1, 1.0001, 1, 1, 1}, y[5] = {0};
    (void)state;
    for (size_t n = 2; n <= 5; n++)
        assert_true(dt_confidence_paired_p(x, y, n) == 2 / pow(2, (double)n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_without_variance_are_not_certain),
        cmocka_unit_test(p_is_that_of_the_normal_distribution),
        cmocka_unit_test(few_items_are_not_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
