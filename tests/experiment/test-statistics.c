/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <math.h>

#include "experiment/reference.h"
#include "experiment/statistics.h"
#include "math/rng.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void assert_near(double x, double y)
{
    assert_true(fabs(x - y) <= 1e-9 * fmax(1, fabs(y)));
}

static void quartiles_are_those_of_type_7(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3, 2, 4}, even[] = {4, 1, 3, 2};
    struct dt_summary s = dt_summary_of(odd, 5);
    assert_near(s.median, 3);
    assert_near(s.low, 2);
    assert_near(s.high, 4);
    assert_near(dt_summary_spread(&s), 1.0 / 3);
    s = dt_summary_of(even, 4);
    assert_near(s.median, 2.5);
    assert_near(s.low, 1.75);
    assert_near(s.most, 4);
    assert_true(isnan(dt_summary_of(odd, 0).median));
}

/* The p of SciPy 1.17: mannwhitneyu(method="exact") of the pair without ties; where there
 * are ties, all choices of ranks counted by itertools.combinations over rankdata; beyond
 * 100 values mannwhitneyu(method="asymptotic"); wilcoxon(method="exact"). */
static void tests_give_the_p_of_scipy(void **state)
{
    (void)state;
    const double a[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
    const double b[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
    const double c[] = {1, 2, 3, 4, 5, 6, 7}, d[] = {4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5};
    const double e[] = {1, 1, 2, 2, 3}, f[] = {2, 3, 3, 4, 4};
    assert_near(dt_statistics_rank_sum_test(a, 9, b, 9), 0.12990538872891813);
    assert_near(dt_statistics_rank_sum_test(c, 7, d, 7), 0.017482517482517484);
    assert_near(dt_statistics_rank_sum_test(e, 5, f, 5), 0.07936507936507936);
    assert_near(dt_statistics_signed_rank_test(a, b, 9), 0.0390625);
    double many[80], more[60];
    for (int i = 0; i < 80; i++)
        many[i] = i * 7 % 100;
    for (int i = 0; i < 60; i++)
        more[i] = (i * 11 + 13) % 120;
    assert_near(dt_statistics_rank_sum_test(many, 80, more, 60), 0.1040718041273023);
    assert_near(dt_statistics_rank_sum_test(c, 7, c, 7), 1);
    assert_near(dt_statistics_signed_rank_test(c, c, 7), 1);
    for (size_t n = 1; n <= 8; n++) /* as far apart as pairs can be */
        assert_near(
            dt_statistics_signed_rank_test((double[8]){0}, (double[]){1, 2, 3, 4, 5, 6, 7, 8}, n),
            dt_statistics_signed_rank_least(n));
    assert_near(dt_statistics_rank_sum_test(c, 0, d, 7), 1);
}

static void effects_are_ratio_and_superiority(void **state)
{
    (void)state;
    const double a[] = {1, 2, 4}, b[] = {2, 4, 8}, z[] = {0, 1, 2};
    assert_near(dt_statistics_shift_ratio(a, 3, b, 3), 2);
    assert_true(isnan(dt_statistics_shift_ratio(a, 3, z, 3)));
    assert_near(dt_statistics_superiority(a, 3, b, 3), (1 + 2 + 3 + 0.5 * 2 - 1) / 9.0 + 1.0 / 9);
}

static void holm_multiplies_the_least_p_most(void **state)
{
    (void)state;
    double p[] = {0.04, 0.01, 0.03, 0.5};
    dt_statistics_adjust_holm(p, COUNT(p));
    assert_near(p[1], 0.04);
    assert_near(p[2], 0.09);
    assert_near(p[0], 0.09); /* never below that of a lesser one */
    assert_near(p[3], 0.5);
}

/* Multiplicative noise with rare spikes, as processor time has on a shared machine. */
static double noisy(uint64_t key, uint64_t i)
{
    double pair[2];
    dt_rng_normal_pair(dt_random(key, 0, i), pair);
    return 1 + 0.01 * fabs(pair[0]) + (pair[1] > 2 ? 0.5 : 0);
}

/* 200 comparisons of 9 runs: the same is called changed no more often than p says, and
 * what is 5% slower is found in at least nine of ten. */
static void five_percent_are_found_in_noise_of_one(void **state)
{
    (void)state;
    int wrong = 0, found = 0;
    for (uint64_t k = 0; k < 200; k++) {
        double a[9], b[9], slow[9];
        for (uint64_t i = 0; i < 9; i++) {
            a[i] = noisy(3 * k, i);
            b[i] = noisy(3 * k + 1, i);
            slow[i] = 1.05 * noisy(3 * k + 2, i);
        }
        wrong += dt_statistics_rank_sum_test(a, 9, b, 9) < 0.05;
        found += dt_statistics_rank_sum_test(a, 9, slow, 9) < 0.05 &&
                 dt_statistics_shift_ratio(a, 9, slow, 9) > 1.03;
    }
    assert_true(wrong <= 20);
    assert_true(found >= 180);
}

static void times_and_rates_follow_the_processor(void **state)
{
    (void)state;
    assert_int_equal(dt_reference_power("wall_s"), 1);
    assert_int_equal(dt_reference_power("tokens_per_second"), -1);
    assert_int_equal(dt_reference_power("loss"), 0);
    assert_int_equal(dt_reference_power("peak_bytes"), 0);
    assert_true(dt_reference_seconds() > 1e-4);
}

/* The margins are those of scipy.stats.t.interval. */
static void intervals_are_of_students_t(void **state)
{
    (void)state;
    double many[30];
    for (int i = 0; i < 30; i++)
        many[i] = i;
    assert_near(dt_statistics_mean((double[]){1, 2, 6}, 3), 3);
    assert_float_equal(dt_statistics_margin((double[]){1, 2, 3}, 3), 2.4841377, 1e-4);
    assert_float_equal(dt_statistics_margin((double[]){5.1, 5.3, 4.9, 5.0, 5.2}, 5), 0.1963243,
                       1e-5);
    assert_float_equal(dt_statistics_margin(many, 30), 3.2872603, 1e-3);
    assert_true(isnan(dt_statistics_margin(many, 1)));
}

/* With normal differences of mean 0.5 and deviation 1, 35 pairs have a power of 80%. */
static void pairs_needed_have_a_power_of_80_percent(void **state)
{
    (void)state;
    const double root = 0.70710678; /* these two have a deviation of 1 */
    const struct {
        double effect, chance, pairs;
    } simulated[] = {
        /* powers from 77 to 83%, or the fewest above */
        {0.5, 0.05, 35}, {0.5, 0.025, 43}, {1, 0.025, 13},
        {1.5, 0.025, 8}, {1.5, 0.05, 7}, /* 6 have a power of 66%: all must have one sign */
        {1.8, 0.05, 6},  {1.8, 0.025, 8},  {2, 0.025, 7}};
    for (size_t i = 0; i < COUNT(simulated); i++)
        assert_near(
            dt_statistics_needed((double[]){simulated[i].effect - root, simulated[i].effect + root},
                                 2, simulated[i].chance),
            simulated[i].pairs);
    assert_near(dt_statistics_needed((double[]){-0.5 - root, -0.5 + root}, 2, 0.05), 35);
    assert_near(dt_statistics_needed((double[]){1, 1, 1.1}, 3, 0.05), 6);
    assert_near(dt_statistics_needed((double[]){1, 1, 1.1, 1, 1, 1}, 6, 0.05), 7);
    assert_near(dt_statistics_needed((double[]){1, -1}, 2, 0.05), 0);
    assert_near(dt_statistics_needed((double[]){1}, 1, 0.05), 0);
    assert_int_equal(dt_statistics_least_pairs(0.05), 6);
    assert_int_equal(dt_statistics_least_pairs(0.025), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_are_of_students_t),
        cmocka_unit_test(pairs_needed_have_a_power_of_80_percent),
        cmocka_unit_test(quartiles_are_those_of_type_7),
        cmocka_unit_test(tests_give_the_p_of_scipy),
        cmocka_unit_test(effects_are_ratio_and_superiority),
        cmocka_unit_test(holm_multiplies_the_least_p_most),
        cmocka_unit_test(five_percent_are_found_in_noise_of_one),
        cmocka_unit_test(times_and_rates_follow_the_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
