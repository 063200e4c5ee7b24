/* SPDX-License-Identifier: MIT */
/*
 * Attention's products in bf16, by the processor's matrix instructions (AMX), or by AVX512-BF16,
 * whose instruction multiplies 16 pairs of elements, and adds both products to a float. Weights and
 * their gradients are rounded to bf16, as operands; scores and all sums stay fp32. These are not
 * the bits of dt-arithmetic(7), and are used where an engine may take its fastest instructions;
 * they depend on a query's keys alone, as those do, and on the instructions (bf16-panels.h).
 */
#ifndef DT_DEVICE_CPU_ATTENTION_BF16_H
#define DT_DEVICE_CPU_ATTENTION_BF16_H

#include "device/cpu/attention/attention.h"

/* C += A B, or C = factor A B, of pairs of elements in words: word (i, p) of A is
 * a[i * row_step + p * step]. */
struct dt_cpu_dots_product {
    float *c;
    int64_t ldc;
    const uint32_t *a;
    int64_t row_step, step;
    const uint32_t *b;
    int64_t ldb, depth; /* depth: pairs */
    bool add;
    float factor;
};

struct dt_cpu_dots_kernel {
    int64_t rows;       /* of C, of a call */
    int64_t depth;      /* of a product: a multiple of this */
    bool takes_columns; /* A may lie by columns: its step need not be 1 */
    /* In each thread, before and after products with that many rows, 1 or more; or NULL. */
    void (*begin)(int64_t rows);
    void (*end)(void);
    /* The columns of C are a multiple of 16. rows: 1, or up to the kernel's; more may be computed,
     * up to a multiple of 16. */
    void (*multiply)(const struct dt_cpu_dots_product *product, int64_t rows, int64_t columns);
};
extern const struct dt_cpu_dots_kernel dt_cpu_dots_amx;

/* The fastest kernel for the products of q, whose heads have this width; NULL: none. */
const struct dt_cpu_dots_kernel *dt_cpu_dots_kernel(struct dt_device *dev,
                                                    const struct dt_tensor *q, int64_t width);

/* Call the kernel's begin and end; a kernel may have none, and be NULL. */
static inline void dt_cpu_dots_begin(const struct dt_cpu_dots_kernel *kernel, int64_t rows)
{
    if (kernel && kernel->begin)
        kernel->begin(rows);
}

static inline void dt_cpu_dots_end(const struct dt_cpu_dots_kernel *kernel)
{
    if (kernel && kernel->end)
        kernel->end();
}

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

#define DT_CPU_DOTS_UNIT 32

/* Rows that are loaded for products over count rows, or with as many lanes. */
static inline int64_t dt_cpu_dots_rows(int64_t count)
{
    return dt_cpu_round_up(count, DT_CPU_DOTS_UNIT);
}

/* Rows first .. first+count of one head, then zeros up to padded: dt_cpu_dots_rows, unless only
 * rows are needed. */
void dt_cpu_dots_load(const struct dt_cpu_dots *to, int64_t padded, const struct dt_tensor *x,
                      int64_t first, int64_t count, int64_t head, int64_t size);

/* scores (keys x DT_CPU_BLOCK) = rows (keys x width) times lanes (width x DT_CPU_BLOCK), times
 * factor. */
void dt_cpu_dots_score(const struct dt_cpu_dots_kernel *kernel, float *scores,
                       const struct dt_cpu_dots *rows, const struct dt_cpu_dots *lanes,
                       const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                       int64_t width, float factor);

/* sums (queries x width) += weights' (keys x DT_CPU_BLOCK, transposed) times pairs (keys x width).
 * scratch: DT_CPU_BLOCK^2 words. */
void dt_cpu_dots_sum_keys(const struct dt_cpu_dots_kernel *kernel, float *sums,
                          const float *weights, const struct dt_cpu_dots *pairs,
                          const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                          int64_t width, uint32_t *scratch);

/* sums (keys x width) += weights (keys x DT_CPU_BLOCK) times pairs (queries x width). scratch: the
 * same. */
void dt_cpu_dots_sum_queries(const struct dt_cpu_dots_kernel *kernel, float *sums,
                             const float *weights, const struct dt_cpu_dots *pairs,
                             const struct dt_cpu_keys *keys, const struct dt_cpu_queries *queries,
                             int64_t width, uint32_t *scratch);

/* One query, with the same order of operations, and so the same bits. count: of keys, rounded up to
 * whole vectors for scores, of which there are as many; the weights after it, up to a whole vector,
 * are 0. query: width / 2 words. */
void dt_cpu_dots_score_row(const struct dt_cpu_dots_kernel *kernel, float *scores,
                           const uint32_t *query, const struct dt_cpu_dots *keys, int64_t count,
                           int64_t width, float factor);
void dt_cpu_dots_sum_row(const struct dt_cpu_dots_kernel *kernel, float *sums, const float *weights,
                         const struct dt_cpu_dots *values, int64_t count, int64_t width);

#endif
