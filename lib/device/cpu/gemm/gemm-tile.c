/* SPDX-License-Identifier: MIT */
/* The tile of a product: its sums stay in registers for a chunk. One inline function, called with
 * constants, becomes the kernel of each number of rows and layout of A. */
#include "device/cpu/gemm/gemm.h"

#define ROWS    DT_CPU_GEMM_ROWS
#define VECTORS DT_CPU_GEMM_VECTORS
#define COLUMNS DT_CPU_GEMM_COLUMNS
#define TRIPLES ((ROWS + 2) / 3)
#define AHEAD   8 /* k whose part of B is prefetched */

/* sum += nodes, in rows of stride floats; the node is the left operand. */
DT_CPU_INLINE void add(dt_cpu_vector sum[ROWS][VECTORS], const float *node, int64_t stride,
                       int rows, int vectors)
{
    DT_CPU_UNROLL
    for (int i = 0; i < rows; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        sum[i][j] = dt_cpu_vector_load(node + i * stride + j * DT_CPU_VECTOR) + sum[i][j];
}

DT_CPU_INLINE void store(float *to, int64_t stride, dt_cpu_vector sum[ROWS][VECTORS], int rows,
                         int vectors)
{
    DT_CPU_UNROLL
    for (int i = 0; i < rows; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        dt_cpu_vector_store(to + i * stride + j * DT_CPU_VECTOR, sum[i][j]);
}

/* Rows of C from first to below end. */
DT_CPU_INLINE void prefetch_rows(const struct dt_cpu_gemm_tile *t, int64_t first, int64_t end)
{
    for (const float *c = t->c + first * t->stride; first < end; first++, c += t->stride)
        DT_CPU_UNROLL
    for (int j = 0; j < COLUMNS; j += 16)
        __builtin_prefetch(c + j, 1);
}

/* The chains of a chunk. */
DT_CPU_INLINE void chain(dt_cpu_vector sum[ROWS][VECTORS], const float *a, int64_t a_step,
                         int64_t k_step, const float *b, int64_t b_step, const char *next,
                         int64_t next_step, int64_t length, int rows, int vectors)
{
    const float *triple[TRIPLES]; /* rows 0, 3, 6 ... */
    DT_CPU_UNROLL
    for (int i = 0; i < rows; i += 3) {
        triple[i / 3] = a + i * a_step;
        if (!__builtin_constant_p(a_step)) /* GCC would compute the offsets of too many rows */
            __asm__("" : "+r"(triple[i / 3]));
    }
    DT_CPU_UNROLL
    for (int i = 0; i < rows; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        sum[i][j] = (dt_cpu_vector){0};
    for (int64_t k = 0; k < length; k++, b += b_step, next += next_step) {
        dt_cpu_vector y[VECTORS];
        DT_CPU_UNROLL
        for (int j = 0; j < vectors; j++)
            y[j] = dt_cpu_vector_load(b + j * DT_CPU_VECTOR);
        DT_CPU_UNROLL
        for (int j = 0; j < COLUMNS; j += 16)
            __builtin_prefetch(b + AHEAD * b_step + j);
        __builtin_prefetch(next, 0, 2);
        DT_CPU_UNROLL
        for (int i = 0; i < rows; i++) {
            dt_cpu_vector x = dt_cpu_vector_of(triple[i / 3][i % 3 * a_step]);
            DT_CPU_UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = dt_cpu_vector_fma(x, y[j], sum[i][j]);
        }
        DT_CPU_UNROLL
        for (int i = 0; i < rows; i += 3)
            triple[i / 3] += k_step;
    }
}

DT_CPU_INLINE void compute(const struct dt_cpu_group *g, const struct dt_cpu_gemm_tile *t, int rows,
                           int64_t a_step, int64_t k_step, int64_t b_step, int vectors)
{
    const float *a = t->a;
    const char *next = t->next;
    float *own = t->own, *kept = t->kept + g->kept * t->kept_step;
    for (const struct dt_cpu_chunk *chunk = g->chunks; chunk < g->chunks + g->count; chunk++) {
        dt_cpu_vector sum[ROWS][VECTORS];
        int64_t at = chunk - g->chunks;
        if (g->chunks[g->count - 1].to == DT_CPU_NODE_RESULT) /* some with each chunk */
            prefetch_rows(t, rows * at / g->count, rows * (at + 1) / g->count);
        chain(sum, a, a_step, k_step, t->b[at], b_step, next, t->next_step, chunk->length, rows,
              vectors);
        next += chunk->length * t->next_step;
        a += chunk->length * k_step;
        for (int i = 0; i < chunk->adds_own; i++)
            add(sum, own -= DT_CPU_GEMM_TILE, COLUMNS, rows, vectors);
        for (int i = 0; i < chunk->adds_kept; i++)
            add(sum, kept -= t->kept_step, COLUMNS, rows, vectors);
        if (chunk->to == DT_CPU_NODE_OWN) {
            store(own, COLUMNS, sum, rows, vectors);
            own += DT_CPU_GEMM_TILE;
        } else if (chunk->to == DT_CPU_NODE_KEPT) {
            store(kept, COLUMNS, sum, rows, vectors);
            kept += t->kept_step;
        } else {
            if (t->accumulate)
                add(sum, t->c, t->stride, rows, vectors);
            store(t->c, t->stride, sum, rows, vectors);
        }
    }
}

#define KERNEL(rows)                                                                               \
    case rows:                                                                                     \
        if (t->a_step > 0)                                                                         \
            compute(g, t, rows, t->a_step, 1, COLUMNS, 1);                                         \
        else if (transposed_a)                                                                     \
            compute(g, t, rows, 1, ROWS, COLUMNS, VECTORS);                                        \
        else if (t->b_step == COLUMNS)                                                             \
            compute(g, t, rows, DT_CPU_GEMM_A_STRIDE, 1, COLUMNS, VECTORS);                        \
        else                                                                                       \
            compute(g, t, rows, DT_CPU_GEMM_A_STRIDE, 1, t->b_step, VECTORS);                      \
        break;

void dt_cpu_gemm_tile(const struct dt_cpu_group *g, const struct dt_cpu_gemm_tile *t, int rows,
                      bool transposed_a)
{
    switch (rows) {
        KERNEL(1)
        KERNEL(2)
        KERNEL(3)
        KERNEL(4)
#if DT_CPU_GEMM_ROWS > 4
        KERNEL(5)
        KERNEL(6)
#endif
#if DT_CPU_GEMM_ROWS > 6
        KERNEL(7)
        KERNEL(8)
        KERNEL(9)
        KERNEL(10)
        KERNEL(11)
        KERNEL(12)
#endif
#if DT_CPU_GEMM_ROWS > 12
        KERNEL(13)
        KERNEL(14)
#endif
    }
}
