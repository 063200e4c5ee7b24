/* SPDX-License-Identifier: MIT */
/*
 * Products of matrices in the order of dt-arithmetic(7): K is divided into chunks, each element's
 * sum of a chunk is one chain of fused multiply-adds, and these sums are added in binary trees.
 * The order follows from K, the parts and the pairs of factors alone: tiles, threads and
 * instruction sets do not change a bit.
 *
 * The trees are executed as a stack machine: the sum of a chunk, plus as many nodes from the top of
 * the stack as the chunk's record says, becomes the new top.
 */
#ifndef DT_DEVICE_CPU_GEMM_H
#define DT_DEVICE_CPU_GEMM_H

#include "device/cpu/cpu.h"
#include "device/cpu/vector.h"

#define DT_CPU_CHUNK 256 /* the most terms of a chain */

/* Where a node goes: nodes that later groups of chunks need are kept outside the cache. */
enum dt_cpu_node { DT_CPU_NODE_OWN, DT_CPU_NODE_KEPT, DT_CPU_NODE_RESULT };

struct dt_cpu_chunk {
    int64_t k; /* first element of K */
    int pair, length;
    int adds_own, adds_kept; /* nodes added to its sum: first those of its group */
    enum dt_cpu_node to;
};

struct dt_cpu_product {
    const struct dt_tensor *c;
    const struct dt_matmul *how;
    struct dt_factors first; /* pair 0; how->more are the others */
    struct dt_cpu_chunk *chunks;
    int64_t count;
    int group; /* chunks per group */
    int kept;  /* kept nodes at most */
};

static inline struct dt_factors dt_cpu_pair(const struct dt_cpu_product *p, int pair)
{
    return pair == 0 ? p->first : p->how->more[pair - 1];
}

/* A rectangle of C. */
struct dt_cpu_area {
    int64_t row, rows, column, columns;
};

/* K of a pair. */
int64_t dt_cpu_depth(const struct dt_cpu_product *p, int pair);
/* The number of chunk records that dt_cpu_order needs at most. */
int64_t dt_cpu_count_chunks(const struct dt_cpu_product *p);
/* Sets the records of p->chunks, and count and kept. */
void dt_cpu_order(struct dt_cpu_product *p);

/* Sums of an area, in rows of stride floats, become elements of C: bias, activation, rounding.
 * scratch: columns floats. */
void dt_cpu_finish(const struct dt_cpu_product *p, const struct dt_cpu_area *area, float *sums,
                   int64_t stride, float *scratch);
/* to = a block of x as a dense fp32 matrix. */
void dt_cpu_widen_block(const struct dt_tensor *x, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, float *to);

/* The tile of C in registers. */
#if defined(__AVX512F__)
#define DT_CPU_GEMM_ROWS 14
#elif defined(__AVX2__)
#define DT_CPU_GEMM_ROWS 6
#elif defined(__ARM_FEATURE_FMA)
#define DT_CPU_GEMM_ROWS 12
#else
#define DT_CPU_GEMM_ROWS 4
#endif
#define DT_CPU_GEMM_VECTORS 2
#define DT_CPU_GEMM_COLUMNS (DT_CPU_GEMM_VECTORS * DT_CPU_VECTOR)
#define DT_CPU_GEMM_TILE    (DT_CPU_GEMM_ROWS * DT_CPU_GEMM_COLUMNS)

#define DT_CPU_GEMM_GROUP 4 /* chunks that are packed at once */
#define DT_CPU_GEMM_DEPTH (DT_CPU_GEMM_GROUP * DT_CPU_CHUNK)

/* Packed operands of a group. A, not transposed: its rows, A_STRIDE floats apart, so that
 * they are in different sets of the L1 cache. A, transposed: panels of GEMM_ROWS columns; B: panels
 * of GEMM_COLUMNS columns; both k by k. */
#define DT_CPU_GEMM_A_STRIDE (DT_CPU_GEMM_DEPTH + 16)
#define DT_CPU_GEMM_A_PANEL  (DT_CPU_GEMM_ROWS * DT_CPU_GEMM_A_STRIDE)

/* A group of chunks, as tiles need it. */
struct dt_cpu_group {
    const struct dt_cpu_chunk *chunks;
    int64_t count;
    int64_t depth; /* of K: all its chunks' terms */
    int kept;      /* kept nodes before it */
};

void dt_cpu_pack_a(const struct dt_cpu_product *p, const struct dt_cpu_group *g, int64_t row,
                   int64_t rows, float *to);
/* Whether a tile reads its columns of B, from column on, in place: they are in one panel of floats,
 * and A is not transposed. */
bool dt_cpu_reads_in_place(const struct dt_cpu_product *p, int64_t column);
/* The other tiles' columns. b_panel: floats from one panel to the next. scratch: DT_CPU_VECTOR *
 * DT_CPU_CHUNK floats. */
void dt_cpu_pack_b(const struct dt_cpu_product *p, const struct dt_cpu_group *g, int64_t column,
                   int64_t columns, float *to, int64_t b_panel, float *scratch);

/* One tile. */
struct dt_cpu_gemm_tile {
    const float *a;                    /* panel, or rows a_step floats apart */
    int64_t a_step;                    /* 0: panel; otherwise C has one vector of columns */
    const float *b[DT_CPU_GEMM_GROUP]; /* of each chunk, in rows of b_step floats */
    int64_t b_step;
    float *own;  /* DT_CPU_GEMM_GROUP nodes */
    float *kept; /* node 0, kept_step floats before node 1 */
    int64_t kept_step;
    float *c; /* result, in rows of stride floats */
    int64_t stride;
    bool accumulate;  /* c += */
    const char *next; /* what is needed later: a prefetch for each k, next_step bytes apart */
    int64_t next_step;
};

/* rows: 1 to DT_CPU_GEMM_ROWS. */
void dt_cpu_gemm_tile(const struct dt_cpu_group *g, const struct dt_cpu_gemm_tile *t, int rows,
                      bool transposed_a);

/* C, by all threads. */
void dt_cpu_gemm(struct dt_device *dev, const struct dt_cpu_product *p);

#endif
