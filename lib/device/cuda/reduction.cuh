/* SPDX-License-Identifier: MIT */
/* Reductions over the threads of a block, or over a team of them, in an order that depends on
 * their number alone; all threads take part and get the result. */
#ifndef DT_DEVICE_CUDA_REDUCTION_CUH
#define DT_DEVICE_CUDA_REDUCTION_CUH

#include "device/cuda/kernel.cuh"
#include "device/cuda/ptx.cuh"

/* Over `lanes` adjacent lanes, a power of two. */
template <class T> __device__ __forceinline__ T dt_cuda_lane_sum(T x, unsigned lanes)
{
#pragma unroll
    for (unsigned bit = 16; bit > 0; bit /= 2)
        if (bit < lanes)
            x += __shfl_xor_sync(~0u, x, (int)bit);
    return x;
}

/* N sums at once. A team is the threads with one threadIdx.y: 8, 16, or whole warps. */
template <class T, int N> __device__ __forceinline__ void dt_cuda_team_sum(T (&x)[N])
{
    DT_SHARED(T, parts, N * 32);
    unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32, first = threadIdx.y * warps;
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = dt_cuda_lane_sum(x[i], blockDim.x);
    if (warps <= 1)
        return;
    int barrier = 1 + (int)threadIdx.y, threads = (int)blockDim.x;
    dt_barrier_threads(barrier, threads); /* parts may still be read by the previous call */
    if (lane == 0)
#pragma unroll
        for (int i = 0; i < N; i++)
            parts[i * 32 + first + threadIdx.x / 32] = x[i];
    dt_barrier_threads(barrier, threads);
#pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = dt_cuda_lane_sum(lane < warps ? parts[i * 32 + first + lane] : T(0), 32);
}

/* join(join(x0, x1), ...) over the threads; nothing: the identity of join. */
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
    __syncthreads(); /* parts may still be read by the previous call */
    if (lane == 0)
        parts[warp] = x;
    __syncthreads();
    x = lane < warps ? parts[lane] : nothing;
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2)
        x = join(x, __shfl_xor_sync(~0u, x, bit));
    return x;
}

template <class T> __device__ __forceinline__ T dt_cuda_team_sum_of(T x)
{
    T sum[1] = {x};
    dt_cuda_team_sum(sum);
    return sum[0];
}

#endif
