/* SPDX-License-Identifier: MIT */
/* Products of few rows with a large matrix, for matmul.c. */
#ifndef DT_DEVICE_CPU_FEW_ROWS_H
#define DT_DEVICE_CPU_FEW_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define DT_CPU_FEW_ROWS 16

struct dt_cpu_few_rows {
    float *c; /* rows x N */
    const float *a;
    const void *b; /* fp32, or bf16 */
    int64_t rows, k, c_stride, a_stride, b_stride;
    bool transpose_b; /* B is N x K, otherwise K x N */
    bool bf16;        /* elements of B are bf16 */
};

/* Adds columns from .. to of A B to those of C. from is a multiple of 16: then the bits do not
 * depend on the columns of each thread. */
void dt_cpu_multiply_few_rows(const struct dt_cpu_few_rows *product, int64_t from, int64_t to);

#endif
