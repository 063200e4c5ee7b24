/* SPDX-License-Identifier: MIT */
#include "device/cuda/elements.cuh"

#include "device/cuda/host/links.h"

static __global__ void __launch_bounds__(256)
    add_floats(struct dt_cuda_view sum, struct dt_cuda_view x)
{
    constexpr int group = dt_cuda_group<DT_DTYPE_F32>;
    int64_t at = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * group;
    float s[group], v[group];
    if (at >= sum.columns)
        return;
    dt_cuda_load<DT_DTYPE_F32>(sum, 0, at, s);
    dt_cuda_load<DT_DTYPE_F32>(x, 0, at, v);
#pragma unroll
    for (int i = 0; i < group; i++)
        s[i] += v[i];
    dt_cuda_store<DT_DTYPE_F32>(sum, 0, at, s);
}

cudaError_t dt_cuda_add_floats(cudaStream_t stream, float *sum, const float *x, size_t n)
{
    struct dt_cuda_cover cover = dt_cuda_cover_of(1, (int64_t)n, dt_cuda_group<DT_DTYPE_F32>);
    return dt_cuda_launch(stream, cover.grid, cover.block, 0, add_floats,
                          dt_cuda_view_of_floats(sum, (int64_t)n),
                          dt_cuda_view_of_floats(x, (int64_t)n));
}
