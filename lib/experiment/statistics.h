/* SPDX-License-Identifier: MIT */
/*
 * Statistics of repeated measurements: median, spread, and tests of whether two groups differ.
 *
 *     double p = dt_statistics_rank_sum_test(a, n, b, m);    unpaired
 *     double r = dt_statistics_shift_ratio(a, n, b, m);      b is r times a
 *
 * The tests are exact permutation tests on ranks, with ties; they assume no distribution.
 */
#ifndef DT_EXPERIMENT_STATISTICS_H
#define DT_EXPERIMENT_STATISTICS_H

#include <stddef.h>

#define DT_CHANCE 0.05 /* significance level: p below it is a difference */

struct dt_summary {
    size_t count;
    double median, low, high; /* low and high: quartiles */
    double least, most;
};

/* Sorts values. Quantiles are interpolated (type 7 of Hyndman and Fan 1996). All NAN if count is 0.
 */
struct dt_summary dt_summary_of(double *values, size_t count);

/* Half the interquartile range over the median; 0 if the median is 0. */
double dt_summary_spread(const struct dt_summary *summary);

/* Two-sided p of the rank sum test (Wilcoxon 1945; Mann and Whitney 1947). Exact up to 100 values
 * in total, then by the normal approximation with ties. 1 if a group is empty. */
double dt_statistics_rank_sum_test(const double *a, size_t a_count, const double *b,
                                   size_t b_count);

/* Two-sided p of the signed rank test (Wilcoxon 1945) of pairs a[i], b[i]; equal pairs are dropped.
 * Exact up to 100 pairs. */
double dt_statistics_signed_rank_test(const double *a, const double *b, size_t count);

/* The ranks of pairs with b[i] > a[i] less those of the others, of which that test is: its sign
 * says which are larger. The mean difference may have another sign, if few pairs differ much. */
double dt_statistics_signed_rank_sum(const double *a, const double *b, size_t count);

/* The smallest p of the signed rank test with count pairs: 2^(1 - count). */
double dt_statistics_signed_rank_least(size_t count);
/* Fewer pairs cannot be below chance: 6 of DT_CHANCE. */
size_t dt_statistics_least_pairs(double chance);

/* Median of all ratios b[j] / a[i] (Hodges and Lehmann 1963, of logarithms). NAN unless all values
 * are above 0. */
double dt_statistics_shift_ratio(const double *a, size_t a_count, const double *b, size_t b_count);

/* Probability that a value of b exceeds one of a, ties counting half (Vargha and Delaney 2000): 0.5
 * without an effect, 0 or 1 for disjoint groups. */
double dt_statistics_superiority(const double *a, size_t a_count, const double *b, size_t b_count);

/* The mean; NAN if count is 0. */
double dt_statistics_mean(const double *values, size_t count);
/* Half the width of the 95% interval of the mean, by Student's t (1908), which assumes that values
 * are distributed normally; NAN for fewer than 2. */
double dt_statistics_margin(const double *values, size_t count);

/* The number of differences like these that the signed rank test needs to be below chance with a
 * probability of 80%: by the normal approximation (Guenther 1981), and the test's efficiency of
 * 3/pi; of so few pairs that all must have one sign, by the probability of that. More than count; 0
 * if their mean is 0 or unknown: no number would do. */
double dt_statistics_needed(const double *differences, size_t count, double chance);

/* Holm's correction (1979) of count p-values, in place. */
void dt_statistics_adjust_holm(double *p, size_t count);

#endif
