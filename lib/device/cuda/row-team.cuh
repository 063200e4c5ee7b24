/* SPDX-License-Identifier: MIT */
/*
 * Rows that a block holds in registers: each thread has PARTS groups of a row, thread
 * i the groups i, i + threads, ... A norm reads and writes each row once.
 *
 *     dt_cuda_for_team<TYPE>(columns, [&](auto parts, dim3 block) { ... });
 */
#ifndef DT_DEVICE_CUDA_ROW_TEAM_CUH
#define DT_DEVICE_CUDA_ROW_TEAM_CUH

#include "device/cuda/elements.cuh"

constexpr int dt_cuda_team_threads = 512; /* at most */
constexpr int dt_cuda_team_parts = 4;

/* Calls launch with the number of parts as a constant, and the block; a row that is too
 * wide is noted as the device's failure. */
template <int TYPE, class Launch>
void dt_cuda_for_team(struct dt_device *dev, int64_t columns, Launch launch)
{
    int64_t groups = (columns + dt_cuda_group<TYPE> - 1) / dt_cuda_group<TYPE>;
    int64_t threads =
        groups < dt_cuda_team_threads ? (groups + 31) / 32 * 32 : dt_cuda_team_threads;
    int64_t parts = (groups + threads - 1) / threads;
    dim3 block((unsigned)threads);
    if (parts <= 1)
        launch(std::integral_constant<int, 1>(), block);
    else if (parts <= 2)
        launch(std::integral_constant<int, 2>(), block);
    else if (parts <= dt_cuda_team_parts)
        launch(std::integral_constant<int, dt_cuda_team_parts>(), block);
    else
        dt_cuda_note_text(dev, "a norm of rows that are wider than the cuda engine takes");
}

/* The first column of a part. */
template <int TYPE> __device__ __forceinline__ int64_t dt_cuda_part(int part)
{
    return ((int64_t)part * blockDim.x + threadIdx.x) * dt_cuda_group<TYPE>;
}

/* What a norm is of: x, with what is added to it. */
struct dt_cuda_summed {
    struct dt_cuda_view x, add, sum; /* add.data NULL: none */
    bool keep_sum;                   /* sum is to be written */
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

/* A group of it, rounded as it is kept. */
template <int TYPE>
__device__ __forceinline__ void dt_cuda_load_summed(const struct dt_cuda_summed &s, int64_t row,
                                                    int64_t column, float (&v)[dt_cuda_group<TYPE>])
{
    dt_cuda_load<TYPE>(s.x, row, column, v);
    if (s.add.data) {
        float add[dt_cuda_group<TYPE>];
        dt_cuda_load<TYPE>(s.add, row, column, add);
#pragma unroll
        for (int i = 0; i < dt_cuda_group<TYPE>; i++)
            v[i] += add[i];
    }
    if (s.keep_sum) {
        dt_cuda_store<TYPE>(s.sum, row, column, v);
        dt_cuda_as_stored<TYPE>(s.sum, v);
    }
}

#endif
