/* SPDX-License-Identifier: MIT */
/* Products of bf16 matrices by AVX512-BF16 and AMX instructions, through oneDNN: at least twice as
 * fast as fp32. */
#ifndef DT_DEVICE_CPU_BF16_H
#define DT_DEVICE_CPU_BF16_H

#include <stdbool.h>
#include <stdint.h>

/* oneDNN's objects. */
struct dt_cpu_bf16;

/* For threads 0 .. threads-1. NULL if the processor or oneDNN does not support bf16 products. */
struct dt_cpu_bf16 *dt_cpu_bf16_open(int threads);
void dt_cpu_bf16_close(struct dt_cpu_bf16 *products); /* NULL is fine */

/* A matrix in memory. stride: elements from one row to the next. */
struct dt_cpu_bf16_operand {
    const void *data;
    int64_t stride;
    bool transposed;
};

/* C (m x n, fp32) = op(A) op(B) (+ C), by the calling thread. */
void dt_cpu_bf16_multiply(struct dt_cpu_bf16 *products, int thread, int64_t m, int64_t n, int64_t k,
                          struct dt_cpu_bf16_operand a, struct dt_cpu_bf16_operand b,
                          bool accumulate, float *c, int64_t stride);

#endif
