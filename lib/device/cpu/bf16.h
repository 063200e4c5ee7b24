/* SPDX-License-Identifier: MIT */
/* Products of bf16 matrices by the processor's own instructions (AVX512-BF16, AMX)
 * through oneDNN, which take half the time of fp32's or less. */
#ifndef DT_DEVICE_CPU_BF16_H
#define DT_DEVICE_CPU_BF16_H

#include <stdbool.h>
#include <stdint.h>

/* oneDNN's objects, for as many threads as they were opened for. */
struct dt_cpu_bf16;

/* NULL where the processor has no such instructions, or the engine is to do without. */
struct dt_cpu_bf16 *dt_cpu_bf16_open(int threads);
void dt_cpu_bf16_close(struct dt_cpu_bf16 *products); /* NULL is fine */

/* A matrix as it lies: elements from one row to the next, and whether rows are columns. */
struct dt_cpu_bf16_operand {
    const void *data;
    int64_t stride;
    bool transposed;
};

/* C (m x n, fp32) = op(A) op(B) (+ C), by the thread that calls. */
void dt_cpu_bf16_multiply(struct dt_cpu_bf16 *products, int thread, int64_t m, int64_t n, int64_t k,
                          struct dt_cpu_bf16_operand a, struct dt_cpu_bf16_operand b,
                          bool accumulate, float *c, int64_t stride);

#endif
