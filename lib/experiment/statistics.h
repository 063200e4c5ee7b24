/* SPDX-License-Identifier: MIT */
/*
 * What repeated measurements say: their middle, their spread, and whether two
 * groups of them differ by more than chance.
 *
 *     double p = dt_statistics_rank_sum_test(a, n, b, m);    unpaired
 *     double r = dt_statistics_shift_ratio(a, n, b, m);      b is r times a
 *
 * Tests are exact permutation tests over ranks, ties included, so that they need
 * nothing of the shape of the noise.
 */
#ifndef DT_EXPERIMENT_STATISTICS_H
#define DT_EXPERIMENT_STATISTICS_H

#include <stddef.h>

#define DT_CHANCE 0.05 /* p from which on chance explains a difference */

struct dt_summary {
    size_t count;
    double median, low, high; /* low and high: quartiles */
    double least, most;
};

/* Sorts values. A quantile between two values is interpolated (type 7 of Hyndman and
 * Fan 1996). All NAN where count is 0. */
struct dt_summary dt_summary_of(double *values, size_t count);

/* Half the distance of the quartiles over the median; 0 if the median is 0. */
double dt_summary_spread(const struct dt_summary *summary);

/* Two-sided p of the rank sum test (Wilcoxon 1945; Mann and Whitney 1947): the chance
 * of rank sums so far apart if both came from the same source. Exact up to 100 values
 * together, by the normal approximation with ties beyond. 1 if a group is empty. */
double dt_statistics_rank_sum_test(const double *a, size_t a_count, const double *b,
                                   size_t b_count);

/* Two-sided p of the signed rank test (Wilcoxon 1945) of pairs a[i], b[i]; equal pairs
 * are left out. Exact up to 100 pairs. */
double dt_statistics_signed_rank_test(const double *a, const double *b, size_t count);

/* The smallest p that the signed rank test can give count pairs: 2^(1 - count). Fewer than 6 pairs
 * cannot reach DT_CHANCE, however far apart they are. */
double dt_statistics_signed_rank_least(size_t count);

/* The median of all quotients b[j] / a[i] (Hodges and Lehmann 1963, of logarithms).
 * NAN unless all values are above 0. */
double dt_statistics_shift_ratio(const double *a, size_t a_count, const double *b, size_t b_count);

/* How often a value of b is above one of a, ties counting half (Vargha and Delaney
 * 2000): 0.5 is no effect, 0 and 1 are groups that do not overlap. */
double dt_statistics_superiority(const double *a, size_t a_count, const double *b, size_t b_count);

/* Holm's correction (1979): p[i] becomes what p[i] is worth as one of count tests. */
void dt_statistics_adjust_holm(double *p, size_t count);

#endif
