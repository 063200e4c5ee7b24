/* SPDX-License-Identifier: MIT */
/* Confidence of a mean over items, and of the difference of two means over the same items. */
#ifndef DT_EVAL_CONFIDENCE_H
#define DT_EVAL_CONFIDENCE_H

#include <stddef.h>

double dt_confidence_mean(const double *x, size_t n);
/* Standard error of the mean: the sample's standard deviation over sqrt(n); 0 if n < 2. */
double dt_confidence_standard_error(const double *x, size_t n);
/* Two-sided p-value of a mean difference, by the normal distribution; where all differences are the
 * same, as that of one item is, by the sign test; 1 if they are 0. */
double dt_confidence_paired_p(const double *x, const double *y, size_t n);

#endif
