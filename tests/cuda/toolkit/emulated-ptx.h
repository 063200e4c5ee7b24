/* SPDX-License-Identifier: MIT */
/* lib/device/cuda/ptx.cuh on the processor: each instruction as that header words it. */
#ifndef DT_TEST_CUDA_EMULATED_PTX_H
#define DT_TEST_CUDA_EMULATED_PTX_H

#include <cmath>
#include <cstdint>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../emulator.h"
#include "device/device.h"

namespace emulator
{
inline float element_value(enum dt_dtype type, uint32_t pair, int upper)
{
    uint16_t bits = (uint16_t)(upper ? pair >> 16 : pair);
    return type == DT_DTYPE_BF16 ? __bfloat162float(__ushort_as_bfloat16(bits))
                                 : __half2float(__ushort_as_half(bits));
}

struct matrix_row {
    uint16_t element[8];
};

struct four_registers {
    uint32_t value[4];
};

struct row_at {
    matrix_row row;
    uintptr_t address;
};

/* Rows of one matrix in the same banks would be read one after the other: what swizzling is
 * there to prevent. */
inline void check_banks(const row_at *rows)
{
    unsigned used = 0;
    for (int i = 0; i < 8; i++)
        used |= 1u << (rows[i].address / 16 % 8);
    if (used != 0xff)
        stop("ldmatrix reads rows that lie in the same banks");
}

inline void load_matrices(uint32_t (&to)[4], const void *row, bool transposed)
{
    row_at mine = {{}, reinterpret_cast<uintptr_t>(row)};
    if (mine.address % 16)
        stop("ldmatrix reads a row at an address that is not a multiple of 16");
    if (on_access)
        on_access(row, sizeof mine.row, false);
    visible_copy(&mine.row, row, sizeof mine.row);
    four_registers got = collective<row_at, four_registers>(
        ~0u, transposed ? "ldmatrix.trans" : "ldmatrix", mine,
        [transposed](const row_at *in, four_registers *out, unsigned) {
            for (int m = 0; m < 4; m++) {
                const row_at *rows = in + 8 * m;
                check_banks(rows);
                for (int lane = 0; lane < 32; lane++) {
                    int group = lane / 4, column = lane % 4 * 2;
                    uint16_t lower = transposed ? rows[column].row.element[group]
                                                : rows[group].row.element[column];
                    uint16_t upper = transposed ? rows[column + 1].row.element[group]
                                                : rows[group].row.element[column + 1];
                    out[lane].value[m] = lower | (uint32_t)upper << 16;
                }
            }
        });
    memcpy(to, got.value, sizeof got.value);
}

struct product_operands {
    uint32_t a[4], b[2];
    float sums[4];
};

struct product_sums {
    float value[4];
};

inline void multiply_add(enum dt_dtype type, float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                         uint32_t b1)
{
    product_operands mine = {{a[0], a[1], a[2], a[3]}, {b0, b1}, {}};
    memcpy(mine.sums, sums, sizeof sums);
    product_sums got = collective<product_operands, product_sums>(
        ~0u, type == DT_DTYPE_BF16 ? "mma.bf16" : "mma.f16", mine,
        [type](const product_operands *in, product_sums *out, unsigned) {
            float left[16][16], right[16][8], sum[16][8] = {};
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < 2; i++) {
                    int group = lane / 4, column = lane % 4 * 2 + i;
                    for (int half = 0; half < 2; half++) {
                        left[group][column + 8 * half] =
                            element_value(type, in[lane].a[2 * half], i);
                        left[group + 8][column + 8 * half] =
                            element_value(type, in[lane].a[2 * half + 1], i);
                        right[column + 8 * half][group] = element_value(type, in[lane].b[half], i);
                    }
                }
            for (int row = 0; row < 16; row++)
                for (int k = 0; k < 16; k++)
                    for (int column = 0; column < 8; column++) /* at once */
                        sum[row][column] += left[row][k] * right[k][column];
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < 4; i++)
                    out[lane].value[i] =
                        in[lane].sums[i] + sum[lane / 4 + (i & 2) * 4][lane % 4 * 2 + (i & 1)];
        });
    memcpy(sums, got.value, sizeof got.value);
}
} // namespace emulator

static inline void dt_load_matrices(uint32_t (&to)[4], const void *row)
{
    emulator::load_matrices(to, row, false);
}

static inline void dt_load_transposed(uint32_t (&to)[4], const void *row)
{
    emulator::load_matrices(to, row, true);
}

template <enum dt_dtype TYPE>
static inline void dt_multiply_add(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0,
                                   uint32_t b1)
{
    emulator::multiply_add(TYPE, sums, a, b0, b1);
}

static inline float dt_exp2(float x)
{
    return emulator::approximate(std::exp2(x), 2);
}

template <class T> static inline T dt_again(T x)
{
    return x;
}

static inline void dt_barrier_threads(int barrier, int count)
{
    emulator::barrier(__FILE__, __LINE__, (unsigned)barrier, (unsigned)count);
}

static inline void dt_copy_async(void *shared, const void *source, int filled)
{
    emulator::copy_async(shared, source, 16, (unsigned)filled);
}

static inline void dt_commit_copies(void)
{
    emulator::commit_async();
}

template <int LEFT> static inline void dt_wait_copies(void)
{
    emulator::wait_async(LEFT);
}

#endif
