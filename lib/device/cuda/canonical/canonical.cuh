/* SPDX-License-Identifier: MIT */
/*
 * Parts of the canonical ops: the trees, lanes and sums over rows of dt-arithmetic(7), and kernels
 * that compute one element per thread.
 *
 * These ops define what faster kernels are compared with. A thread adds in the defined order, and
 * nothing is tiled. The files are compiled without contraction: a fused multiply-add is DT_FMA.
 */
#ifndef DT_DEVICE_CUDA_CANONICAL_CUH
#define DT_DEVICE_CUDA_CANONICAL_CUH

#include <assert.h>

#include "device/cuda/canonical/canonical.h"
#include "device/cuda/elements.cuh"

#define DT_FMA(a, b, c) __fmaf_rn(a, b, c)
#define DT_FUNCTION     static __device__ __forceinline__
#include "device/functions.h"

/* --- one element per thread ------------------------------------------------------------------- */
template <class Op> static __global__ void dt_cuda_each(Op op, int64_t rows, int64_t columns)
{
    int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < rows * columns)
        op(at / columns, at % columns);
}

/* Calls op(row, column) on the device. */
template <class Op>
static void dt_cuda_for_each(struct dt_device *dev, int64_t rows, int64_t columns, Op op)
{
    constexpr int threads = 128;
    dt_cuda_launch(dt_cuda_of(dev)->stream,
                   dim3((unsigned)((rows * columns + threads - 1) / threads)), dim3(threads), 0,
                   dt_cuda_each<Op>, op, rows, columns);
}

/* --- trees ------------------------------------------------------------------------------------ */
/* A tree that receives its leaves one by one: as a binary counter, level l holds a node of 2^l
 * leaves where bit l of count is set; absent nodes have no bit in present. */
struct dt_cuda_tree {
    float node[32];
    uint32_t count, present;
};

__device__ __forceinline__ void dt_cuda_push(struct dt_cuda_tree *t, float x, bool present = true)
{
    int level = 0;
    for (; t->count >> level & 1; level++)
        if (t->present >> level & 1) {
            x = present ? t->node[level] + x : t->node[level];
            present = true;
            t->present &= ~(1u << level);
        }
    t->node[level] = x;
    t->present |= (uint32_t)present << level;
    t->count++;
}

/* The sum of all leaves; +0 if all are absent. */
__device__ __forceinline__ float dt_cuda_tree_sum(const struct dt_cuda_tree &t)
{
    float sum = 0;
    bool present = false;
    for (int level = 0; level < 32; level++)
        if (t.present >> level & 1) {
            sum = present ? t.node[level] + sum : t.node[level];
            present = true;
        }
    return sum;
}

/* --- sums over rows --------------------------------------------------------------------------- */
constexpr int64_t dt_cuda_block_rows = 64;

__device__ __forceinline__ int64_t dt_cuda_part_begin(int64_t n, int parts, int part)
{
    return n * part / parts;
}

/* add(row, sum) returns sum with the term of a row. */
template <class Add>
__device__ __forceinline__ float dt_cuda_sum_over_rows(int64_t rows, int parts, Add add)
{
    struct dt_cuda_tree of_parts = {};
    for (int part = 0; part < parts; part++) {
        struct dt_cuda_tree of_blocks = {};
        int64_t end = dt_cuda_part_begin(rows, parts, part + 1);
        for (int64_t row = dt_cuda_part_begin(rows, parts, part); row < end;) {
            int64_t block_end = row + dt_cuda_block_rows < end ? row + dt_cuda_block_rows : end;
            float sum = 0;
            for (; row < block_end; row++)
                sum = add(row, sum);
            dt_cuda_push(&of_blocks, sum);
        }
        dt_cuda_push(&of_parts, dt_cuda_tree_sum(of_blocks));
    }
    return dt_cuda_tree_sum(of_parts);
}

/* --- 16 lanes --------------------------------------------------------------------------------- */
/* A row, or a part of one, has 16 adjacent threads, half of a warp. A thread accesses the elements
 * of its lane alone, so that rows may be changed in place. */
constexpr int dt_cuda_lanes = 16;

__device__ __forceinline__ int dt_cuda_lane()
{
    return (int)(threadIdx.x % dt_cuda_lanes);
}

/* Folds the values of the lanes; all of them get the result. Lanes i and i + half compute the same
 * sum, with its terms exchanged. */
template <class T, class Fold> __device__ __forceinline__ T dt_cuda_fold(T x, Fold fold)
{
    unsigned half_warp = 0xffffu << (threadIdx.x & 16);
    for (int half = dt_cuda_lanes / 2; half > 0; half /= 2)
        x = fold(x, __shfl_xor_sync(half_warp, x, half, dt_cuda_lanes));
    return x;
}

/* The sum over j below n; add(j, sum) returns sum with the term of j. */
template <class Add> __device__ __forceinline__ float dt_cuda_lane_sum(int64_t n, Add add)
{
    float sum = 0;
    for (int64_t j = dt_cuda_lane(); j < n; j += dt_cuda_lanes)
        sum = add(j, sum);
    return dt_cuda_fold(sum, [](float a, float b) { return a + b; });
}

/* Rows of 16 threads: blocks of 8 rows. */
constexpr int dt_cuda_rows_of_block = 8;

inline dim3 dt_cuda_row_grid(int64_t rows)
{
    return dim3((unsigned)((rows + dt_cuda_rows_of_block - 1) / dt_cuda_rows_of_block));
}

inline dim3 dt_cuda_row_block()
{
    return dim3(dt_cuda_rows_of_block * dt_cuda_lanes);
}

__device__ __forceinline__ int64_t dt_cuda_row_of_lanes()
{
    return (int64_t)blockIdx.x * dt_cuda_rows_of_block + threadIdx.x / dt_cuda_lanes;
}

/* --- activations ------------------------------------------------------------------------------ */
__device__ __forceinline__ float dt_cuda_activate(int activation, float x)
{
#define FORWARD(NAME, name, fused, value, derivative)                                              \
    case DT_ACTIVATION_##NAME:                                                                     \
        return value;
    switch (activation) {
        DT_ACTIVATION_LIST(FORWARD)
    }
#undef FORWARD
    return x;
}

__device__ __forceinline__ float dt_cuda_slope(int activation, float x)
{
#define BACKWARD(NAME, name, fused, value, derivative)                                             \
    case DT_ACTIVATION_##NAME:                                                                     \
        return derivative;
    switch (activation) {
        DT_ACTIVATION_LIST(BACKWARD)
    }
#undef BACKWARD
    return x;
}

#endif
