/* SPDX-License-Identifier: MIT */
/*
 * Attention's products in bf16, by AVX512-BF16: an instruction multiplies 16 pairs of elements, and
 * adds both products to a float. Weights and their gradients are rounded to bf16, as operands;
 * scores and all sums stay fp32. These are not the bits of dt-arithmetic(7), and are used where an
 * engine may take its fastest instructions; they depend on a query's keys alone, as those do.
 */
#ifndef DT_DEVICE_CPU_ATTENTION_BF16_H
#define DT_DEVICE_CPU_ATTENTION_BF16_H

#include "device/cpu/attention/attention.h"

/* Whether these functions compute the products of q; the others must not be called if not. */
bool dt_cpu_has_dots(const struct dt_device *dev, const struct dt_tensor *q);

/* A block of rows of one head, as pairs of bf16 elements in a word; NULL: not needed. */
struct dt_cpu_dots {
    uint32_t *rows;  /* DT_CPU_BLOCK x width / 2: pairs of channels */
    uint32_t *lanes; /* width / 2 x DT_CPU_BLOCK: the same, transposed */
    uint32_t *pairs; /* DT_CPU_BLOCK / 2 x width: pairs of rows */
};

/* Words of each of the three. */
static inline int64_t dt_cpu_dots_size(int64_t width)
{
    return DT_CPU_BLOCK / 2 * width;
}

/* Rows first .. first+count of one head, then zeros up to padded, a multiple of DT_CPU_VECTOR where
 * lanes are needed, and otherwise even. */
void dt_cpu_dots_load(const struct dt_cpu_dots *to, int64_t padded, const struct dt_tensor *x,
                      int64_t first, int64_t count, int64_t head, int64_t size);

/* scores (keys x DT_CPU_BLOCK) = rows (keys x width) times lanes (width x DT_CPU_BLOCK), times
 * factor. */
void dt_cpu_dots_score(float *scores, const struct dt_cpu_dots *rows,
                       const struct dt_cpu_dots *lanes, const struct dt_cpu_keys *keys,
                       const struct dt_cpu_queries *queries, int64_t width, float factor);

/* sums (queries x width) += weights' (keys x DT_CPU_BLOCK, transposed) times pairs (keys x width).
 * scratch: DT_CPU_BLOCK^2 / 2 words. */
void dt_cpu_dots_sum_keys(float *sums, const float *weights, const struct dt_cpu_dots *pairs,
                          const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                          int64_t width, uint32_t *scratch);

/* sums (keys x width) += weights (keys x DT_CPU_BLOCK) times pairs (queries x width). scratch: the
 * same. */
void dt_cpu_dots_sum_queries(float *sums, const float *weights, const struct dt_cpu_dots *pairs,
                             const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                             int64_t width, uint32_t *scratch);

/* One query, with the same order of operations, and so the same bits. count: of keys, rounded up to
 * whole vectors for scores, of which there are as many; the weights after it, up to a whole vector,
 * are 0. query: width / 2 words. */
void dt_cpu_dots_score_row(float *scores, const uint32_t *query, const struct dt_cpu_dots *keys,
                           int64_t count, int64_t width, float factor);
void dt_cpu_dots_sum_row(float *sums, const float *weights, const struct dt_cpu_dots *values,
                         int64_t count, int64_t width);

#endif
