/* SPDX-License-Identifier: MIT */
/* Nodes of the trees of sums are stacked in arrays of a block of columns. The sums of a tile stay
 * in registers for a chunk of K. One inline function, called with constants, becomes the kernel of
 * each tile shape. */
#include "device/cpu/gemm/few-rows.h"
#include "device/cpu/panels.h"
#include "device/cpu/transpose.h"

#include <omp.h>

#ifdef __FP_FAST_FMAF
#define ROWS 6 /* of a tile */
#else
#define ROWS 2 /* a multiplication and addition is a call: longer tiles only make more code */
#endif
#define MOST_ROWS      6
#define MOST_DOTS      12 /* rows, where B is transposed */
#define MOST_OF_PANELS 16
#define COLUMN_UNIT    BLOCK
#define BLOCK          DT_PANEL /* columns whose nodes are stacked */
#define IN_SEQUENCE    3        /* rows, at most, with which B is read sequentially */
#define BLOCK_OF_1     4096     /* columns, the same of these */
#if DT_CPU_VECTOR == 16
#define VECTORS 4 /* of a tile */
#else
#define VECTORS 2
#endif
#ifdef __FP_FAST_FMAF
#define OF_1 (BLOCK / DT_CPU_VECTOR) /* the same, of one row of a panel, which is read once */
#else
#define OF_1 VECTORS
#endif
#define GROUPS 2    /* the same, of transposed B */
#define AHEAD  2048 /* bytes of a panel to prefetch: one stream alone does not use all bandwidth */

/* A chunk's operands, for a block of columns. */
struct operands {
    const float *a;
    const void *b;
    int64_t length, a_stride, b_stride;
    bool transposed;           /* B is fp32 then */
    bool sequential;           /* at most IN_SEQUENCE rows, and B is not transposed */
    bool panel;                /* B is one, of fp32, whose columns are b_stride apart */
    struct dt_cpu_panel pairs; /* B is this, of bf16, from column k on */
    int64_t k;
};

bool dt_cpu_has_few_rows(const struct dt_cpu_product *p)
{
    const struct dt_tensor *b = p->first.b;
    if (p->how->transpose_a)
        return false;
    if (b->panels)
        return p->c->rows <= MOST_OF_PANELS;
    return p->c->rows <= (p->how->transpose_b ? MOST_DOTS : MOST_ROWS) &&
           b->dtype != DT_DTYPE_F16 && !(p->how->transpose_b && b->dtype != DT_DTYPE_F32);
}

size_t dt_cpu_few_rows_memory(const struct dt_cpu_product *p)
{
    size_t size = 0;
    for (int i = 0; i <= p->how->more_count && p->first.a->dtype != DT_DTYPE_F32; i++)
        size += (size_t)(p->c->rows * dt_cpu_depth(p, i));
    return size;
}

#if DT_CPU_VECTOR == 16 /* GCC 12 generates several instructions from plain C */
DT_CPU_INLINE dt_cpu_vector load_bf16(const uint16_t *from)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from));
    return (dt_cpu_vector)_mm512_slli_epi32(wide, 16);
}
#else
typedef uint32_t words __attribute__((vector_size(4 * DT_CPU_VECTOR)));
typedef uint16_t halves __attribute__((vector_size(2 * DT_CPU_VECTOR)));

DT_CPU_INLINE dt_cpu_vector load_bf16(const uint16_t *from)
{
    halves narrow;
    memcpy(&narrow, from, sizeof narrow);
    return (dt_cpu_vector)(__builtin_convertvector(narrow, words) << 16);
}
#endif

DT_CPU_INLINE dt_cpu_vector load_b(const void *b, int64_t at, bool bf16)
{
    return bf16 ? load_bf16((const uint16_t *)b + at) : dt_cpu_vector_load((const float *)b + at);
}

DT_CPU_INLINE float element(const void *b, int64_t at, bool bf16)
{
    if (!bf16)
        return ((const float *)b)[at];
    uint32_t word = (uint32_t)((const uint16_t *)b)[at] << 16;
    float wide;
    memcpy(&wide, &word, sizeof wide);
    return wide;
}

/* to[r] = the chains of row r and columns j .., vectors of them; rows of to are BLOCK apart. */
DT_CPU_INLINE void chain_tile(const struct operands *o, int64_t j, float *to, int rows, int vectors,
                              bool bf16, bool panel)
{
    dt_cpu_vector sums[ROWS][OF_1];
    const float *a = o->a;
    int64_t length = o->length, a_stride = o->a_stride, b_stride = o->b_stride;
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = (dt_cpu_vector){0};
    for (int64_t k = 0; k < length; k++) {
        dt_cpu_vector y[OF_1];
        DT_CPU_UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t at = k * b_stride + j + v * DT_CPU_VECTOR;
            if (panel)
                __builtin_prefetch((const char *)o->b + at * 4 + AHEAD, 0, 2);
            y[v] = load_b(o->b, at, bf16);
        }
        DT_CPU_UNROLL
        for (int r = 0; r < rows; r++) {
            dt_cpu_vector x = dt_cpu_vector_of(a[r * a_stride + k]);
            DT_CPU_UNROLL
            for (int v = 0; v < vectors; v++)
                sums[r][v] = dt_cpu_vector_fma(x, y[v], sums[r][v]);
        }
    }
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int v = 0; v < vectors; v++)
        dt_cpu_vector_store(to + r * BLOCK + j + v * DT_CPU_VECTOR, sums[r][v]);
}

typedef uint32_t pair_vector __attribute__((vector_size(4 * DT_CPU_VECTOR), aligned(4), may_alias));

/* sums += terms of rows of A and one column k of pairs, or of both columns of k. */
DT_CPU_INLINE void add_pairs(dt_cpu_vector sums[ROWS][OF_1], const struct operands *o,
                             const uint16_t *pairs, int64_t k, int rows, int vectors, bool even,
                             bool odd)
{
    pair_vector y[OF_1];
    DT_CPU_UNROLL
    for (int v = 0; v < vectors; v++) {
        const uint16_t *from = pairs + 2 * v * DT_CPU_VECTOR;
        __builtin_prefetch((const char *)from + AHEAD, 0, 2);
        y[v] = *(const pair_vector *)(const void *)from;
    }
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++) {
        const float *a = o->a + r * o->a_stride + k;
        DT_CPU_UNROLL
        for (int v = 0; v < vectors && even; v++)
            sums[r][v] =
                dt_cpu_vector_fma(dt_cpu_vector_of(a[0]), (dt_cpu_vector)(y[v] << 16), sums[r][v]);
        DT_CPU_UNROLL
        for (int v = 0; v < vectors && odd; v++)
            sums[r][v] = dt_cpu_vector_fma(dt_cpu_vector_of(a[even]),
                                           (dt_cpu_vector)(y[v] & 0xffff0000), sums[r][v]);
    }
}

/* The same as chain_tile of a panel of pairs. A chunk may begin and end within a pair; the last
 * column has none if their number is odd. */
DT_CPU_INLINE void pair_tile(const struct operands *o, int64_t j, float *to, int rows, int vectors)
{
    dt_cpu_vector sums[ROWS][OF_1];
    const uint16_t *at = (const uint16_t *)o->pairs.data + o->k / 2 * 2 * o->pairs.height + 2 * j;
    int64_t k = 0, step = 2 * o->pairs.height;
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int v = 0; v < vectors; v++)
        sums[r][v] = (dt_cpu_vector){0};
    if (o->k % 2 != 0 && o->length > 0) {
        add_pairs(sums, o, at, k++, rows, vectors, false, true);
        at += step;
    }
    for (; k + 2 <= o->length; k += 2, at += step)
        add_pairs(sums, o, at, k, rows, vectors, true, true);
    if (k < o->length && o->k + k + 1 < o->pairs.length)
        add_pairs(sums, o, at, k, rows, vectors, true, false);
    else if (k < o->length)
        DT_CPU_UNROLL
    for (int v = 0; v < vectors; v++) {
        dt_cpu_vector y = load_bf16(at - j + v * DT_CPU_VECTOR);
        DT_CPU_UNROLL
        for (int r = 0; r < rows; r++)
            sums[r][v] =
                dt_cpu_vector_fma(dt_cpu_vector_of(o->a[r * o->a_stride + k]), y, sums[r][v]);
    }
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int v = 0; v < vectors; v++)
        dt_cpu_vector_store(to + r * BLOCK + j + v * DT_CPU_VECTOR, sums[r][v]);
}

/* Every 16 k, a cache line of each of 16 rows; at every 4th k, of 4 of them. */
DT_CPU_INLINE void prefetch_rows(const float *b, int64_t stride, int64_t k)
{
    DT_CPU_UNROLL
    for (int i = 0; i < 4; i++)
        __builtin_prefetch(b + (k % 16 + i) * stride + k / 16 * 16, 0, 2);
}

/* The same where B is transposed: its rows are columns of the tile. */
DT_CPU_INLINE void dot_tile(const struct operands *o, int64_t j, float *to, int rows, int groups)
{
    dt_cpu_vector sums[ROWS][GROUPS];
    const float *a = o->a, *b = (const float *)o->b + j * o->b_stride;
    int64_t length = o->length, a_stride = o->a_stride, stride = o->b_stride, k = 0;
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int g = 0; g < groups; g++)
        sums[r][g] = (dt_cpu_vector){0};
    for (; k + 4 <= length; k += 4) {
        DT_CPU_UNROLL
        for (int g = 0; g < groups; g++) {
            dt_cpu_vector y[4];
            prefetch_rows(b + (g + GROUPS) * DT_CPU_VECTOR * stride, stride, k);
            dt_cpu_transpose(b + g * DT_CPU_VECTOR * stride + k, stride, y);
            DT_CPU_UNROLL
            for (int r = 0; r < rows; r++)
                DT_CPU_UNROLL
            for (int i = 0; i < 4; i++)
                sums[r][g] =
                    dt_cpu_vector_fma(dt_cpu_vector_of(a[r * a_stride + k + i]), y[i], sums[r][g]);
        }
    }
    for (; k < length; k++)
        DT_CPU_UNROLL
    for (int g = 0; g < groups; g++) {
        dt_cpu_vector y = {0};
        DT_CPU_UNROLL
        for (int i = 0; i < DT_CPU_VECTOR; i++)
            y[i] = b[(g * DT_CPU_VECTOR + i) * stride + k];
        DT_CPU_UNROLL
        for (int r = 0; r < rows; r++)
            sums[r][g] = dt_cpu_vector_fma(dt_cpu_vector_of(a[r * a_stride + k]), y, sums[r][g]);
    }
    DT_CPU_UNROLL
    for (int r = 0; r < rows; r++)
        DT_CPU_UNROLL
    for (int g = 0; g < groups; g++)
        dt_cpu_vector_store(to + r * BLOCK + j + g * DT_CPU_VECTOR, sums[r][g]);
}

/* sum += the terms of 4 k of one row. */
DT_CPU_INLINE dt_cpu_vector add_four(dt_cpu_vector sum, const float *a, const float *b,
                                     int64_t stride)
{
    dt_cpu_vector y[4];
    dt_cpu_transpose(b, stride, y);
    DT_CPU_UNROLL
    for (int i = 0; i < 4; i++)
        sum = dt_cpu_vector_fma(dt_cpu_vector_of(a[i]), y[i], sum);
    return sum;
}

/* The same of one row: each row of B gives a cache line at a time, while one of each row of the
 * next columns is prefetched. */
DT_CPU_INLINE void dot_row(const struct operands *o, int64_t j, float *to)
{
    enum { LINE = 16, QUARTER = DT_CPU_VECTOR / 4 };
    dt_cpu_vector sum = {0};
    const float *a = o->a, *b = (const float *)o->b + j * o->b_stride;
    int64_t length = o->length, stride = o->b_stride, k = 0;
    for (; k + LINE <= length; k += LINE)
        DT_CPU_UNROLL
    for (int i = 0; i < LINE; i += 4) {
        DT_CPU_UNROLL
        for (int row = 0; row < QUARTER; row++)
            __builtin_prefetch(b + (DT_CPU_VECTOR + i / 4 * QUARTER + row) * stride + k);
        sum = add_four(sum, a + k + i, b + k + i, stride);
    }
    for (; k + 4 <= length; k += 4)
        sum = add_four(sum, a + k, b + k, stride);
    for (; k < length; k++) {
        dt_cpu_vector y = {0};
        DT_CPU_UNROLL
        for (int i = 0; i < DT_CPU_VECTOR; i++)
            y[i] = b[i * stride + k];
        sum = dt_cpu_vector_fma(dt_cpu_vector_of(a[k]), y, sum);
    }
    dt_cpu_vector_store(to + j, sum);
}

/* The last columns, fewer than a vector. */
DT_CPU_INLINE void chain_columns(const struct operands *o, int64_t j, int64_t columns, float *to,
                                 int64_t rows, int64_t stride, bool bf16)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = j; i < columns; i++) {
            float sum = 0;
            for (int64_t k = 0; k < o->length; k++) {
                int64_t at = o->transposed ? i * o->b_stride + k : k * o->b_stride + i;
                float y = o->pairs.pairs ? dt_cpu_panel_element(&o->pairs, o->k + k, i)
                                         : element(o->b, at, bf16);
                sum = dt_cpu_fmaf(o->a[r * o->a_stride + k], y, sum);
            }
            to[r * stride + i] = sum;
        }
}

/* How chain_rows reads B. */
enum layout { LAYOUT_ROWS, LAYOUT_ROWS_BF16, LAYOUT_PANEL, LAYOUT_PAIRS };

DT_CPU_INLINE void chain_vectors(const struct operands *o, int64_t j, float *to, int rows,
                                 int vectors, enum layout layout)
{
    if (layout == LAYOUT_PAIRS)
        pair_tile(o, j, to, rows, vectors);
    else
        chain_tile(o, j, to, rows, vectors, layout == LAYOUT_ROWS_BF16, layout == LAYOUT_PANEL);
}

DT_CPU_INLINE void chain_rows(const struct operands *o, int64_t columns, float *to, int rows,
                              enum layout layout)
{
    bool panel = layout == LAYOUT_PANEL || layout == LAYOUT_PAIRS;
    int64_t j = 0;
    for (; o->transposed && rows == 1 && j + DT_CPU_VECTOR <= columns; j += DT_CPU_VECTOR)
        dot_row(o, j, to);
    for (; o->transposed && j + GROUPS * DT_CPU_VECTOR <= columns; j += GROUPS * DT_CPU_VECTOR)
        dot_tile(o, j, to, rows, GROUPS);
    for (; o->transposed && j + DT_CPU_VECTOR <= columns; j += DT_CPU_VECTOR)
        dot_tile(o, j, to, rows, 1);
    for (; panel && rows == 1 && j + OF_1 * DT_CPU_VECTOR <= columns; j += OF_1 * DT_CPU_VECTOR)
        chain_vectors(o, j, to, rows, OF_1, layout);
    for (; !o->transposed && j + VECTORS * DT_CPU_VECTOR <= columns; j += VECTORS * DT_CPU_VECTOR)
        chain_vectors(o, j, to, rows, VECTORS, layout);
    for (; !o->transposed && j + DT_CPU_VECTOR <= columns; j += DT_CPU_VECTOR)
        chain_vectors(o, j, to, rows, 1, layout);
    chain_columns(o, j, columns, to, rows, BLOCK, layout == LAYOUT_ROWS_BF16);
}

/* The chains of a chunk, of all rows. */
DT_CPU_INLINE void chain_block(const struct operands *all, int64_t columns, float *to, int64_t rows,
                               enum layout layout)
{
    struct operands o = *all;
    for (int64_t left = rows; left > 0; left -= ROWS) {
        switch (left < ROWS ? left : ROWS) {
        case 1:
            chain_rows(&o, columns, to, 1, layout);
            break;
#if ROWS > 2
        case 2:
            chain_rows(&o, columns, to, 2, layout);
            break;
        case 3:
            chain_rows(&o, columns, to, 3, layout);
            break;
        case 4:
            chain_rows(&o, columns, to, 4, layout);
            break;
        case 5:
            chain_rows(&o, columns, to, 5, layout);
            break;
#endif
        default:
            chain_rows(&o, columns, to, ROWS, layout);
        }
        o.a += ROWS * o.a_stride;
        to += ROWS * BLOCK;
    }
}

/* sums = steps more terms of the chains of rows of A, from 0 if first. */
DT_CPU_INLINE void chain_steps(const float *a, int64_t a_stride, const void *b, int64_t b_stride,
                               int64_t columns, float *sums, int rows, int steps, bool first,
                               bool bf16)
{
    for (int64_t j = 0; j + DT_CPU_VECTOR <= columns; j += DT_CPU_VECTOR) {
        dt_cpu_vector sum[IN_SEQUENCE];
        DT_CPU_UNROLL
        for (int r = 0; r < rows; r++)
            sum[r] = first ? (dt_cpu_vector){0} : dt_cpu_vector_load(sums + r * BLOCK_OF_1 + j);
        DT_CPU_UNROLL
        for (int i = 0; i < steps; i++) {
            dt_cpu_vector y = load_b(b, i * b_stride + j, bf16);
            DT_CPU_UNROLL
            for (int r = 0; r < rows; r++)
                sum[r] = dt_cpu_vector_fma(dt_cpu_vector_of(a[r * a_stride + i]), y, sum[r]);
        }
        DT_CPU_UNROLL
        for (int r = 0; r < rows; r++)
            dt_cpu_vector_store(sums + r * BLOCK_OF_1 + j, sum[r]);
    }
}

/* B is read sequentially, several of its rows at once. */
DT_CPU_INLINE void chain_sequentially(const struct operands *o, int64_t columns, float *sums,
                                      int rows, bool bf16)
{
    const char *b = o->b;
    const int at_once = rows == 1 ? 8 : 4; /* rows of B */
    int64_t k = 0, size = bf16 ? 2 : 4;
    for (int r = 0; r < rows && o->length == 0; r++)
        memset(sums + r * BLOCK_OF_1, 0, (size_t)columns * sizeof *sums);
    for (; k + at_once <= o->length; k += at_once)
        chain_steps(o->a + k, o->a_stride, b + k * o->b_stride * size, o->b_stride, columns, sums,
                    rows, at_once, k == 0, bf16);
    for (; k < o->length; k++)
        chain_steps(o->a + k, o->a_stride, b + k * o->b_stride * size, o->b_stride, columns, sums,
                    rows, 1, k == 0, bf16);
    chain_columns(o, columns / DT_CPU_VECTOR * DT_CPU_VECTOR, columns, sums, rows, BLOCK_OF_1,
                  bf16);
}

DT_CPU_INLINE void chain_in_sequence(const struct operands *o, int64_t columns, float *sums,
                                     int64_t rows, bool bf16)
{
    if (rows == 1)
        chain_sequentially(o, columns, sums, 1, bf16);
    else if (rows == 2)
        chain_sequentially(o, columns, sums, 2, bf16);
    else
        chain_sequentially(o, columns, sums, 3, bf16);
}

static void chain(const struct operands *o, int64_t columns, float *to, int64_t rows, bool bf16)
{
    if (o->transposed)
        chain_block(o, columns, to, rows, LAYOUT_ROWS);
    else if (o->pairs.pairs)
        chain_block(o, columns, to, rows, LAYOUT_PAIRS);
    else if (o->panel)
        chain_block(o, columns, to, rows, LAYOUT_PANEL);
    else if (o->sequential && bf16)
        chain_in_sequence(o, columns, to, rows, true);
    else if (o->sequential)
        chain_in_sequence(o, columns, to, rows, false);
    else if (bf16)
        chain_block(o, columns, to, rows, LAYOUT_ROWS_BF16);
    else
        chain_block(o, columns, to, rows, LAYOUT_ROWS);
}

/* left += right */
static void add_node(float *restrict left, const float *restrict right, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        left[i] += right[i];
}

static bool reads_sequentially(const struct dt_cpu_product *p)
{
    return p->c->rows <= IN_SEQUENCE && !p->how->transpose_b;
}

/* Columns area of C, whose rows of B are one panel if B has panels. */
static struct operands operands_of(const struct dt_cpu_product *p, const float *wide,
                                   const struct dt_cpu_chunk *chunk, const struct dt_cpu_area *area)
{
    struct dt_factors f = dt_cpu_pair(p, chunk->pair);
    struct operands o = {.length = chunk->length,
                         .transposed = p->how->transpose_b && !f.b->panels,
                         .sequential = reads_sequentially(p),
                         .panel = f.b->panels,
                         .b_stride = f.b->panels ? area->columns : f.b->stride,
                         .k = chunk->k};
    if (f.b->panels && f.b->dtype == DT_DTYPE_BF16)
        o.pairs = dt_cpu_panel_of(f.b, area->column);
    else if (f.b->panels)
        o.b = dt_cpu_at(f.b, area->column, chunk->k * area->columns);
    else
        o.b = o.transposed ? dt_cpu_at(f.b, area->column, chunk->k)
                           : dt_cpu_at(f.b, chunk->k, area->column);
    for (int i = 0; wide && i < chunk->pair; i++)
        wide += p->c->rows * dt_cpu_depth(p, i);
    o.a_stride = wide ? dt_cpu_depth(p, chunk->pair) : f.a->stride;
    o.a = wide ? wide + chunk->k : (const float *)f.a->data + chunk->k;
    return o;
}

/* Columns of C that one block's nodes cover; wide: A, or NULL if it is fp32. */
static void multiply_columns(const struct dt_cpu_product *p, const float *wide,
                             const struct dt_cpu_area *area, float *nodes, float *scratch)
{
    int64_t width = reads_sequentially(p) ? BLOCK_OF_1 : BLOCK, size = area->rows * width;
    float *top = nodes;
    for (int64_t i = 0; i < p->count; i++, top += size) {
        struct operands o = operands_of(p, wide, &p->chunks[i], area);
        chain(&o, area->columns, top, area->rows, p->first.b->dtype == DT_DTYPE_BF16);
        for (int j = 0; j < p->chunks[i].adds_kept; j++, top -= size)
            for (int64_t r = 0; r < area->rows; r++)
                add_node(top - size + r * width, top + r * width, area->columns);
    }
    for (int64_t i = 0; i < area->rows; i++) {
        float *sums = nodes + i * width;
        const float *old = dt_cpu_load(p->c, area->row + i, area->column, area->columns, scratch);
        for (int64_t j = 0; p->how->accumulate && j < area->columns; j++)
            sums[j] = old[j] + sums[j];
    }
    dt_cpu_finish(p, area, nodes, width, scratch);
}

void dt_cpu_few_rows(struct dt_device *dev, const struct dt_cpu_product *p, float *memory)
{
    int64_t rows = p->c->rows, n = p->c->columns,
            block = reads_sequentially(p) ? BLOCK_OF_1 : BLOCK;
    bool dots = p->how->transpose_b && !p->first.b->panels;
    int64_t step = dots ? GROUPS * DT_CPU_VECTOR : block;
    float *wide = p->first.a->dtype == DT_DTYPE_F32 ? NULL : memory;
    for (int i = 0; wide && i <= p->how->more_count; i++) {
        dt_cpu_widen_block(dt_cpu_pair(p, i).a, 0, rows, 0, dt_cpu_depth(p, i), memory);
        memory += rows * dt_cpu_depth(p, i);
    }
#pragma omp parallel num_threads(dev->threads)
    {
        struct dt_cpu_area area = {.row = 0, .rows = rows};
        int64_t from, to, nodes = (p->kept + 1) * rows * block;
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &from, &to);
        float *own = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(nodes + block + 16));
        for (area.column = from; area.column < to; area.column += step) {
            area.columns = to - area.column < step ? to - area.column : step;
            multiply_columns(p, wide, &area, own, own + nodes);
        }
    }
}
