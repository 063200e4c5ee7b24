/* SPDX-License-Identifier: MIT */
/* Products of few rows with a large matrix, limited by memory bandwidth (decoding). The order of
 * each element's sum depends only on its length: a row has the same bits whatever the other rows.
 *
 * The sums of a tile stay in registers. One inline function, called with constants, becomes the
 * kernel of each tile shape. */
#include "device/cpu/few-rows.h"

#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi" /* only inlined functions take vectors */

#define LANES   16
#define ROWS    4   /* of a tile */
#define COLUMNS 4   /* of a tile; where B is not transposed, vectors of columns */
#define DEPTH   128 /* rows of B that stay in cache for all rows of A */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* Sums stay in registers only if all loops over a tile are unrolled. */
#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

INLINE lanes load(const float *x)
{
    lanes v;
    memcpy(&v, x, sizeof v);
    return v;
}

INLINE float widen(uint16_t x)
{
    uint32_t word = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &word, sizeof wide);
    return wide;
}

/* Element number at of b. */
INLINE float element(const void *b, int64_t at, bool bf16)
{
    return bf16 ? widen(((const uint16_t *)b)[at]) : ((const float *)b)[at];
}

#if defined(__AVX512F__) /* GCC 12 generates several instructions from plain C */
INLINE lanes load_narrow(const uint16_t *x)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)x));
    return (lanes)_mm512_slli_epi32(wide, 16);
}
#else
typedef uint32_t words __attribute__((vector_size(LANES * sizeof(uint32_t))));
typedef uint16_t halves __attribute__((vector_size(LANES * sizeof(uint16_t))));

INLINE lanes load_narrow(const uint16_t *x)
{
    halves narrow;
    memcpy(&narrow, x, sizeof narrow);
    return (lanes)(__builtin_convertvector(narrow, words) << 16);
}
#endif

INLINE lanes load_b(const void *b, int64_t at, bool bf16)
{
    return bf16 ? load_narrow((const uint16_t *)b + at) : load((const float *)b + at);
}

INLINE float add_lanes(const lanes *v)
{
    float x[LANES];
    memcpy(x, v, sizeof x);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

/* Rows first .. and columns n .. of C, for transposed B: dot products over k. */
INLINE void dot_tile(const struct dt_cpu_few_rows *p, int64_t first, int64_t n, int rows,
                     int columns, bool bf16)
{
    lanes sums[ROWS][COLUMNS] = {0};
    const float *a = p->a + first * p->a_stride;
    int64_t b = n * p->b_stride, i = 0;
    for (; i + LANES <= p->k; i += LANES) {
        lanes y[COLUMNS];
        UNROLL
        for (int j = 0; j < columns; j++)
            y[j] = load_b(p->b, b + j * p->b_stride + i, bf16);
        UNROLL
        for (int r = 0; r < rows; r++) {
            lanes x = load(a + r * p->a_stride + i);
            UNROLL
            for (int j = 0; j < columns; j++)
                sums[r][j] += x * y[j];
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int j = 0; j < columns; j++) {
        float sum = add_lanes(&sums[r][j]);
        for (int64_t rest = i; rest < p->k; rest++)
            sum += a[r * p->a_stride + rest] * element(p->b, b + j * p->b_stride + rest, bf16);
        p->c[(first + r) * p->c_stride + n + j] += sum;
    }
}

/* Adds the products with rows from .. to of B to rows first .. and columns n .. of C. */
INLINE void add_tile(const struct dt_cpu_few_rows *p, int64_t first, int64_t n, int64_t from,
                     int64_t to, int rows, int vectors, bool bf16)
{
    lanes sums[ROWS][COLUMNS];
    const float *a = p->a + first * p->a_stride;
    float *c = p->c + first * p->c_stride + n;
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int j = 0; j < vectors; j++)
        sums[r][j] = load(c + r * p->c_stride + j * LANES);
    for (int64_t i = from; i < to; i++) {
        lanes y[COLUMNS];
        UNROLL
        for (int j = 0; j < vectors; j++)
            y[j] = load_b(p->b, i * p->b_stride + n + j * LANES, bf16);
        UNROLL
        for (int r = 0; r < rows; r++)
            UNROLL
        for (int j = 0; j < vectors; j++)
            sums[r][j] += a[r * p->a_stride + i] * y[j];
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int j = 0; j < vectors; j++)
        memcpy(c + r * p->c_stride + j * LANES, &sums[r][j], sizeof(lanes));
}

/* The last columns, fewer than a vector. */
static void add_columns(const struct dt_cpu_few_rows *p, int64_t first, int64_t n, int64_t end,
                        int64_t from, int64_t to, int64_t rows)
{
    for (int64_t r = first; r < first + rows; r++)
        for (int64_t j = n; j < end; j++) {
            float *c = p->c + r * p->c_stride + j;
            for (int64_t i = from; i < to; i++)
                *c += p->a[r * p->a_stride + i] * element(p->b, i * p->b_stride + j, p->bf16);
        }
}

/* One row of A: reads B sequentially, for memory bandwidth. Members of p are copied first, because
 * C might alias them. */
INLINE void add_rows(const struct dt_cpu_few_rows *p, int64_t n, int64_t end, bool bf16)
{
    enum { AT_ONCE = 8 };
    const float *a = p->a;
    const void *b = p->b;
    float *c = p->c;
    int64_t k = p->k, stride = p->b_stride, i = 0;
    for (; i + AT_ONCE <= k; i += AT_ONCE)
        for (int64_t j = n; j < end; j += LANES) {
            lanes sum = load(c + j);
            UNROLL
            for (int step = 0; step < AT_ONCE; step++)
                sum += a[i + step] * load_b(b, (i + step) * stride + j, bf16);
            memcpy(c + j, &sum, sizeof sum);
        }
    for (; i < k; i++)
        for (int64_t j = n; j < end; j += LANES) {
            lanes sum = load(c + j) + a[i] * load_b(b, i * stride + j, bf16);
            memcpy(c + j, &sum, sizeof sum);
        }
}

/* Columns n to end, whole vectors, of rows first ... */
INLINE void add_block(const struct dt_cpu_few_rows *p, int64_t first, int64_t n, int64_t end,
                      int64_t from, int64_t to, int rows, bool bf16)
{
    for (; n + COLUMNS * LANES <= end; n += COLUMNS * LANES)
        add_tile(p, first, n, from, to, rows, COLUMNS, bf16);
    for (; n < end; n += LANES)
        add_tile(p, first, n, from, to, rows, 1, bf16);
}

INLINE void multiply_plain(const struct dt_cpu_few_rows *p, int64_t from, int64_t to, bool bf16)
{
    int64_t end = from + (to - from) / LANES * LANES;
    if (p->rows == 1) {
        add_rows(p, from, end, bf16);
        add_columns(p, 0, end, to, 0, p->k, 1);
        return;
    }
    for (int64_t i = 0; i < p->k; i += DEPTH) {
        int64_t next = p->k - i < DEPTH ? p->k : i + DEPTH;
        for (int64_t n = from; n < end; n += COLUMNS * LANES) {
            int64_t stop = end - n < COLUMNS * LANES ? end : n + COLUMNS * LANES, row = 0;
            for (; row + ROWS <= p->rows; row += ROWS)
                add_block(p, row, n, stop, i, next, ROWS, bf16);
            for (; row < p->rows; row++)
                add_block(p, row, n, stop, i, next, 1, bf16);
        }
        add_columns(p, 0, end, to, i, next, p->rows);
    }
}

INLINE void multiply_transposed(const struct dt_cpu_few_rows *p, int64_t from, int64_t to,
                                bool bf16)
{
    for (int64_t n = from, columns; n < to; n += columns) {
        int64_t row = 0;
        /* For one row of A, read B sequentially. */
        columns = to - n < COLUMNS || p->rows == 1 ? 1 : COLUMNS;
        for (; columns == COLUMNS && row + ROWS <= p->rows; row += ROWS)
            dot_tile(p, row, n, ROWS, COLUMNS, bf16);
        for (; columns == COLUMNS && row < p->rows; row++)
            dot_tile(p, row, n, 1, COLUMNS, bf16);
        for (; row < p->rows; row++)
            dot_tile(p, row, n, 1, 1, bf16);
    }
}

void dt_cpu_multiply_few_rows(const struct dt_cpu_few_rows *p, int64_t from, int64_t to)
{
    if (p->transpose_b && p->bf16)
        multiply_transposed(p, from, to, true);
    else if (p->transpose_b)
        multiply_transposed(p, from, to, false);
    else if (p->bf16)
        multiply_plain(p, from, to, true);
    else
        multiply_plain(p, from, to, false);
}
