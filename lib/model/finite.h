/* SPDX-License-Identifier: MIT */
/*
 * Checks that numbers are finite: weights when read or written, logits when downloaded.
 */
#ifndef DT_MODEL_FINITE_H
#define DT_MODEL_FINITE_H

#include <stdint.h>

#include "base/error.h"
#include "device/device.h"

/* Elements checked at a time, so that copied data is still in the cache. */
#define DT_FINITE_BLOCK 4096

/* Returns the index of the first of n numbers that is NaN, infinite, or rounds to infinity in type;
 * n if there is none. */
int64_t dt_finite_first_bad(const float *x, int64_t n, enum dt_dtype type);

/* DT_EFORMAT if one of n elements of a tensor, beginning at index first, is not finite in type; the
 * error names file, tensor, index and value. */
int dt_finite_check_weights(const float *x, int64_t n, enum dt_dtype type, const char *path,
                            const char *tensor, int64_t first, struct dt_error *err) DT_MUST_CHECK;

/* Name of a number that is not finite, for errors: NaN, Inf or -Inf. */
const char *dt_finite_name(double x);

#endif
