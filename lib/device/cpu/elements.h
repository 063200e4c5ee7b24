/* SPDX-License-Identifier: MIT */
/*
 * Rows of any element type, as fp32. Ops compute on rows of floats: those of an
 * fp32 tensor are used where they lie, those of others pass through a room of
 * the caller's (dt_cpu_scratch) and are rounded to nearest even on their way back.
 *
 *     const float *from = dt_cpu_load(x, i, 0, n, room);
 *     float *to = dt_cpu_place(y, i, 0, room + n);
 *     ...
 *     dt_cpu_store(y, i, 0, n, to);
 */
#ifndef DT_DEVICE_CPU_ELEMENTS_H
#define DT_DEVICE_CPU_ELEMENTS_H

#include <assert.h>
#include <string.h>

#include "device/device.h"

/* n elements of another type as floats, and back. Infinities stay, NaNs stay (quiet),
 * and what lies beyond the largest number becomes infinite. */
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

/* n elements of a row, to be read: in their place, or in room. */
static inline const float *dt_cpu_load(const struct dt_tensor *x, int64_t row, int64_t column,
                                       int64_t n, float *room)
{
    const void *from = dt_cpu_at(x, row, column);
    if (x->dtype == DT_DTYPE_F32)
        return from;
    dt_cpu_widen(room, x->dtype, from, n);
    return room;
}

/* Where elements of a row are to be written, before they are stored. */
static inline float *dt_cpu_place(const struct dt_tensor *x, int64_t row, int64_t column,
                                  float *room)
{
    return x->dtype == DT_DTYPE_F32 ? dt_cpu_at(x, row, column) : room;
}

/* Puts n elements into a row, unless they were made there. */
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
