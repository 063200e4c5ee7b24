/* SPDX-License-Identifier: MIT */
/*
 * Rows in the registers of teams of threads: each thread has PARTS groups of a row, thread i the
 * groups i, i + threads, ... A norm reads and writes each row once. A block is (threads, teams),
 * one row per team, in whole warps.
 *
 *     dt_cuda_for_team<TYPE>(columns, [&](auto parts, dim3 block) { ... });
 */
#ifndef DT_DEVICE_CUDA_ROW_TEAM_CUH
#define DT_DEVICE_CUDA_ROW_TEAM_CUH

#include "device/cuda/elements.cuh"
#include "device/cuda/partial-sums.h"

constexpr int dt_cuda_team_threads = 512; /* of a block, at most */
constexpr int dt_cuda_team_parts = 4;

/* The number of teams is the largest power of two that fits; 256 threads if several teams share
 * a warp. */
inline dim3 dt_cuda_team_block(int64_t groups)
{
    int64_t threads = groups <= 8 ? 8 : groups <= 16 ? 16 : (groups + 31) / 32 * 32;
    int64_t teams = 1, most = threads <= 32 ? dt_cuda_team_threads / 2 : dt_cuda_team_threads;
    threads = threads < most ? threads : most;
    while (2 * teams * threads <= most)
        teams *= 2;
    return dim3((unsigned)threads, (unsigned)teams);
}

/* Calls launch with the number of parts as a constant, and the block; a row that is too wide is
 * recorded as the failure of the device. */
template <int TYPE, class Launch>
void dt_cuda_for_team(struct dt_device *dev, int64_t columns, Launch launch)
{
    int64_t groups = (columns + dt_cuda_group<TYPE> - 1) / dt_cuda_group<TYPE>;
    dim3 block = dt_cuda_team_block(groups);
    int64_t parts = (groups + block.x - 1) / block.x;
    if (parts <= 1)
        launch(std::integral_constant<int, 1>(), block);
    else if (parts <= 2)
        launch(std::integral_constant<int, 2>(), block);
    else if (parts <= dt_cuda_team_parts)
        launch(std::integral_constant<int, dt_cuda_team_parts>(), block);
    else
        dt_cuda_note_text(dev, "rows of a norm are wider than the cuda engine supports");
}

/* Grid of blocks with one row per team. */
inline dim3 dt_cuda_team_grid(int64_t rows, dim3 block)
{
    return dim3((unsigned)((rows + block.y - 1) / block.y));
}

/* The row of this thread's team. */
__device__ __forceinline__ int64_t dt_cuda_team_row()
{
    return (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
}

/* The first column of a part. */
template <int TYPE> __device__ __forceinline__ int64_t dt_cuda_part(int part)
{
    return ((int64_t)part * blockDim.x + threadIdx.x) * dt_cuda_group<TYPE>;
}

/* Input of a norm: x + add (fused residual). */
struct dt_cuda_summed {
    struct dt_cuda_view x, add, sum; /* add.data NULL: none */
    bool keep_sum;                   /* whether to write sum */
};

template <class View>
struct dt_cuda_summed dt_cuda_summed_of(const struct dt_tensor *x, const struct dt_tensor *add,
                                        const struct dt_tensor *sum, View view_of)
{
    struct dt_cuda_summed s = {view_of(x), {}, view_of(sum), add || sum->data != x->data};
    if (add)
        s.add = view_of(add);
    return s;
}

/* A group of it: fetched, then unpacked to fp32, rounded like the stored sum. */
template <int TYPE> struct dt_cuda_summands {
    dt_cuda_fetched<TYPE> x, add;
};

template <int TYPE>
__device__ __forceinline__ struct dt_cuda_summands<TYPE>
dt_cuda_fetch_summed(const struct dt_cuda_summed &s, int64_t row, int64_t column) {
    struct dt_cuda_summands<TYPE> of = {
        dt_cuda_fetch<TYPE>(s.x, row, column),
        {
        }
    };
    if (s.add.data)
        of.add = dt_cuda_fetch<TYPE>(s.add, row, column);
    return of;
}

template <int TYPE>
__device__ __forceinline__ void
dt_cuda_unpack_summed(const struct dt_cuda_summed &s, int64_t row, int64_t column,
                      const struct dt_cuda_summands<TYPE> &of, float (&v)[dt_cuda_group<TYPE>])
{
    dt_cuda_unpack(of.x, v);
    if (s.add.data) {
        float add[dt_cuda_group<TYPE>];
        dt_cuda_unpack(of.add, add);
#pragma unroll
        for (int i = 0; i < dt_cuda_group<TYPE>; i++)
            v[i] += add[i];
    }
    if (s.keep_sum) {
        dt_cuda_store<TYPE>(s.sum, row, column, v);
        dt_cuda_as_stored<TYPE>(s.sum, v);
    }
}

/* --- gradients of weights ----------------------------------------------------------------------
 */
/* Rows per block: two blocks per multiprocessor of an H100, and several rows per team. */
inline struct dt_cuda_chunks dt_cuda_team_chunks(int64_t rows, dim3 block)
{
    return dt_cuda_chunks_of(rows, 4 * (int64_t)block.y, 264);
}

/* Stride in floats between the sums of consecutive elements of a group, and of consecutive
 * teams, chosen so that neither writes nor reads have bank conflicts. */
template <int TYPE> __host__ __device__ constexpr unsigned dt_cuda_element_stride(unsigned threads)
{
    return threads + 32 / dt_cuda_group<TYPE>;
}

template <int TYPE> __host__ __device__ constexpr unsigned dt_cuda_team_stride(unsigned threads)
{
    return dt_cuda_group<TYPE> * dt_cuda_element_stride<TYPE>(threads) + threads;
}

template <int TYPE> size_t dt_cuda_team_sums_bytes(dim3 block)
{
    return block.y * dt_cuda_team_stride<TYPE>(block.x) * sizeof(float);
}

/* sums[column] for n columns = the sum over the block's teams, in order; memory:
 * dt_cuda_team_sums_bytes. */
template <int TYPE, int PARTS>
__device__ __forceinline__ void dt_cuda_add_teams(float *sums, int64_t n,
                                                  const float (&own)[PARTS][dt_cuda_group<TYPE>],
                                                  float *memory)
{
    constexpr int group = dt_cuda_group<TYPE>;
    unsigned columns = blockDim.x * group, team_stride = dt_cuda_team_stride<TYPE>(blockDim.x);
    unsigned stride = dt_cuda_element_stride<TYPE>(blockDim.x);
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        __syncthreads(); /* memory may still be read */
#pragma unroll
        for (int i = 0; i < group; i++)
            memory[threadIdx.y * team_stride + i * stride + threadIdx.x] = own[part][i];
        __syncthreads();
        for (unsigned c = threadIdx.y * blockDim.x + threadIdx.x;
             c < columns && part * columns + c < n; c += blockDim.y * blockDim.x) {
            float sum = 0;
            for (unsigned team = 0; team < blockDim.y; team++)
                sum += memory[team * team_stride + c % group * stride + c / group];
            sums[part * columns + c] = sum;
        }
    }
}

#endif
