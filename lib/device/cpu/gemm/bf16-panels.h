/* SPDX-License-Identifier: MIT */
/*
 * Fast bf16 products with panels, by the processor's instructions for bf16: its matrix instructions
 * (AMX), or those of AVX-512 for dot products of pairs. The bits do not depend on the other rows,
 * or on the number of threads. Subnormal numbers are 0, and terms after the last are products of
 * zeros. The order of an element's sum is that of the kernel.
 *
 * AMX: 32 terms at a time, in ascending order. Of their 16 pairs a chain of the even terms and one
 * of the odd terms, from +0, with fused multiply-adds; the sum of both is added to the sum so far,
 * from +0.
 *
 * AVX512-BF16: one chain from +0 with fused multiply-adds, of each pair of terms the odd one first.
 */
#ifndef DT_DEVICE_CPU_BF16_PANELS_H
#define DT_DEVICE_CPU_BF16_PANELS_H

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/panels.h"

#if defined(__AVX512F__) && defined(__linux__)
#define DT_CPU_BF16_PANELS 1
#else
#define DT_CPU_BF16_PANELS 0
#endif

#define DT_CPU_BF16_DEPTH 32 /* terms that are found at once */

/* A, with zeros after its columns; rows are stride elements apart, so that they are in different
 * sets of the caches. After the last rows follow zeros, up to a multiple of 16 rows, unless there
 * are at most 16. */
struct dt_cpu_bf16_left {
    const uint16_t *data;
    int64_t rows, stride, steps; /* of DT_CPU_BF16_DEPTH columns */
};

/* DT_CPU_BF16_DEPTH / 2 pairs of terms of DT_PANEL columns, step bytes apart. */
struct dt_cpu_bf16_right {
    const char *data;
    int64_t step;
};

/* Terms number DT_CPU_BF16_DEPTH .. of a panel: in place, or copied with zeros. */
struct dt_cpu_bf16_right dt_cpu_bf16_right(const struct dt_cpu_panel *b, int64_t number,
                                           uint32_t *copy);

struct dt_cpu_bf16_kernel {
    int64_t rows; /* at most, of a call */
    bool (*is_supported)(void);
    /* In each thread, before and after calls with an A of that many rows; or NULL. */
    void (*begin)(int64_t rows);
    void (*end)(void);
    /* sums (rows of DT_PANEL) = rows row .. of A times a panel. copy: for dt_cpu_bf16_right. */
    void (*multiply)(const struct dt_cpu_bf16_left *a, int64_t row, int64_t rows,
                     const struct dt_cpu_panel *b, uint32_t *copy, float *sums);
};
extern const struct dt_cpu_bf16_kernel dt_cpu_amx_kernel, dt_cpu_dpbf16_kernel;

/* The fastest kernel that the processor has, and that the operating system lets this process use;
 * or NULL. */
const struct dt_cpu_bf16_kernel *dt_cpu_bf16_kernel_open(void);
/* Whether dt_cpu_bf16_panels computes this product. */
bool dt_cpu_bf16_panels_support(const struct dt_cpu_product *p);
/* C, by all threads. */
void dt_cpu_bf16_panels(struct dt_device *dev, const struct dt_cpu_product *p,
                        const struct dt_cpu_bf16_kernel *kernel);

#endif
