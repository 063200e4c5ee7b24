/* SPDX-License-Identifier: MIT */
/* The functions of mathematics that kernels need, with few of the slow instructions. */
#ifndef DT_DEVICE_CUDA_FUNCTIONS_CUH
#define DT_DEVICE_CUDA_FUNCTIONS_CUH

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"

__device__ __forceinline__ float dt_cuda_sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

/* GELU, tanh form: x / (1 + exp(-2 u)) with u = sqrt(2/pi) (x + 0.044715 x^3), which is
 * 0.5 x (1 + tanh(u)). */
__device__ __forceinline__ float dt_cuda_gelu_tanh(float x)
{
    return x * dt_cuda_sigmoid(1.5957691216f * (x + 0.044715f * x * x * x));
}

__device__ __forceinline__ float dt_cuda_gelu_tanh_slope(float x)
{
    float weight = dt_cuda_sigmoid(1.5957691216f * (x + 0.044715f * x * x * x));
    float inner = 1.5957691216f * (1.0f + 3.0f * 0.044715f * x * x);
    return weight + x * weight * (1.0f - weight) * inner;
}

/* Its exact form: x times the normal distribution's function, whose slope is the density. */
__device__ __forceinline__ float dt_cuda_gelu_erf(float x)
{
    return x * (0.5f + 0.5f * erff(0.7071067812f * x));
}

__device__ __forceinline__ float dt_cuda_gelu_erf_slope(float x)
{
    return 0.5f + 0.5f * erff(0.7071067812f * x) + 0.3989422804f * x * __expf(-0.5f * x * x);
}

__device__ __forceinline__ float dt_cuda_activate(float x, int activation)
{
    return activation == DT_ACTIVATION_GELU_TANH  ? dt_cuda_gelu_tanh(x)
           : activation == DT_ACTIVATION_GELU_ERF ? dt_cuda_gelu_erf(x)
                                                  : x;
}

__device__ __forceinline__ float dt_cuda_activation_slope(float x, int activation)
{
    return activation == DT_ACTIVATION_GELU_TANH  ? dt_cuda_gelu_tanh_slope(x)
           : activation == DT_ACTIVATION_GELU_ERF ? dt_cuda_gelu_erf_slope(x)
                                                  : 1.0f;
}

#endif
