/* SPDX-License-Identifier: MIT */
/* How sure a mean over items is, and the difference of two over the same items. */
#ifndef DT_EVAL_CONFIDENCE_H
#define DT_EVAL_CONFIDENCE_H

#include <stddef.h>

double dt_confidence_mean(const double *x, size_t n);
/* Standard error of the mean: the sample's standard deviation over sqrt(n); 0 if n < 2. */
double dt_confidence_standard_error(const double *x, size_t n);
/* Two-sided probability of so large a mean difference if there were none, by the
 * normal distribution; 1 where all differences are 0. */
double dt_confidence_paired_p(const double *x, const double *y, size_t n);

#endif
