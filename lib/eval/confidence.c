/* SPDX-License-Identifier: MIT */
#include "eval/confidence.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"

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
        return 0;
    double mean = dt_confidence_mean(x, n), squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return sqrt(squares / (double)(n - 1) / (double)n);
}

double dt_confidence_paired_p(const double *x, const double *y, size_t n)
{
    double *difference = dt_alloc(n + 1, sizeof *difference);
    for (size_t i = 0; i < n; i++)
        difference[i] = x[i] - y[i];
    double mean = n ? dt_confidence_mean(difference, n) : 0,
           error = dt_confidence_standard_error(difference, n);
    free(difference);
    if (error == 0) /* all differences are the same: the sign test */
        return mean == 0 ? 1 : ldexp(1, n < 1024 ? 1 - (int)n : -1023);
    return erfc(fabs(mean) / error / M_SQRT2);
}
