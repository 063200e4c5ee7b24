/* SPDX-License-Identifier: MIT */
/* Mathematical functions for kernels, with few of the slow instructions. */
#ifndef DT_DEVICE_CUDA_FUNCTIONS_CUH
#define DT_DEVICE_CUDA_FUNCTIONS_CUH

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"

__device__ __forceinline__ float dt_cuda_sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

/* (1 + tanh(u)) / 2 = sigmoid(2 u), and a times its derivative. Doubling is exact, unless the
 * compiler contracts it into an fma. */
__device__ __forceinline__ float dt_cuda_tanh_step(float u)
{
    return dt_cuda_sigmoid(__fmul_rn(2.0f, u));
}

__device__ __forceinline__ float dt_cuda_tanh_slope(float a, float u)
{
    float step = dt_cuda_tanh_step(u);
    return __fmul_rn(2.0f, a * step * (1.0f - step));
}

/* The names that device/activations.h uses. */
#define DT_EXP(x)           __expf(x)
#define DT_ERF(x)           erff(x)
#define DT_TANH_STEP(u)     dt_cuda_tanh_step(u)
#define DT_TANH_SLOPE(a, u) dt_cuda_tanh_slope(a, u)

/* value(x) and derivative(x) of an activation. */
template <int ACTIVATION> struct dt_cuda_activation;
#define DT_CUDA_ACTIVATION(NAME, name, fused, f, df)                                               \
    template <> struct dt_cuda_activation<DT_ACTIVATION_##NAME> {                                  \
        static __device__ __forceinline__ float value(float x)                                     \
        {                                                                                          \
            return f;                                                                              \
        }                                                                                          \
        static __device__ __forceinline__ float derivative([[maybe_unused]] float x)               \
        {                                                                                          \
            return df;                                                                             \
        }                                                                                          \
    };
DT_ACTIVATION_LIST(DT_CUDA_ACTIVATION)
#undef DT_CUDA_ACTIVATION

#endif
