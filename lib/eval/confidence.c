/* SPDX-License-Identifier: MIT */
#include "eval/confidence.h"

#include <math.h>
#include <stdlib.h>

double dt_confidence_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

double dt_confidence_standard_error(const double *x, size_t n)
{
    if (n < 2)
        return NAN;
    double mean = dt_confidence_mean(x, n), squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return sqrt(squares / (double)(n - 1) / (double)n);
}

void dt_confidence_add(struct dt_buffer *text, const double *x, size_t n)
{
    double error = dt_confidence_standard_error(x, n);
    dt_buffer_printf(text, "%8.4f", dt_confidence_mean(x, n));
    if (isnan(error))
        dt_buffer_printf(text, " %8s", "");
    else
        dt_buffer_printf(text, " ± %.4f", error);
}

double dt_confidence_least_p(size_t n)
{
    return n == 0 ? 1 : ldexp(1, n < 1024 ? 1 - (int)n : -1023);
}

double dt_confidence_paired_p(const double *x, const double *y, size_t n)
{
    double *difference = dt_alloc(n + 1, sizeof *difference);
    for (size_t i = 0; i < n; i++)
        difference[i] = x[i] - y[i];
    double mean = n ? dt_confidence_mean(difference, n) : 0,
           error = dt_confidence_standard_error(difference, n);
    free(difference);
    if (!(error > 0))
        return mean == 0 ? 1 : dt_confidence_least_p(n);
    return fmax(dt_confidence_least_p(n), erfc(fabs(mean) / error / M_SQRT2));
}
