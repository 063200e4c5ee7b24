/* SPDX-License-Identifier: MIT */
/* Mathematical functions for kernels, with few of the slow instructions. */
#ifndef DT_DEVICE_CUDA_FUNCTIONS_CUH
#define DT_DEVICE_CUDA_FUNCTIONS_CUH

#include <type_traits>

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"

__device__ __forceinline__ float dt_cuda_sigmoid(float x)
{
    return __fdividef(1.0f, 1.0f + __expf(-x));
}

/* a times its derivative. */
__device__ __forceinline__ float dt_cuda_sigmoid_slope(float a, float x)
{
    float s = dt_cuda_sigmoid(x);
    return a * s * (1.0f - s);
}

/* The names that device/activations.h and device/logit-map.h use. */
#define DT_FUNCTION            static __device__ __forceinline__
#define DT_FMA(a, b, c)        fmaf(a, b, c)
#define DT_EXP(x)              __expf(x)
#define DT_ERF(x)              erff(x)
#define DT_TANH(x)             tanhf(x)
#define DT_SIGMOID(x)          dt_cuda_sigmoid(x)
#define DT_SIGMOID_SLOPE(a, x) dt_cuda_sigmoid_slope(a, x)

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

/* Calls launch with the activation as a constant. */
template <class Launch> void dt_cuda_for_activation(enum dt_activation activation, Launch launch)
{
#define DT_CUDA_LAUNCH(NAME, ...)                                                                  \
    case DT_ACTIVATION_##NAME:                                                                     \
        launch(std::integral_constant<int, DT_ACTIVATION_##NAME>());                               \
        break;
    switch (activation) {
        DT_ACTIVATION_LIST(DT_CUDA_LAUNCH)
    }
}
#undef DT_CUDA_LAUNCH

#endif
