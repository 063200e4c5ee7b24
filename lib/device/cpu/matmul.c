/* SPDX-License-Identifier: MIT */
/* Products through oneDNN, cut into tiles. Which kernel and which order of
 * summation the library takes depends on a product's shape and on its threads;
 * so the tiles follow from the shape alone, and each is one call by one thread.
 * The bits then do not depend on the number of threads. */
#include <assert.h>
#include <dnnl.h>

#include "device/cpu/cpu.h"

#define ROW_UNIT    16 /* what tiles begin at a multiple of */
#define COLUMN_UNIT 64
#define TILE_SIDE   256       /* tiles have about as many rows and columns, or more */
#define TILE_WORK   (1 << 28) /* multiplications that make a tile of their own worth it */

void dt_cpu_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                  const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                  int64_t ldc)
{
    dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                                      alpha, a, lda, b, ldb, beta, c, ldc);
    assert(status == dnnl_success);
    (void)status;
}

static void add_bias(float *y, const float *bias, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        y[j] += bias[j];
}

static void finish_rows(const struct dt_tensor *c, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, const struct dt_matmul *how)
{
    if (how->bias == NULL && how->activation == DT_ACT_NONE)
        return;
    for (int64_t i = row; i < row + rows; i++) {
        float *y = dt_cpu_row(c, i) + column;
        float *aux = how->aux ? dt_cpu_row(how->aux, i) + column : NULL;
        if (how->bias)
            add_bias(y, (const float *)how->bias->data + column, columns);
        if (how->activation != DT_ACT_NONE && how->derivative)
            dt_cpu_activate_backward(y, aux, columns, how->activation);
        else if (how->activation != DT_ACT_NONE)
            dt_cpu_activate(y, aux, columns, how->activation);
    }
}

/* How a product is cut: a number of rows of tiles, and of columns. Each tile
 * packs its operands again, so there are few; 8 serve as many threads, and
 * large products have up to 64. */
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

static void multiply_tile(const struct dt_tensor *c, const struct dt_tensor *a,
                          const struct dt_tensor *b, const struct dt_matmul *how, int64_t k,
                          int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const float *from_a = (const float *)a->data + (how->transpose_a ? row : row * a->stride);
    const float *from_b = (const float *)b->data + (how->transpose_b ? column * b->stride : column);
    dt_cpu_sgemm(how->transpose_a, how->transpose_b, rows, columns, k, 1.0f, from_a, a->stride,
                 from_b, b->stride, how->accumulate ? 1.0f : 0.0f, dt_cpu_row(c, row) + column,
                 c->stride);
    finish_rows(c, row, rows, column, columns, how);
}

void dt_cpu_matmul(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                   const struct dt_tensor *b, const struct dt_matmul *how)
{
    int64_t k = how->transpose_a ? a->rows : a->columns;
    assert((how->transpose_a ? a->columns : a->rows) == c->rows);
    assert((how->transpose_b ? b->rows : b->columns) == c->columns);
    assert((how->transpose_b ? b->columns : b->rows) == k);
    assert(how->activation == DT_ACT_NONE || how->aux != NULL);
    struct grid grid = grid_of(c->rows, c->columns, k);
#pragma omp parallel for num_threads(dev->threads) schedule(static)
    for (int64_t tile = 0; tile < grid.rows * grid.columns; tile++) {
        int64_t row, row_end, column, column_end;
        dt_cpu_share(c->rows, ROW_UNIT, tile / grid.columns, grid.rows, &row, &row_end);
        dt_cpu_share(c->columns, COLUMN_UNIT, tile % grid.columns, grid.columns, &column,
                     &column_end);
        multiply_tile(c, a, b, how, k, row, row_end - row, column, column_end - column);
    }
}
