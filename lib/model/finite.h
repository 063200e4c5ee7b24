/* SPDX-License-Identifier: MIT */
/*
 * Numbers that must be finite: weights as they are read or written, logits as they come back
 * from a device. One NaN among them makes every result meaningless.
 */
#ifndef DT_MODEL_FINITE_H
#define DT_MODEL_FINITE_H

#include <stdint.h>

#include "base/error.h"
#include "device/device.h"

/* Elements that are checked at once, so that what was just copied is still in the cache. */
#define DT_FINITE_BLOCK 4096

/* The first of n numbers that is NaN, infinite, or rounds to infinity in type; n if none is. */
int64_t dt_finite_first_bad(const float *x, int64_t n, enum dt_dtype type);

/* DT_EFORMAT if one of n elements of a tensor, of which the first has the index first, is none
 * that type can hold: the error names file, tensor, index and value. */
int dt_finite_check_weights(const float *x, int64_t n, enum dt_dtype type, const char *path,
                            const char *tensor, int64_t first, struct dt_error *err) DT_MUST_CHECK;

/* How errors call a number that is not finite: NaN, Inf or -Inf. */
const char *dt_finite_name(double x);

#endif
