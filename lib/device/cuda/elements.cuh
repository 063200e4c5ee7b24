/* SPDX-License-Identifier: MIT */
/*
 * Elements of tensors in kernels: read as fp32 and written rounded to nearest even, a
 * group of neighbours at a time, in one access of 16 bytes where the tensor allows.
 *
 * Kernels are templates on the element type that all their large tensors have, or
 * dt_cuda_mixed, where each tensor's own type is looked at while they run, which is
 * slower: steps of training do without.
 *
 *     template <int TYPE> __global__ void twice(dt_cuda_view x)
 *     {
 *         float v[dt_cuda_group<TYPE>];
 *         dt_cuda_load<TYPE>(x, row, column, v);
 *         ...
 *         dt_cuda_store<TYPE>(x, row, column, v);
 *     }
 *     dt_cuda_for_type(dt_cuda_type_of({x}), [&](auto type) {
 *         dt_cuda_launch(stream, grid, block, 0, twice<type.value>, dt_cuda_view_of(x));
 *     });
 */
#ifndef DT_DEVICE_CUDA_ELEMENTS_CUH
#define DT_DEVICE_CUDA_ELEMENTS_CUH

#include <initializer_list>
#include <type_traits>

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"

constexpr int dt_cuda_mixed = 3; /* beside the values of enum dt_dtype */

/* Elements of a group: 16 bytes, or 32 where types are mixed. */
template <int TYPE> constexpr int dt_cuda_group = TYPE == DT_F32 ? 4 : 8;

/* A tensor as kernels know it. */
struct dt_cuda_view {
    void *data;
    int64_t columns, stride;
    int dtype;
    bool aligned; /* each row begins at a multiple of 16 bytes */
};

inline struct dt_cuda_view dt_cuda_view_of(const struct dt_tensor *x)
{
    size_t row_bytes = (size_t)x->stride * (x->dtype == DT_F32 ? 4 : 2);
    bool aligned =
        reinterpret_cast<uintptr_t>(x->data) % 16 == 0 && (row_bytes % 16 == 0 || x->rows <= 1);
    return {x->data, x->columns, x->stride, x->dtype, aligned};
}

/* A tensor without gaps as one row: then no kernel asks where rows end. */
inline struct dt_tensor dt_cuda_flat(const struct dt_tensor *x)
{
    return {x->data, x->dtype, 1, x->rows * x->columns, x->rows * x->columns};
}

inline bool dt_cuda_is_flat(std::initializer_list<const struct dt_tensor *> tensors)
{
    for (const struct dt_tensor *x : tensors)
        if (x != nullptr && x->rows > 1 && x->stride != x->columns)
            return false;
    return true;
}

/* The type that tensors, as far as there are any, have in common. */
inline int dt_cuda_type_of(std::initializer_list<const struct dt_tensor *> tensors)
{
    int type = -1;
    for (const struct dt_tensor *x : tensors)
        if (x != nullptr)
            type = type < 0 || type == (int)x->dtype ? (int)x->dtype : dt_cuda_mixed;
    return type;
}

/* Calls launch with the type as a constant. */
template <class Launch> void dt_cuda_for_type(int type, Launch launch)
{
    switch (type) {
    case DT_F32:
        launch(std::integral_constant<int, DT_F32>());
        break;
    case DT_BF16:
        launch(std::integral_constant<int, DT_BF16>());
        break;
    case DT_F16:
        launch(std::integral_constant<int, DT_F16>());
        break;
    default:
        launch(std::integral_constant<int, dt_cuda_mixed>());
    }
}

__device__ __forceinline__ float dt_cuda_to_float(float x)
{
    return x;
}

__device__ __forceinline__ float dt_cuda_to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

__device__ __forceinline__ float dt_cuda_to_float(__half x)
{
    return __half2float(x);
}

__device__ __forceinline__ void dt_cuda_round(float *to, float x)
{
    *to = x;
}

__device__ __forceinline__ void dt_cuda_round(__nv_bfloat16 *to, float x)
{
    *to = __float2bfloat16_rn(x);
}

__device__ __forceinline__ void dt_cuda_round(__half *to, float x)
{
    *to = __float2half_rn(x);
}

/* N elements in as few accesses as there can be. */
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) dt_cuda_pack {
    T v[N];
};

template <class T, int N>
__device__ __forceinline__ void dt_cuda_load_as(const struct dt_cuda_view &x, int64_t row,
                                                int64_t column, float (&v)[N])
{
    const T *from = static_cast<const T *>(x.data) + row * x.stride + column;
    if (x.aligned && column + N <= x.columns) {
        const dt_cuda_pack<T, N> pack = *reinterpret_cast<const dt_cuda_pack<T, N> *>(from);
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = dt_cuda_to_float(pack.v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = column + i < x.columns ? dt_cuda_to_float(from[i]) : 0.0f;
    }
}

template <class T, int N>
__device__ __forceinline__ void dt_cuda_store_as(const struct dt_cuda_view &x, int64_t row,
                                                 int64_t column, const float (&v)[N])
{
    T *to = static_cast<T *>(x.data) + row * x.stride + column;
    if (x.aligned && column + N <= x.columns) {
        dt_cuda_pack<T, N> pack;
#pragma unroll
        for (int i = 0; i < N; i++)
            dt_cuda_round(&pack.v[i], v[i]);
        *reinterpret_cast<dt_cuda_pack<T, N> *>(to) = pack;
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (column + i < x.columns)
                dt_cuda_round(to + i, v[i]);
    }
}

/* Of the tensor's own type: a call, which keeps kernels small. */
template <int N>
__device__ __noinline__ void dt_cuda_load_any(const struct dt_cuda_view &x, int64_t row,
                                              int64_t column, float (&v)[N])
{
    if (x.dtype == DT_F32)
        dt_cuda_load_as<float>(x, row, column, v);
    else if (x.dtype == DT_BF16)
        dt_cuda_load_as<__nv_bfloat16>(x, row, column, v);
    else
        dt_cuda_load_as<__half>(x, row, column, v);
}

template <int N>
__device__ __noinline__ void dt_cuda_store_any(const struct dt_cuda_view &x, int64_t row,
                                               int64_t column, const float (&v)[N])
{
    if (x.dtype == DT_F32)
        dt_cuda_store_as<float>(x, row, column, v);
    else if (x.dtype == DT_BF16)
        dt_cuda_store_as<__nv_bfloat16>(x, row, column, v);
    else
        dt_cuda_store_as<__half>(x, row, column, v);
}

/* N neighbours of a row, 0 behind its end; column is a multiple of N. */
template <int TYPE, int N>
__device__ __forceinline__ void dt_cuda_load(const struct dt_cuda_view &x, int64_t row,
                                             int64_t column, float (&v)[N])
{
    if (TYPE == DT_F32)
        dt_cuda_load_as<float>(x, row, column, v);
    else if (TYPE == DT_BF16)
        dt_cuda_load_as<__nv_bfloat16>(x, row, column, v);
    else if (TYPE == DT_F16)
        dt_cuda_load_as<__half>(x, row, column, v);
    else
        dt_cuda_load_any(x, row, column, v);
}

/* As far as the row goes. */
template <int TYPE, int N>
__device__ __forceinline__ void dt_cuda_store(const struct dt_cuda_view &x, int64_t row,
                                              int64_t column, const float (&v)[N])
{
    if (TYPE == DT_F32)
        dt_cuda_store_as<float>(x, row, column, v);
    else if (TYPE == DT_BF16)
        dt_cuda_store_as<__nv_bfloat16>(x, row, column, v);
    else if (TYPE == DT_F16)
        dt_cuda_store_as<__half>(x, row, column, v);
    else
        dt_cuda_store_any(x, row, column, v);
}

/* One element of any type. */
__device__ __forceinline__ float dt_cuda_element(const struct dt_cuda_view &x, int64_t row,
                                                 int64_t column)
{
    int64_t at = row * x.stride + column;
    if (x.dtype == DT_F32)
        return static_cast<const float *>(x.data)[at];
    if (x.dtype == DT_BF16)
        return dt_cuda_to_float(static_cast<const __nv_bfloat16 *>(x.data)[at]);
    return dt_cuda_to_float(static_cast<const __half *>(x.data)[at]);
}

/* v as it is when it has been stored in a tensor of the type, and read again. */
template <int TYPE, int N>
__device__ __forceinline__ void dt_cuda_as_stored(const struct dt_cuda_view &x, float (&v)[N])
{
    int type = TYPE == dt_cuda_mixed ? x.dtype : TYPE;
#pragma unroll
    for (int i = 0; i < N; i++)
        if (type == DT_BF16)
            v[i] = dt_cuda_to_float(__float2bfloat16_rn(v[i]));
        else if (type == DT_F16)
            v[i] = dt_cuda_to_float(__float2half_rn(v[i]));
}

/* How a grid covers rows x columns, a group of elements a thread: strips of a row are
 * blocks, and blocks of one row stand side by side. */
struct dt_cuda_cover {
    unsigned strips; /* of each row */
    dim3 grid, block;
};

inline struct dt_cuda_cover dt_cuda_cover_of(int64_t rows, int64_t columns, int group)
{
    int64_t groups = (columns + group - 1) / group;
    int64_t threads = groups < 256 ? (groups + 31) / 32 * 32 : 256;
    int64_t strips = threads > 0 ? (groups + threads - 1) / threads : 0;
    return {(unsigned)strips, dim3((unsigned)(rows * strips)), dim3((unsigned)threads)};
}

/* The row and the first column of this thread. */
__device__ __forceinline__ void dt_cuda_place(unsigned strips, int group, int64_t *row,
                                              int64_t *column)
{
    unsigned line = strips == gridDim.x ? 0 : blockIdx.x / strips;
    *row = line;
    *column = ((int64_t)(blockIdx.x - line * strips) * blockDim.x + threadIdx.x) * group;
}

#endif
