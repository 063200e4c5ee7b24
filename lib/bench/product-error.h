/* SPDX-License-Identifier: MIT */
/* The error of matrix products of random operands, compared with fp64. */
#ifndef DT_BENCH_PRODUCT_ERROR_H
#define DT_BENCH_PRODUCT_ERROR_H

#include "device/device.h"

/* Of the result C: the norm of its error, relative to the norm of the exact result (Frobenius). */
struct dt_product_error {
    enum dt_dtype type; /* of the operands */
    int64_t k;          /* terms of a sum */
    double canonical;
    double fast; /* in 16 bits the engine's, for fp32 oneDNN's sgemm; NAN: not measured */
};

#define DT_PRODUCT_ERRORS 6

/* Products of 256 rows and 256 columns of operands between -1 and 1; C is fp32. Afterwards the
 * device is canonical. */
int dt_product_error_measure(struct dt_device *dev,
                             struct dt_product_error errors[DT_PRODUCT_ERRORS],
                             struct dt_error *err) DT_MUST_CHECK;

#endif
