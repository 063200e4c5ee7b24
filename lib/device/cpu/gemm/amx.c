/* SPDX-License-Identifier: MIT */
/* A panel's pairs are the layout of the right operand of tdpbf16ps. Tiles of C stay in registers
 * for all of K: 2 x 2 of them, or for few rows 1 x 4, which read a panel sequentially. */
#include "device/cpu/gemm/amx.h"

#if defined(__AVX512F__) && defined(__linux__)
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/cpu/panels.h"

#define SIDE  16    /* rows of a tile, and its columns of C */
#define DEPTH 32    /* terms of an instruction */
#define AHEAD 16384 /* bytes of a panel to prefetch */
#define AMX   __attribute__((target("amx-tile,amx-bf16")))

#define ARCH_REQ_XCOMP_PERM 0x1023 /* asm/prctl.h */
#define XFEATURE_XTILEDATA  18

bool dt_cpu_amx_open(void)
{
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

bool dt_cpu_amx_supports(const struct dt_cpu_product *p)
{
    return p->first.b->panels && p->first.b->dtype == DT_DTYPE_BF16 && !p->how->transpose_a &&
           !p->how->accumulate && p->how->more_count == 0 && p->c->rows > 0 && p->c->columns > 0;
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* The operand of ldtilecfg. */
struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* A, with zeros after its columns; rows are stride elements apart, so that they are in different
 * sets of the caches. */
struct packed {
    const uint16_t *data;
    int64_t rows, stride, steps; /* of DEPTH columns */
};

/* 4 tiles of B: DEPTH / 2 pairs of 64 columns, step bytes apart. */
struct right {
    const char *data;
    int64_t step;
};

/* Terms number of .. of a panel: in place, or copied with zeros. */
static struct right find_right(const struct dt_cpu_panel *b, int64_t number, uint32_t *copy)
{
    int64_t k = number * DEPTH;
    if (b->height == DT_PANEL && k + DEPTH <= b->length)
        return (struct right){(const char *)b->data + k * DT_PANEL * 2, 4 * DT_PANEL};
    memset(copy, 0, DEPTH / 2 * DT_PANEL * sizeof *copy);
    for (int64_t i = 0; i < DEPTH && k + i < b->length; i++)
        for (int64_t j = 0; j < b->height; j++) {
            float wide = dt_cpu_panel_element(b, k + i, j);
            uint32_t word;
            memcpy(&word, &wide, sizeof word);
            copy[i / 2 * DT_PANEL + j] |= i % 2 ? word : word >> 16;
        }
    return (struct right){(const char *)copy, 4 * DT_PANEL};
}

static void prefetch(const char *from)
{
    for (int i = 0; i < DEPTH * DT_PANEL * 2; i += 64)
        __builtin_prefetch(from + i + AHEAD, 0, 2);
}

/* sums (at most SIDE rows of DT_PANEL) = A times a panel. */
AMX static void multiply_few(const struct packed *a, int64_t row, const struct dt_cpu_panel *b,
                             uint32_t *copy, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < a->steps; i++) {
        struct right r = find_right(b, i, copy);
        _tile_loadd(4, a->data + row * a->stride + i * DEPTH, a->stride * 2);
        prefetch(r.data);
        _tile_loadd(5, r.data, r.step);
        _tile_loadd(6, r.data + 64, r.step);
        _tile_dpbf16ps(0, 4, 5);
        _tile_loadd(7, r.data + 128, r.step);
        _tile_dpbf16ps(1, 4, 6);
        _tile_loadd(5, r.data + 192, r.step);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_stored(0, sums, DT_PANEL * 4);
    _tile_stored(1, sums + SIDE, DT_PANEL * 4);
    _tile_stored(2, sums + 2 * SIDE, DT_PANEL * 4);
    _tile_stored(3, sums + 3 * SIDE, DT_PANEL * 4);
}

/* The same of 2 SIDE rows and half of a panel, the second one if half is 1. */
AMX static void multiply_half(const struct packed *a, int64_t row, const struct dt_cpu_panel *b,
                              int half, uint32_t *copy, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < a->steps; i++) {
        struct right r = find_right(b, i, copy);
        const uint16_t *left = a->data + row * a->stride + i * DEPTH;
        _tile_loadd(4, left, a->stride * 2);
        _tile_loadd(6, r.data + half * 128, r.step);
        _tile_loadd(7, r.data + half * 128 + 64, r.step);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, left + SIDE * a->stride, a->stride * 2);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    sums += half * 2 * SIDE;
    _tile_stored(0, sums, DT_PANEL * 4);
    _tile_stored(1, sums + SIDE, DT_PANEL * 4);
    _tile_stored(2, sums + SIDE * DT_PANEL, DT_PANEL * 4);
    _tile_stored(3, sums + SIDE * DT_PANEL + SIDE, DT_PANEL * 4);
}

/* Columns of C that one panel gives. */
static void multiply_panel(const struct dt_cpu_product *p, const struct packed *a, int64_t column,
                           float *scratch)
{
    struct dt_cpu_panel b = dt_cpu_panel_of(p->first.b, column);
    float *sums = scratch + DT_PANEL;
    uint32_t *copy = (uint32_t *)(sums + 2 * SIDE * DT_PANEL);
    for (int64_t row = 0, rows; row < a->rows; row += rows) {
        rows = a->rows - row > SIDE ? 2 * SIDE : SIDE;
        if (rows == SIDE)
            multiply_few(a, row, &b, copy, sums);
        for (int half = 0; rows > SIDE && half < 2; half++)
            multiply_half(a, row, &b, half, copy, sums);
        struct dt_cpu_area area = {row, a->rows - row < rows ? a->rows - row : rows, column,
                                   b.height};
        dt_cpu_finish(p, &area, sums, DT_PANEL, scratch);
    }
}

static struct packed pack(struct dt_device *dev, const struct dt_tensor *a)
{
    int64_t depth = round_up(a->columns, DEPTH), stride = depth + DEPTH;
    int64_t rows = a->rows <= SIDE ? a->rows : round_up(a->rows, SIDE);
    uint16_t *to = (uint16_t *)dt_cpu_shared_scratch(dev, (size_t)(rows * stride / 2));
    for (int64_t i = 0; i < rows; i++) {
        int64_t some = i < a->rows ? a->columns : 0;
        memcpy(to + i * stride, dt_cpu_at(a, some > 0 ? i : 0, 0), (size_t)some * sizeof *to);
        memset(to + i * stride + some, 0, (size_t)(depth - some) * sizeof *to);
    }
    return (struct packed){to, a->rows, stride, depth / DEPTH};
}

AMX static void open_tiles(int64_t rows)
{
    struct tile_shapes shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        shapes.row_bytes[i] = 64;
        shapes.rows[i] = (uint8_t)(i < 5 && rows < SIDE ? rows : SIDE);
    }
    __asm__ volatile("" : : "r"(&shapes) : "memory"); /* GCC 12: ldtilecfg reads all of it */
    _tile_loadconfig(&shapes);
}

AMX static void close_tiles(void)
{
    _tile_release();
}

void dt_cpu_amx_multiply(struct dt_device *dev, const struct dt_cpu_product *p)
{
    struct packed a = pack(dev, p->first.a);
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t from, to;
        float *scratch =
            dt_cpu_scratch(dev, omp_get_thread_num(), DT_PANEL * (1 + 2 * SIDE + DEPTH / 2));
        dt_cpu_share(p->c->columns, DT_PANEL, omp_get_thread_num(), omp_get_num_threads(), &from,
                     &to);
        open_tiles(a.rows);
        for (int64_t column = from; column < to; column += DT_PANEL)
            multiply_panel(p, &a, column, scratch);
        close_tiles();
    }
}

#else

bool dt_cpu_amx_open(void)
{
    return false;
}

bool dt_cpu_amx_supports(const struct dt_cpu_product *p)
{
    (void)p;
    return false;
}

void dt_cpu_amx_multiply(struct dt_device *dev, const struct dt_cpu_product *p)
{
    (void)dev, (void)p;
}

#endif
