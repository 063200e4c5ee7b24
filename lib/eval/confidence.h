/* SPDX-License-Identifier: MIT */
/* Confidence of a mean over items, and of the difference of two means over the same items. */
#ifndef DT_EVAL_CONFIDENCE_H
#define DT_EVAL_CONFIDENCE_H

#include <stddef.h>

#include "base/buffer.h"

double dt_confidence_mean(const double *x, size_t n);
/* Standard error of the mean: the sample's standard deviation over sqrt(n); NAN if n < 2. */
double dt_confidence_standard_error(const double *x, size_t n);
/* Adds "MEAN ± ERROR", or as many blanks in place of an error that is not known. */
void dt_confidence_add(struct dt_buffer *text, const double *x, size_t n);
/* The least p-value that n differences can have by the sign test, where all have one sign. */
double dt_confidence_least_p(size_t n);
/* Two-sided p-value of a mean difference, by the normal distribution, but not below
 * dt_confidence_least_p, which it is where all differences are the same; 1 if they are 0. */
double dt_confidence_paired_p(const double *x, const double *y, size_t n);

#endif
