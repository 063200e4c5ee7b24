/* SPDX-License-Identifier: MIT */
/*
 * Rows of any element type, as fp32. Ops compute on rows of floats. Rows of an fp32 tensor are used
 * in place; others are converted in the caller's scratch memory (dt_cpu_scratch), and rounded to
 * nearest even when they are stored.
 *
 *     const float *from = dt_cpu_load(x, i, 0, n, scratch);
 *     float *to = dt_cpu_output(y, i, 0, scratch + n);
 *     ...
 *     dt_cpu_store(y, i, 0, n, to);
 */
#ifndef DT_DEVICE_CPU_ELEMENTS_H
#define DT_DEVICE_CPU_ELEMENTS_H

#include <assert.h>
#include <string.h>

#include "device/device.h"

/* Converts n elements of a 16-bit type to fp32, and back. Infinities stay, NaNs become quiet, and
 * overflow gives infinity. */
void dt_cpu_widen(float *to, enum dt_dtype dtype, const void *from, int64_t n);
void dt_cpu_narrow(enum dt_dtype dtype, void *to, const float *from, int64_t n);

static inline void *dt_cpu_at(const struct dt_tensor *x, int64_t row, int64_t column)
{
    return (char *)x->data + (row * x->stride + column) * (x->dtype == DT_DTYPE_F32 ? 4 : 2);
}

/* A row of an fp32 tensor. */
static inline float *dt_cpu_row(const struct dt_tensor *x, int64_t row)
{
    assert(x->dtype == DT_DTYPE_F32);
    return (float *)x->data + row * x->stride;
}

/* n elements of a row to read: in place, or converted in scratch. */
static inline const float *dt_cpu_load(const struct dt_tensor *x, int64_t row, int64_t column,
                                       int64_t n, float *scratch)
{
    const void *from = dt_cpu_at(x, row, column);
    if (x->dtype == DT_DTYPE_F32)
        return from;
    dt_cpu_widen(scratch, x->dtype, from, n);
    return scratch;
}

/* Where an op writes elements of a row before dt_cpu_store: in place, or scratch. */
static inline float *dt_cpu_output(const struct dt_tensor *x, int64_t row, int64_t column,
                                   float *scratch)
{
    return x->dtype == DT_DTYPE_F32 ? dt_cpu_at(x, row, column) : scratch;
}

/* Stores n elements to a row, unless they were computed in place. */
static inline void dt_cpu_store(const struct dt_tensor *x, int64_t row, int64_t column, int64_t n,
                                const float *from)
{
    void *to = dt_cpu_at(x, row, column);
    if (x->dtype != DT_DTYPE_F32)
        dt_cpu_narrow(x->dtype, to, from, n);
    else if (to != from)
        memcpy(to, from, (size_t)n * sizeof *from);
}

#endif
