/* SPDX-License-Identifier: MIT */
/* Products: in the order of gemm.h, or of bf16 matrices by the processor's instructions for bf16,
 * with panels those of bf16-panels.h and otherwise through oneDNN, unless the caller wants the bits
 * of every machine. The library chooses its kernel and its order of summation by the shape and the
 * number of threads. Therefore the shape alone determines its tiles, and each is one call by one
 * thread: the bits do not depend on the number of threads. */
#include <assert.h>
#include <omp.h>

#include "device/cpu/bf16.h"
#include "device/cpu/gemm/bf16-panels.h"
#include "device/cpu/gemm/few-rows.h"

#define ROW_UNIT    16 /* tiles begin at multiples of these */
#define COLUMN_UNIT 64
#define TILE_SIDE   256       /* tiles have about as many rows and columns, or more */
#define TILE_WORK   (1 << 28) /* multiplications that justify another tile */

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

static struct dt_cpu_bf16_operand operand(const struct dt_tensor *x, bool transposed,
                                          int64_t at_row, int64_t at_column)
{
    return (struct dt_cpu_bf16_operand){
        dt_cpu_at(x, transposed ? at_column : at_row, transposed ? at_row : at_column), x->stride,
        transposed};
}

static void multiply_tile(struct dt_device *dev, struct dt_cpu_bf16 *bf16,
                          const struct dt_cpu_product *p, const struct dt_cpu_area *t)
{
    const struct dt_matmul *how = p->how;
    bool in_place = p->c->dtype == DT_DTYPE_F32;
    int64_t row = (t->columns + 15) / 16 * 16, outside = in_place ? 0 : t->rows * t->columns;
    float *scratch = dt_cpu_scratch(dev, omp_get_thread_num(), (size_t)(row + outside));
    float *sums = in_place ? dt_cpu_at(p->c, t->row, t->column) : scratch + row;
    int64_t stride = in_place ? p->c->stride : t->columns;
    if (!in_place && how->accumulate)
        dt_cpu_widen_block(p->c, t->row, t->rows, t->column, t->columns, sums);
    for (int i = 0; i <= how->more_count; i++) {
        struct dt_factors f = dt_cpu_pair(p, i);
        dt_cpu_bf16_multiply(bf16, omp_get_thread_num(), t->rows, t->columns, dt_cpu_depth(p, i),
                             operand(f.a, how->transpose_a, t->row, 0),
                             operand(f.b, how->transpose_b, 0, t->column), how->accumulate || i > 0,
                             sums, stride);
    }
    dt_cpu_finish(p, t, sums, stride, scratch);
}

static void multiply_bf16(struct dt_device *dev, struct dt_cpu_bf16 *bf16,
                          const struct dt_cpu_product *p)
{
    struct grid grid = grid_of(p->c->rows, p->c->columns, dt_cpu_depth(p, 0));
#pragma omp parallel num_threads(dev->threads)
    {
        omp_set_num_threads(1); /* in a team of one the library would start others, and split K */
#pragma omp for schedule(static)
        for (int64_t i = 0; i < grid.rows * grid.columns; i++) {
            struct dt_cpu_area t;
            int64_t row_end, column_end;
            dt_cpu_share(p->c->rows, ROW_UNIT, i / grid.columns, grid.rows, &t.row, &row_end);
            dt_cpu_share(p->c->columns, COLUMN_UNIT, i % grid.columns, grid.columns, &t.column,
                         &column_end);
            t.rows = row_end - t.row;
            t.columns = column_end - t.column;
            multiply_tile(dev, bf16, p, &t);
        }
    }
}

/* Whether oneDNN can read x in place: not a row broadcast by stride 0, and not panels. */
static bool lies_as_matrix(const struct dt_tensor *x)
{
    return x->stride >= x->columns && !x->panels && x->rows > 0 && x->columns > 0;
}

/* So that decoding has the same bits for any number of sequences. */
#define DECODING_ROWS 16

/* oneDNN's bf16 products, where the caller permits them and the machine has them; or NULL. */
static struct dt_cpu_bf16 *fast_product(struct dt_device *dev, const struct dt_cpu_product *p)
{
    bool lie = p->first.a->dtype == DT_DTYPE_BF16 && !dev->canonical && p->c->rows > DECODING_ROWS;
    for (int i = 0; lie && i <= p->how->more_count; i++)
        lie = lies_as_matrix(dt_cpu_pair(p, i).a) && lies_as_matrix(dt_cpu_pair(p, i).b);
    return lie ? dt_cpu_bf16(dev) : NULL;
}

static void multiply_in_order(struct dt_device *dev, struct dt_cpu_product *p)
{
    bool few = dt_cpu_has_few_rows(p);
    size_t list = (size_t)dt_cpu_count_chunks(p) * sizeof *p->chunks / sizeof(float);
    float *memory = dt_cpu_shared_scratch(dev, list + (few ? dt_cpu_few_rows_memory(p) : 0));
    p->chunks = (struct dt_cpu_chunk *)memory;
    p->group = few ? 1 : DT_CPU_GEMM_GROUP;
    dt_cpu_order(p);
    if (few)
        dt_cpu_few_rows(dev, p, memory + list);
    else
        dt_cpu_gemm(dev, p);
}

static void check(const struct dt_cpu_product *p, const struct dt_tensor *a,
                  const struct dt_tensor *b)
{
    const struct dt_matmul *how = p->how;
    const struct dt_tensor *c = p->c;
    assert((how->transpose_a ? a->columns : a->rows) == c->rows);
    assert((how->transpose_b ? b->rows : b->columns) == c->columns);
    assert((how->transpose_a ? a->rows : a->columns) == (how->transpose_b ? b->columns : b->rows));
    assert(a->dtype == b->dtype && a->dtype == p->first.a->dtype);
    assert(c->dtype == a->dtype || c->dtype == DT_DTYPE_F32);
    assert(!a->panels && !c->panels && (!b->panels || how->transpose_b));
    assert(b->panels == p->first.b->panels);
    (void)how, (void)c, (void)a, (void)b;
}

void dt_cpu_matmul(struct dt_device *dev, struct dt_tensor *c, const struct dt_tensor *a,
                   const struct dt_tensor *b, const struct dt_matmul *how)
{
    struct dt_cpu_product p = {.c = c, .how = how, .first = {a, b}};
    for (int i = 0; i <= how->more_count; i++)
        check(&p, dt_cpu_pair(&p, i).a, dt_cpu_pair(&p, i).b);
    assert(how->activation == DT_ACTIVATION_NONE || how->aux != NULL);
    assert((how->sums_a == NULL || how->transpose_a) && !(how->sums_b && how->transpose_b));
    int parts = how->parts > 1 ? how->parts : 1;
    if (how->sums_a)
        dt_cpu_bias_backward(dev, how->sums_a, a, parts);
    if (how->sums_b)
        dt_cpu_bias_backward(dev, how->sums_b, b, parts);
    struct dt_cpu_bf16 *bf16 = fast_product(dev, &p);
    if (bf16)
        multiply_bf16(dev, bf16, &p);
    else if (!dev->canonical && dt_cpu_bf16_panels_support(&p) && dt_cpu_bf16_kernel(dev))
        dt_cpu_bf16_panels(dev, &p, dt_cpu_bf16_kernel(dev));
    else if (c->rows > 0 && c->columns > 0)
        multiply_in_order(dev, &p);
}
