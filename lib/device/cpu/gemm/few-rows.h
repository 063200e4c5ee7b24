/* SPDX-License-Identifier: MIT */
/* Products of few rows with a large matrix, limited by memory bandwidth (decoding): B is read in
 * place, once. In the order of gemm.h. */
#ifndef DT_DEVICE_CPU_FEW_ROWS_H
#define DT_DEVICE_CPU_FEW_ROWS_H

#include "device/cpu/gemm/gemm.h"

/* Whether dt_cpu_few_rows computes this product. */
bool dt_cpu_has_few_rows(const struct dt_cpu_product *p);
/* Floats of memory that it needs for A. */
size_t dt_cpu_few_rows_memory(const struct dt_cpu_product *p);
/* C, by all threads. p->group is 1. */
void dt_cpu_few_rows(struct dt_device *dev, const struct dt_cpu_product *p, float *memory);

#endif
