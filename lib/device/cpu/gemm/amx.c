/* SPDX-License-Identifier: MIT */
/* A panel's pairs are the layout of the right operand of tdpbf16ps. Tiles of C stay in registers
 * for all of K: 2 x 2 of them, or for few rows 1 x 4, which read a panel sequentially. */
#include "device/cpu/gemm/bf16-panels.h"

#if DT_CPU_BF16_PANELS
#include <sys/syscall.h>
#include <unistd.h>

#define SIDE  16 /* rows of a tile, and its columns of C */
#define DEPTH DT_CPU_BF16_DEPTH
#define AHEAD 16384 /* bytes of a panel to prefetch */
#define AMX   __attribute__((target("amx-tile,amx-bf16")))

#define ARCH_REQ_XCOMP_PERM 0x1023 /* asm/prctl.h */
#define XFEATURE_XTILEDATA  18

static bool is_supported(void)
{
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* The operand of ldtilecfg. */
struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static void prefetch(const char *from)
{
    for (int i = 0; i < DEPTH * DT_PANEL * 2; i += 64)
        __builtin_prefetch(from + i + AHEAD, 0, 2);
}

/* sums (at most SIDE rows of DT_PANEL) = A times a panel. */
AMX static void multiply_few(const struct dt_cpu_bf16_left *a, int64_t row,
                             const struct dt_cpu_panel *b, uint32_t *copy, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < a->steps; i++) {
        struct dt_cpu_bf16_right r = dt_cpu_bf16_right(b, i, copy);
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
AMX static void multiply_half(const struct dt_cpu_bf16_left *a, int64_t row,
                              const struct dt_cpu_panel *b, int half, uint32_t *copy, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t i = 0; i < a->steps; i++) {
        struct dt_cpu_bf16_right r = dt_cpu_bf16_right(b, i, copy);
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

static void multiply(const struct dt_cpu_bf16_left *a, int64_t row, int64_t rows,
                     const struct dt_cpu_panel *b, uint32_t *copy, float *sums)
{
    if (rows <= SIDE)
        multiply_few(a, row, b, copy, sums);
    for (int half = 0; rows > SIDE && half < 2; half++)
        multiply_half(a, row, b, half, copy, sums);
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

const struct dt_cpu_bf16_kernel dt_cpu_amx_kernel = {
    .rows = 2 * SIDE,
    .is_supported = is_supported,
    .begin = open_tiles,
    .end = close_tiles,
    .multiply = multiply,
};

#endif
