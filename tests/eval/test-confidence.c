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

static void a_mean_difference_of_two_errors_has_a_p_of_five_percent(void **state)
{
    const double x[4] = {1, 2, 3, 4}, y[4] = {0, 0, 0, 0};
    (void)state;
    assert_true(fabs(dt_confidence_standard_error(x, 4) - 0.645497224) < 1e-8);
    assert_true(fabs(dt_confidence_paired_p(x, y, 4) - erfc(2.5 / 0.645497224 / sqrt(2))) < 1e-8);
    assert_true(dt_confidence_standard_error(x, 1) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_without_variance_are_not_certain),
        cmocka_unit_test(a_mean_difference_of_two_errors_has_a_p_of_five_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
