/* SPDX-License-Identifier: MIT */
/* Products by oneDNN, divided into tiles. The library chooses its kernel and its order of summation
 * by the shape and the number of threads. Therefore the shape alone determines the tiles, and each
 * is one call by one thread: the bits do not depend on the number of threads. few-rows.c computes
 * products of few rows. */
#include <assert.h>
#include <omp.h>

#include "device/cpu/bf16.h"
#include "device/cpu/cpu.h"
#include "device/cpu/few-rows.h"
#include "device/cpu/onednn.h"

#define ROW_UNIT    16 /* tiles begin at multiples of these */
#define COLUMN_UNIT 64
#define TILE_SIDE   256       /* tiles have about as many rows and columns, or more */
#define TILE_WORK   (1 << 28) /* multiplications that justify another tile */
#define DEPTH       512       /* of the part of K for which 16-bit operands are widened at once */

void dt_cpu_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                  const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                  int64_t ldc)
{
    dt_cpu_need_kernels();
    dt_cpu_check_onednn(dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha,
                                   a, lda, b, ldb, beta, c, ldc));
}

struct product {
    const struct dt_tensor *c, *a, *b;
    const struct dt_matmul *how;
    int64_t k;
    struct dt_cpu_bf16 *bf16; /* multiplies A and B without widening; NULL: sgemm */
};

/* The part of C that one thread computes. */
struct tile {
    int64_t row, rows, column, columns;
};

/* to = from + bias; each may be the same memory as another. */
static void add_bias(float *to, const float *from, const float *bias, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
        to[j] = from[j] + bias[j];
}

/* The activation is applied to aux as stored, after rounding, so that backward can recompute it. */
static void finish_row(const struct product *p, int64_t row, int64_t column, int64_t columns,
                       float *y, float *scratch)
{
    const struct dt_matmul *how = p->how;
    bool keeps = how->activation != DT_ACTIVATION_NONE && !how->derivative;
    float *x = keeps ? dt_cpu_output(how->aux, row, column, scratch) : y;
    if (how->bias)
        add_bias(x, y, dt_cpu_load(how->bias, 0, column, columns, scratch), columns);
    else if (keeps)
        memcpy(x, y, (size_t)columns * sizeof *x);
    if (keeps)
        dt_cpu_store(how->aux, row, column, columns, x);
    if (how->activation == DT_ACTIVATION_NONE)
        return;
    const float *aux = dt_cpu_load(how->aux, row, column, columns, scratch);
    if (how->derivative)
        dt_cpu_activate_backward(y, aux, columns, how->activation);
    else
        dt_cpu_activate(y, aux, columns, how->activation);
}

/* Rows of sums become rows of C. */
static void finish_tile(const struct product *p, const struct tile *t, float *sums, int64_t stride,
                        float *scratch)
{
    bool in_place = p->c->dtype == DT_DTYPE_F32;
    if (in_place && p->how->bias == NULL && p->how->activation == DT_ACTIVATION_NONE)
        return;
    for (int64_t i = 0; i < t->rows; i++) {
        finish_row(p, t->row + i, t->column, t->columns, sums + i * stride, scratch);
        dt_cpu_store(p->c, t->row + i, t->column, t->columns, sums + i * stride);
    }
}

/* Rows and columns of tiles. Each tile packs its operands again, so that few are best: 8, and up to
 * 64 of large products. */
struct grid {
    int64_t rows, columns;
};

static int64_t power_of_two_below(int64_t x, int64_t most)
{
    int64_t power = 1;
    while (2 * power <= x && 2 * power <= most)
        power *= 2;
    return power;
}

static struct grid grid_of(int64_t m, int64_t n, int64_t k)
{
    double worth = (double)m * (double)n * (double)k / TILE_WORK;
    int64_t most = worth < 8 ? 8 : worth > 64 ? 64 : (int64_t)worth;
    int64_t rows = power_of_two_below(m / TILE_SIDE, most);
    return (struct grid){rows, power_of_two_below(n / TILE_SIDE, most / rows)};
}

/* to = a block of x as a dense fp32 matrix. */
static void widen_block(const struct dt_tensor *x, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, float *to)
{
    for (int64_t i = 0; i < rows; i++) {
        float *out = to + i * columns;
        const float *in = dt_cpu_load(x, row + i, column, columns, out);
        if (in != out)
            memcpy(out, in, (size_t)columns * sizeof *out);
    }
}

/* By fp32 copies of the operands, DEPTH of K at a time. */
static void multiply_widened(const struct product *p, const struct tile *t, float *sums,
                             int64_t stride, float *scratch)
{
    bool ta = p->how->transpose_a, tb = p->how->transpose_b;
    float *a = scratch, *b = scratch + t->rows * DEPTH;
    for (int64_t first = 0; first < p->k; first += DEPTH) {
        int64_t depth = p->k - first < DEPTH ? p->k - first : DEPTH;
        if (ta)
            widen_block(p->a, first, depth, t->row, t->rows, a);
        else
            widen_block(p->a, t->row, t->rows, first, depth, a);
        if (tb)
            widen_block(p->b, t->column, t->columns, first, depth, b);
        else
            widen_block(p->b, first, depth, t->column, t->columns, b);
        dt_cpu_sgemm(ta, tb, t->rows, t->columns, depth, 1.0f, a, ta ? t->rows : depth, b,
                     tb ? depth : t->columns, first > 0 || p->how->accumulate ? 1.0f : 0.0f, sums,
                     stride);
    }
}

static void multiply_in_place(const struct product *p, const struct tile *t, float *sums,
                              int64_t stride)
{
    bool ta = p->how->transpose_a, tb = p->how->transpose_b;
    const float *a = dt_cpu_at(p->a, ta ? 0 : t->row, ta ? t->row : 0);
    const float *b = dt_cpu_at(p->b, tb ? t->column : 0, tb ? 0 : t->column);
    dt_cpu_sgemm(ta, tb, t->rows, t->columns, p->k, 1.0f, a, p->a->stride, b, p->b->stride,
                 p->how->accumulate ? 1.0f : 0.0f, sums, stride);
}

static void multiply_bf16(const struct product *p, const struct tile *t, float *sums,
                          int64_t stride)
{
    bool ta = p->how->transpose_a, tb = p->how->transpose_b;
    struct dt_cpu_bf16_operand a = {dt_cpu_at(p->a, ta ? 0 : t->row, ta ? t->row : 0), p->a->stride,
                                    ta};
    struct dt_cpu_bf16_operand b = {dt_cpu_at(p->b, tb ? t->column : 0, tb ? 0 : t->column),
                                    p->b->stride, tb};
    dt_cpu_bf16_multiply(p->bf16, omp_get_thread_num(), t->rows, t->columns, p->k, a, b,
                         p->how->accumulate, sums, stride);
}

/* Whether oneDNN can read x in place: not a row broadcast by stride 0. */
static bool lies_as_matrix(const struct dt_tensor *x)
{
    return x->stride >= x->columns;
}

static void multiply_tile(struct dt_device *dev, const struct product *p, const struct tile *t)
{
    bool in_place = p->c->dtype == DT_DTYPE_F32,
         direct = lies_as_matrix(p->a) && lies_as_matrix(p->b);
    direct = direct && (p->a->dtype == DT_DTYPE_F32 || p->bf16);
    int64_t outside = in_place ? 0 : t->rows * t->columns;
    int64_t operands = direct ? (t->columns + 15) / 16 * 16 : (t->rows + t->columns) * DEPTH;
    float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(outside + operands));
    float *sums = in_place ? dt_cpu_at(p->c, t->row, t->column) : scratch + operands;
    int64_t stride = in_place ? p->c->stride : t->columns;
    if (!in_place && p->how->accumulate)
        widen_block(p->c, t->row, t->rows, t->column, t->columns, sums);
    if (!direct)
        multiply_widened(p, t, sums, stride, scratch);
    else if (p->bf16)
        multiply_bf16(p, t, sums, stride);
    else
        multiply_in_place(p, t, sums, stride);
    finish_tile(p, t, sums, stride, scratch);
}

/* Whether few-rows.c supports this product: fp32 with fp32, or bf16 with bf16. */
static bool has_few_rows(const struct product *p)
{
    bool bf16 = p->a->dtype == DT_DTYPE_BF16,
         wide = p->a->dtype == DT_DTYPE_F32 && p->c->dtype == DT_DTYPE_F32;
    return p->c->rows <= DT_CPU_FEW_ROWS && !p->how->transpose_a && (wide || bf16) &&
           lies_as_matrix(p->a) && lies_as_matrix(p->b);
}

/* Sums are C itself, or in scratch if C has 16 bits. scratch begins with A, widened to fp32. */
static void multiply_few_rows(struct dt_device *dev, const struct product *p)
{
    bool bf16 = p->a->dtype == DT_DTYPE_BF16, in_place = p->c->dtype == DT_DTYPE_F32;
    int64_t rows = p->c->rows, n = p->c->columns;
    float *scratch = bf16 ? dt_cpu_shared_scratch(dev, (size_t)(rows * (n + p->k))) : NULL;
    float *sums = in_place ? dt_cpu_row(p->c, 0) : scratch + rows * p->k;
    int64_t stride = in_place ? p->c->stride : n;
    if (bf16)
        widen_block(p->a, 0, rows, 0, p->k, scratch);
    const struct dt_cpu_few_rows few = {sums,
                                        bf16 ? scratch : p->a->data,
                                        p->b->data,
                                        rows,
                                        p->k,
                                        stride,
                                        bf16 ? p->k : p->a->stride,
                                        p->b->stride,
                                        p->how->transpose_b,
                                        bf16};
#pragma omp parallel num_threads(dev->threads)
    {
        struct tile t = {.row = 0, .rows = rows};
        int64_t end;
        dt_cpu_share(n, COLUMN_UNIT, omp_get_thread_num(), omp_get_num_threads(), &t.column, &end);
        t.columns = end - t.column;
        for (int64_t i = 0; i < t.rows; i++)
            if (!p->how->accumulate)
                memset(sums + i * stride + t.column, 0, (size_t)t.columns * sizeof *sums);
            else if (!in_place)
                widen_block(p->c, i, 1, t.column, t.columns, sums + i * stride + t.column);
        dt_cpu_multiply_few_rows(&few, t.column, end);
        float *own = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)t.columns + 16);
        finish_tile(p, &t, sums + t.column, stride, own);
    }
}

void dt_cpu_matmul(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                   const struct dt_tensor *b, const struct dt_matmul *how)
{
    struct product p = {c,
                        a,
                        b,
                        how,
                        how->transpose_a ? a->rows : a->columns,
                        a->dtype == DT_DTYPE_BF16 ? dt_cpu_bf16(dev) : NULL};
    assert((how->transpose_a ? a->columns : a->rows) == c->rows);
    assert((how->transpose_b ? b->rows : b->columns) == c->columns);
    assert((how->transpose_b ? b->columns : b->rows) == p.k);
    assert(a->dtype == b->dtype && (c->dtype == a->dtype || c->dtype == DT_DTYPE_F32));
    assert(how->activation == DT_ACTIVATION_NONE || how->aux != NULL);
    assert((how->sums_a == NULL || how->transpose_a) && !(how->sums_b && how->transpose_b));
    if (how->sums_a)
        dt_cpu_bias_backward(dev, how->sums_a, a, 1);
    if (how->sums_b)
        dt_cpu_bias_backward(dev, how->sums_b, b, 1);
    if (has_few_rows(&p)) {
        multiply_few_rows(dev, &p);
        return;
    }
    struct grid grid = grid_of(c->rows, c->columns, p.k);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t i = 0; i < grid.rows * grid.columns; i++) {
        struct tile t;
        int64_t row_end, column_end;
        dt_cpu_share(c->rows, ROW_UNIT, i / grid.columns, grid.rows, &t.row, &row_end);
        dt_cpu_share(c->columns, COLUMN_UNIT, i % grid.columns, grid.columns, &t.column,
                     &column_end);
        t.rows = row_end - t.row;
        t.columns = column_end - t.column;
        multiply_tile(dev, &p, &t);
    }
}
