/* SPDX-License-Identifier: MIT */
/* Attention's products by AMX. Words with pairs of elements are the layout of the right operand of
 * tdpbf16ps. Tiles of C are computed 2 x 2 at a time, and at the edges one by one, with the tile
 * shapes of gemm/amx.c. */
#include "device/cpu/attention/attention-bf16.h"
#include "device/cpu/gemm/bf16-panels.h"

#if DT_CPU_BF16_PANELS

#define SIDE  16                      /* rows of a tile, and its columns of C */
#define DEPTH (DT_CPU_BF16_DEPTH / 2) /* pairs */
#define AMX   __attribute__((target("amx-tile,amx-bf16")))

static void scale(const struct dt_cpu_dots_product *p, float *c, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += DT_CPU_VECTOR) {
            float *to = c + i * p->ldc + j;
            dt_cpu_vector_store(to, dt_cpu_vector_load(to) * p->factor);
        }
}

/* 2 SIDE rows and columns. */
AMX static void multiply_square(const struct dt_cpu_dots_product *p, int64_t column)
{
    float *c = p->c + column, *below = c + SIDE * p->ldc;
    size_t step = (size_t)p->ldc * sizeof *c;
    if (p->add) {
        _tile_loadd(0, c, step);
        _tile_loadd(1, c + SIDE, step);
        _tile_loadd(2, below, step);
        _tile_loadd(3, below + SIDE, step);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < p->depth; k += DEPTH) {
        const uint32_t *a = p->a + k, *b = p->b + k * p->ldb + column;
        _tile_loadd(4, a, (size_t)p->row_step * sizeof *a);
        _tile_loadd(6, b, (size_t)p->ldb * sizeof *b);
        _tile_loadd(7, b + SIDE, (size_t)p->ldb * sizeof *b);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a + SIDE * p->row_step, (size_t)p->row_step * sizeof *a);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, step);
    _tile_stored(1, c + SIDE, step);
    _tile_stored(2, below, step);
    _tile_stored(3, below + SIDE, step);
    if (!p->add)
        scale(p, c, 2 * SIDE, 2 * SIDE);
}

AMX static void multiply_one(const struct dt_cpu_dots_product *p, int64_t row, int64_t rows,
                             int64_t column)
{
    float *c = p->c + row * p->ldc + column;
    if (p->add)
        _tile_loadd(0, c, (size_t)p->ldc * sizeof *c);
    else
        _tile_zero(0);
    for (int64_t k = 0; k < p->depth; k += DEPTH) {
        const uint32_t *a = p->a + row * p->row_step + k, *b = p->b + k * p->ldb + column;
        _tile_loadd(4, a, (size_t)p->row_step * sizeof *a);
        _tile_loadd(6, b, (size_t)p->ldb * sizeof *b);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, c, (size_t)p->ldc * sizeof *c);
    if (!p->add)
        scale(p, c, rows, SIDE);
}

static void multiply(const struct dt_cpu_dots_product *p, int64_t rows, int64_t columns)
{
    int64_t column = 0;
    for (; rows > SIDE && column + 2 * SIDE <= columns; column += 2 * SIDE)
        multiply_square(p, column);
    for (; column < columns; column += SIDE)
        for (int64_t row = 0; row < rows; row += SIDE)
            multiply_one(p, row, rows == 1 ? 1 : SIDE, column);
}

static void begin(int64_t rows)
{
    dt_cpu_amx_kernel.begin(rows);
}

static void end(void)
{
    dt_cpu_amx_kernel.end();
}

const struct dt_cpu_dots_kernel dt_cpu_dots_amx = {
    .rows = 2 * SIDE,
    .depth = DEPTH,
    .begin = begin,
    .end = end,
    .multiply = multiply,
};

#endif
