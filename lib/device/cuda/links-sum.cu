/* SPDX-License-Identifier: MIT */
#include "device/cuda/kernel.cuh"

#include "device/cuda/links.h"

static constexpr unsigned threads = 256;

static __global__ void __launch_bounds__(threads) add_floats(float *sum, const float *x, size_t n)
{
    size_t i = (size_t)blockIdx.x * threads + threadIdx.x;
    if (i < n)
        sum[i] += x[i];
}

void dt_cuda_add_floats(cudaStream_t stream, float *sum, const float *x, size_t n)
{
    dt_cuda_launch(stream, dim3((unsigned)((n + threads - 1) / threads)), dim3(threads), 0,
                   add_floats, sum, x, n);
}
