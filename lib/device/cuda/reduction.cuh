/* SPDX-License-Identifier: MIT */
/* Sums and maxima over the threads of a block, in an order that its size alone fixes;
 * every thread gets the result. All threads of the block take part. */
#ifndef DT_DEVICE_CUDA_REDUCTION_CUH
#define DT_DEVICE_CUDA_REDUCTION_CUH

#include "device/cuda/kernel.cuh"

template <class T> __device__ __forceinline__ T dt_cuda_warp_sum(T x)
{
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2)
        x += __shfl_xor_sync(~0u, x, bit);
    return x;
}

/* N sums at once. The block has whole warps, 32 at most. */
template <class T, int N> __device__ __forceinline__ void dt_cuda_block_sum(T (&x)[N])
{
    DT_SHARED(T, parts, N * 32);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = dt_cuda_warp_sum(x[i]);
    if (warps == 1)
        return;
    __syncthreads(); /* parts may still be read from the call before */
    if (lane == 0)
#pragma unroll
        for (int i = 0; i < N; i++)
            parts[i * 32 + warp] = x[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = dt_cuda_warp_sum(lane < warps ? parts[i * 32 + lane] : T(0));
}

/* join(join(x0, x1), ...) over the threads; nothing is what joins without effect. */
template <class T, class Join>
__device__ __forceinline__ T dt_cuda_block_join(T x, T nothing, Join join)
{
    DT_SHARED(T, parts, 32);
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2)
        x = join(x, __shfl_xor_sync(~0u, x, bit));
    if (warps == 1)
        return x;
    __syncthreads(); /* parts may still be read from the call before */
    if (lane == 0)
        parts[warp] = x;
    __syncthreads();
    x = lane < warps ? parts[lane] : nothing;
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2)
        x = join(x, __shfl_xor_sync(~0u, x, bit));
    return x;
}

template <class T> __device__ __forceinline__ T dt_cuda_block_sum_of(T x)
{
    T sum[1] = {x};
    dt_cuda_block_sum(sum);
    return sum[0];
}

#endif
