/* SPDX-License-Identifier: MIT */
#include "device/cpu/attention/attention-bf16.h"

#include "device/cpu/gemm/bf16-panels.h"

#if DT_CPU_BF16_PANELS

#define DOTS __attribute__((target("avx512bf16")))

static __m512i widen(__m256i x)
{
    return _mm512_cvtepu16_epi32(x);
}

/* Words of an element of low and one of high each. */
static __m512i pair(__m256i low, __m256i high)
{
    return _mm512_or_si512(widen(low), _mm512_slli_epi32(widen(high), 16));
}

static void pair_rows(uint32_t *to, const uint32_t *rows, int64_t count, int64_t width)
{
    for (int64_t i = 0; i < count; i += 2, to += width)
        for (int64_t j = 0; j < width; j += 16) {
            const uint32_t *from = rows + (i * width + j) / 2;
            __m256i low = _mm256_loadu_si256((const void *)from);
            __m256i high = _mm256_loadu_si256((const void *)(from + width / 2));
            _mm512_storeu_si512(to + j, pair(low, high));
        }
}

void dt_cpu_dots_load(const struct dt_cpu_dots *to, int64_t padded, const struct dt_tensor *x,
                      int64_t first, int64_t count, int64_t head, int64_t size)
{
    int64_t width = dt_cpu_head_width(size), words = width / 2;
    memset(to->rows + count * words, 0, (size_t)((padded - count) * words) * sizeof *to->rows);
    for (int64_t i = 0; i < count; i++) {
        uint16_t *row = (uint16_t *)(to->rows + i * words);
        memcpy(row, dt_cpu_at(x, first + i, head * size), (size_t)size * sizeof *row);
        memset(row + size, 0, (size_t)(width - size) * sizeof *row);
    }
    if (to->lanes)
        dt_cpu_transpose((float *)to->lanes, (const float *)to->rows, words, padded, words);
    if (to->pairs)
        pair_rows(to->pairs, to->rows, padded, width);
}

#define TILE_VECTORS 4 /* of a tile, at most */

/* Some rows and vectors of C, from column number column on. */
DT_CPU_INLINE DOTS void tile(const struct dt_cpu_dots_product *p, int64_t column, int rows,
                             int vectors, bool add)
{
    const uint32_t *a = p->a, *b = p->b + column;
    float *c = p->c + column;
    __m512 sum[DT_CPU_TILE_ROWS][TILE_VECTORS];
    DT_CPU_UNROLL
    for (int i = 0; i < rows; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        sum[i][j] = add ? _mm512_loadu_ps(c + i * p->ldc + j * 16) : _mm512_setzero_ps();
    for (int64_t k = 0; k < p->depth; k++, a += p->step, b += p->ldb) {
        DT_CPU_UNROLL
        for (int i = 0; i < rows; i++)
            DT_CPU_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] =
                _mm512_dpbf16_ps(sum[i][j], (__m512bh)_mm512_set1_epi32((int)a[i * p->row_step]),
                                 (__m512bh)_mm512_loadu_si512(b + j * 16));
    }
    const __m512 factor = _mm512_set1_ps(p->factor);
    DT_CPU_UNROLL
    for (int i = 0; i < rows; i++)
        DT_CPU_UNROLL
    for (int j = 0; j < vectors; j++)
        _mm512_storeu_ps(c + i * p->ldc + j * 16,
                         add ? sum[i][j] : _mm512_mul_ps(sum[i][j], factor));
}

/* n columns, a multiple of 16; vectors: of a tile. */
DT_CPU_INLINE DOTS void tiles(const struct dt_cpu_dots_product *p, int64_t n, int rows, int vectors,
                              bool add)
{
    int64_t column = 0;
    for (; column + 16 * vectors <= n; column += 16 * vectors)
        tile(p, column, rows, vectors, add);
    for (; column < n; column += 16)
        tile(p, column, rows, 1, add);
}

DOTS static void multiply(const struct dt_cpu_dots_product *p, int64_t rows, int64_t columns)
{
    if (rows > 1 && p->add)
        tiles(p, columns, DT_CPU_TILE_ROWS, 2, true);
    else if (rows > 1)
        tiles(p, columns, DT_CPU_TILE_ROWS, 2, false);
    else if (p->add)
        tiles(p, columns, 1, TILE_VECTORS, true);
    else
        tiles(p, columns, 1, TILE_VECTORS, false);
}

static const struct dt_cpu_dots_kernel avx512 = {
    .rows = DT_CPU_TILE_ROWS,
    .depth = 1,
    .takes_columns = true,
    .multiply = multiply,
};

const struct dt_cpu_dots_kernel *dt_cpu_dots_kernel(struct dt_device *dev,
                                                    const struct dt_tensor *q, int64_t width)
{
    if (q->dtype != DT_DTYPE_BF16 || dev->canonical)
        return NULL;
    if (width / 2 % dt_cpu_dots_amx.depth == 0 && dt_cpu_bf16_kernel(dev) == &dt_cpu_amx_kernel)
        return &dt_cpu_dots_amx;
    return __builtin_cpu_supports("avx512bf16") ? &avx512 : NULL;
}

void dt_cpu_dots_score(const struct dt_cpu_dots_kernel *kernel, float *scores,
                       const struct dt_cpu_dots *rows, const struct dt_cpu_dots *lanes,
                       const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                       int64_t width, float factor)
{
    for (int64_t j = 0; j < keys->rows; j += kernel->rows) {
        int64_t lane = dt_cpu_first_lane(keys, q, j, 16), left = keys->rows - j;
        if (lane < q->lanes)
            kernel->multiply(&(struct dt_cpu_dots_product){.c = scores + j * DT_CPU_BLOCK + lane,
                                                           .ldc = DT_CPU_BLOCK,
                                                           .a = rows->rows + j * width / 2,
                                                           .row_step = width / 2,
                                                           .step = 1,
                                                           .b = lanes->lanes + lane,
                                                           .ldb = DT_CPU_BLOCK,
                                                           .depth = width / 2,
                                                           .factor = factor},
                             left < kernel->rows ? left : kernel->rows, q->lanes - lane);
    }
}

/* to (keys / 2 x DT_CPU_BLOCK): pairs of keys. Lanes that were not computed are 0, and rows up to
 * dt_cpu_dots_rows. */
DOTS static void narrow_pairs(uint32_t *to, const float *weights, const struct dt_cpu_keys *keys,
                              const struct dt_cpu_queries *q)
{
    for (int64_t row = 0; row < keys->rows; row += 2, to += DT_CPU_BLOCK) {
        const float *from = weights + row * DT_CPU_BLOCK;
        int64_t lane = dt_cpu_first_lane(keys, q, row / DT_CPU_TILE_ROWS * DT_CPU_TILE_ROWS, 16);
        memset(to, 0, (size_t)(lane < q->lanes ? lane : q->lanes) * sizeof *to);
        for (; lane < q->lanes; lane += 16) {
            __m256i low = (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from + lane));
            __m256i high = (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(from + DT_CPU_BLOCK + lane));
            _mm512_storeu_si512(to + lane, pair(low, high));
        }
    }
    int64_t rest = (dt_cpu_dots_rows(keys->rows) - keys->rows) / 2;
    memset(to, 0, (size_t)(rest * DT_CPU_BLOCK) * sizeof *to);
}

/* The same, transposed: DT_CPU_BLOCK x DT_CPU_BLOCK words, of which the first half of a row. */
static void narrow_columns(uint32_t *to, const float *weights, const struct dt_cpu_keys *keys,
                           const struct dt_cpu_queries *q)
{
    uint32_t pairs[DT_CPU_BLOCK / 2 * DT_CPU_BLOCK];
    narrow_pairs(pairs, weights, keys, q);
    dt_cpu_transpose((float *)to, (const float *)pairs, DT_CPU_BLOCK,
                     dt_cpu_dots_rows(keys->rows) / 2, q->lanes);
}

static int64_t depth_of(const struct dt_cpu_dots_kernel *kernel, int64_t elements)
{
    return dt_cpu_round_up((elements + 1) / 2, kernel->depth);
}

void dt_cpu_dots_sum_keys(const struct dt_cpu_dots_kernel *kernel, float *sums,
                          const float *weights, const struct dt_cpu_dots *pairs,
                          const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                          int64_t width, uint32_t *scratch)
{
    bool columns = kernel->takes_columns;
    int64_t row_step = columns ? 1 : DT_CPU_BLOCK;
    (columns ? narrow_pairs : narrow_columns)(scratch, weights, keys, q);
    for (int64_t i = 0; i < q->lanes; i += kernel->rows) {
        int64_t left = q->lanes - i, rows = left < kernel->rows ? left : kernel->rows;
        int64_t seen = keys->rows, reach = i + rows - 1;
        while (seen > 0 && dt_cpu_first_lane(keys, q, seen - 1, 1) > reach)
            seen--;
        kernel->multiply(&(struct dt_cpu_dots_product){.c = sums + i * width,
                                                       .ldc = width,
                                                       .a = scratch + i * row_step,
                                                       .row_step = row_step,
                                                       .step = columns ? DT_CPU_BLOCK : 1,
                                                       .b = pairs->pairs,
                                                       .ldb = width,
                                                       .depth = depth_of(kernel, seen),
                                                       .add = true},
                         rows, width);
    }
}

/* to (DT_CPU_BLOCK x DT_CPU_BLOCK / 2): pairs of queries. Lanes that were not computed are 0, and
 * rows and lanes up to dt_cpu_dots_rows. */
DOTS static void narrow_rows(uint32_t *to, const float *weights, const struct dt_cpu_keys *keys,
                             const struct dt_cpu_queries *q)
{
    const int64_t words = DT_CPU_BLOCK / 2;
    DT_CPU_EACH_ROW(keys, q, row, lane)
    {
        uint32_t *pairs = to + row * words;
        memset(pairs, 0, (size_t)((lane < q->lanes ? lane : q->lanes) / 2) * sizeof *to);
        for (; lane < q->lanes; lane += 16)
            _mm256_storeu_si256(
                (void *)(pairs + lane / 2),
                (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(weights + row * DT_CPU_BLOCK + lane)));
        memset(pairs + q->lanes / 2, 0,
               (size_t)(dt_cpu_dots_rows(q->lanes) - q->lanes) / 2 * sizeof *to);
    }
    int64_t rest = dt_cpu_dots_rows(keys->rows) - keys->rows;
    memset(to + keys->rows * words, 0, (size_t)(rest * words) * sizeof *to);
}

void dt_cpu_dots_sum_queries(const struct dt_cpu_dots_kernel *kernel, float *sums,
                             const float *weights, const struct dt_cpu_dots *pairs,
                             const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                             int64_t width, uint32_t *scratch)
{
    narrow_rows(scratch, weights, keys, q);
    for (int64_t j = 0; j < keys->rows; j += kernel->rows) {
        int64_t lane = dt_cpu_first_lane(keys, q, j, 2 * kernel->depth), left = keys->rows - j;
        if (lane < q->count)
            kernel->multiply(
                &(struct dt_cpu_dots_product){.c = sums + j * width,
                                              .ldc = width,
                                              .a = scratch + (j * DT_CPU_BLOCK + lane) / 2,
                                              .row_step = DT_CPU_BLOCK / 2,
                                              .step = 1,
                                              .b = pairs->pairs + lane / 2 * width,
                                              .ldb = width,
                                              .depth = depth_of(kernel, q->count - lane),
                                              .add = true},
                left < kernel->rows ? left : kernel->rows, width);
    }
}

void dt_cpu_dots_score_row(const struct dt_cpu_dots_kernel *kernel, float *scores,
                           const uint32_t *query, const struct dt_cpu_dots *keys, int64_t count,
                           int64_t width, float factor)
{
    kernel->multiply(&(struct dt_cpu_dots_product){.c = scores,
                                                   .ldc = DT_CPU_BLOCK,
                                                   .a = query,
                                                   .row_step = width / 2,
                                                   .step = 1,
                                                   .b = keys->lanes,
                                                   .ldb = DT_CPU_BLOCK,
                                                   .depth = width / 2,
                                                   .factor = factor},
                     1, count);
}

DOTS void dt_cpu_dots_sum_row(const struct dt_cpu_dots_kernel *kernel, float *sums,
                              const float *weights, const struct dt_cpu_dots *values, int64_t count,
                              int64_t width)
{
    uint32_t pairs[DT_CPU_BLOCK / 2] = {0};
    for (int64_t i = 0; i < count; i += 16)
        _mm256_storeu_si256((void *)(pairs + i / 2),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(weights + i)));
    kernel->multiply(&(struct dt_cpu_dots_product){.c = sums,
                                                   .ldc = width,
                                                   .a = pairs,
                                                   .row_step = DT_CPU_BLOCK / 2,
                                                   .step = 1,
                                                   .b = values->pairs,
                                                   .ldb = width,
                                                   .depth = depth_of(kernel, count),
                                                   .add = true},
                     1, width);
}

#else

const struct dt_cpu_dots_kernel *dt_cpu_dots_kernel(struct dt_device *dev,
                                                    const struct dt_tensor *q, int64_t width)
{
    (void)dev, (void)q, (void)width;
    return NULL;
}

void dt_cpu_dots_load(const struct dt_cpu_dots *to, int64_t padded, const struct dt_tensor *x,
                      int64_t first, int64_t count, int64_t head, int64_t size)
{
    (void)to, (void)padded, (void)x, (void)first, (void)count, (void)head, (void)size;
}

void dt_cpu_dots_score(const struct dt_cpu_dots_kernel *kernel, float *scores,
                       const struct dt_cpu_dots *rows, const struct dt_cpu_dots *lanes,
                       const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                       int64_t width, float factor)
{
    (void)kernel, (void)scores, (void)rows, (void)lanes, (void)keys, (void)q, (void)width,
        (void)factor;
}

void dt_cpu_dots_sum_keys(const struct dt_cpu_dots_kernel *kernel, float *sums,
                          const float *weights, const struct dt_cpu_dots *pairs,
                          const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                          int64_t width, uint32_t *scratch)
{
    (void)kernel, (void)sums, (void)weights, (void)pairs, (void)keys, (void)q, (void)width,
        (void)scratch;
}

void dt_cpu_dots_sum_queries(const struct dt_cpu_dots_kernel *kernel, float *sums,
                             const float *weights, const struct dt_cpu_dots *pairs,
                             const struct dt_cpu_keys *keys, const struct dt_cpu_queries *q,
                             int64_t width, uint32_t *scratch)
{
    (void)kernel, (void)sums, (void)weights, (void)pairs, (void)keys, (void)q, (void)width,
        (void)scratch;
}

void dt_cpu_dots_score_row(const struct dt_cpu_dots_kernel *kernel, float *scores,
                           const uint32_t *query, const struct dt_cpu_dots *keys, int64_t count,
                           int64_t width, float factor)
{
    (void)kernel, (void)scores, (void)query, (void)keys, (void)count, (void)width, (void)factor;
}

void dt_cpu_dots_sum_row(const struct dt_cpu_dots_kernel *kernel, float *sums, const float *weights,
                         const struct dt_cpu_dots *values, int64_t count, int64_t width)
{
    (void)kernel, (void)sums, (void)weights, (void)values, (void)count, (void)width;
}

#endif
