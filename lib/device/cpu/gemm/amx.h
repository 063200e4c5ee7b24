/* SPDX-License-Identifier: MIT */
/*
 * Fast bf16 products with panels, by the processor's matrix instructions (AMX).
 *
 * The sum of an element takes 32 terms at a time, in ascending order: of 16 pairs of them a chain
 * of the even terms and one of the odd terms, from +0, with fused multiply-adds; the sum of both is
 * added to the sum so far, from +0. Missing terms are products of zeros, and subnormal numbers are
 * 0. Therefore the bits do not depend on the other rows, or on the number of threads.
 */
#ifndef DT_DEVICE_CPU_AMX_H
#define DT_DEVICE_CPU_AMX_H

#include "device/cpu/gemm/gemm.h"

/* Whether the processor has the instructions, and the kernel lets this process use them. */
bool dt_cpu_amx_open(void);
/* Whether dt_cpu_amx_multiply computes this product. */
bool dt_cpu_amx_supports(const struct dt_cpu_product *p);
/* C, by all threads. */
void dt_cpu_amx_multiply(struct dt_device *dev, const struct dt_cpu_product *p);

#endif
