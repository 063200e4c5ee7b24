/* SPDX-License-Identifier: MIT */
/*
 * Vectorized access to tensor elements in kernels: loads convert to fp32 and stores round to
 * nearest even, a group of adjacent elements at a time, in one access of 16 bytes if the tensor is
 * aligned.
 *
 * Kernels are templates on the element type of all their large tensors, or dt_cuda_mixed, which
 * checks the type of each tensor at run time and is slower: training steps do not use it.
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
#include <string.h>
#include <type_traits>

#include "device/cuda/cuda.h"
#include "device/cuda/kernel.cuh"
#include "device/cuda/ptx.cuh"

constexpr int dt_cuda_mixed = 3; /* in addition to the values of enum dt_dtype */

/* Elements of a group: 16 bytes, or 32 where types are mixed. */
template <int TYPE> constexpr int dt_cuda_group = TYPE == DT_DTYPE_F32 ? 4 : 8;

/* A tensor as a kernel parameter. */
struct dt_cuda_view {
    void *data;
    int64_t columns, stride;
    int dtype;
    bool aligned; /* each row is aligned to 16 bytes */
};

inline struct dt_cuda_view dt_cuda_view_of(const struct dt_tensor *x)
{
    size_t row_bytes = (size_t)x->stride * (x->dtype == DT_DTYPE_F32 ? 4 : 2);
    bool aligned =
        reinterpret_cast<uintptr_t>(x->data) % 16 == 0 && (row_bytes % 16 == 0 || x->rows <= 1);
    return {x->data, x->columns, x->stride, x->dtype, aligned};
}

inline struct dt_cuda_view dt_cuda_view_of_floats(const float *x, int64_t n)
{
    const struct dt_tensor row = {const_cast<float *>(x), DT_DTYPE_F32, 1, n, n};
    return dt_cuda_view_of(&row);
}

/* A contiguous tensor as one row, so that kernels need not test for the end per row. */
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

/* The common type of the tensors that are not NULL. */
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
    case DT_DTYPE_F32:
        launch(std::integral_constant<int, DT_DTYPE_F32>());
        break;
    case DT_DTYPE_BF16:
        launch(std::integral_constant<int, DT_DTYPE_BF16>());
        break;
    case DT_DTYPE_F16:
        launch(std::integral_constant<int, DT_DTYPE_F16>());
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

/* N elements, accessed in as few instructions as possible. */
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) dt_cuda_pack {
    T v[N];
};

/* The same as 32-bit words. Splitting a word into halves would wait for its load. */
template <class T, int N> struct dt_cuda_words {
    uint32_t w[N * sizeof(T) / sizeof(uint32_t)];
};

template <class T, int N>
__device__ __forceinline__ dt_cuda_words<T, N> dt_cuda_words_of(const dt_cuda_pack<T, N> &pack)
{
    dt_cuda_words<T, N> words;
    memcpy(&words, &pack, sizeof words);
#pragma unroll
    for (uint32_t &word : words.w)
        word = dt_again(word);
    return words;
}

/* Loads N elements as stored, 0 past the end of the row. */
template <class T, int N>
__device__ __forceinline__ dt_cuda_words<T, N> dt_cuda_fetch_as(const struct dt_cuda_view &x,
                                                                int64_t row, int64_t column)
{
    const T *from = static_cast<const T *>(x.data) + row * x.stride + column;
    if (x.aligned && column + N <= x.columns) {
        const dt_cuda_pack<T, N> pack = *reinterpret_cast<const dt_cuda_pack<T, N> *>(from);
        return dt_cuda_words_of(pack);
    }
    dt_cuda_pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; i++)
        if (column + i < x.columns)
            pack.v[i] = from[i];
        else
            dt_cuda_round(&pack.v[i], 0.0f);
    return dt_cuda_words_of(pack);
}

template <class T, int N>
__device__ __forceinline__ void dt_cuda_unpack(const dt_cuda_words<T, N> &words, float (&v)[N])
{
    dt_cuda_pack<T, N> pack;
    memcpy(&pack, &words, sizeof words);
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = dt_cuda_to_float(pack.v[i]);
}

template <class T, int N>
__device__ __forceinline__ void dt_cuda_load_as(const struct dt_cuda_view &x, int64_t row,
                                                int64_t column, float (&v)[N])
{
    dt_cuda_unpack(dt_cuda_fetch_as<T, N>(x, row, column), v);
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

/* Loads by the type of the tensor; a function call, which keeps kernels small. */
template <int N>
__device__ __noinline__ void dt_cuda_load_any(const struct dt_cuda_view &x, int64_t row,
                                              int64_t column, float (&v)[N])
{
    if (x.dtype == DT_DTYPE_F32)
        dt_cuda_load_as<float>(x, row, column, v);
    else if (x.dtype == DT_DTYPE_BF16)
        dt_cuda_load_as<__nv_bfloat16>(x, row, column, v);
    else
        dt_cuda_load_as<__half>(x, row, column, v);
}

template <int N>
__device__ __noinline__ void dt_cuda_store_any(const struct dt_cuda_view &x, int64_t row,
                                               int64_t column, const float (&v)[N])
{
    if (x.dtype == DT_DTYPE_F32)
        dt_cuda_store_as<float>(x, row, column, v);
    else if (x.dtype == DT_DTYPE_BF16)
        dt_cuda_store_as<__nv_bfloat16>(x, row, column, v);
    else
        dt_cuda_store_as<__half>(x, row, column, v);
}

/* The stored form of a type's elements; with mixed types they are fetched as fp32. */
template <int TYPE> struct dt_cuda_stored {
    typedef float type;
};
template <> struct dt_cuda_stored<DT_DTYPE_BF16> {
    typedef __nv_bfloat16 type;
};
template <> struct dt_cuda_stored<DT_DTYPE_F16> {
    typedef __half type;
};

template <int TYPE, int N = dt_cuda_group<TYPE>>
using dt_cuda_fetched = dt_cuda_words<typename dt_cuda_stored<TYPE>::type, N>;

/* Fetches a group of a row, 0 past its end, for dt_cuda_unpack; column is a multiple of the
 * group. Fetch all groups before unpacking any, to have all loads in flight: a conversion waits
 * for its load, and so does everything after a branch. */
template <int TYPE, int N = dt_cuda_group<TYPE>>
__device__ __forceinline__ dt_cuda_fetched<TYPE, N> dt_cuda_fetch(const struct dt_cuda_view &x,
                                                                  int64_t row, int64_t column)
{
    if constexpr (TYPE == dt_cuda_mixed) {
        dt_cuda_pack<float, N> pack;
        dt_cuda_load_any(x, row, column, pack.v);
        return dt_cuda_words_of(pack);
    } else {
        return dt_cuda_fetch_as<typename dt_cuda_stored<TYPE>::type, N>(x, row, column);
    }
}

/* The same, converted to fp32. */
template <int TYPE, int N>
__device__ __forceinline__ void dt_cuda_load(const struct dt_cuda_view &x, int64_t row,
                                             int64_t column, float (&v)[N])
{
    dt_cuda_unpack(dt_cuda_fetch<TYPE, N>(x, row, column), v);
}

/* Stores a group, up to the end of the row. */
template <int TYPE, int N>
__device__ __forceinline__ void dt_cuda_store(const struct dt_cuda_view &x, int64_t row,
                                              int64_t column, const float (&v)[N])
{
    if (TYPE == DT_DTYPE_F32)
        dt_cuda_store_as<float>(x, row, column, v);
    else if (TYPE == DT_DTYPE_BF16)
        dt_cuda_store_as<__nv_bfloat16>(x, row, column, v);
    else if (TYPE == DT_DTYPE_F16)
        dt_cuda_store_as<__half>(x, row, column, v);
    else
        dt_cuda_store_any(x, row, column, v);
}

/* sum += rows first, first + step, ... below end, in this order, with 4 loads in flight. */
template <int TYPE>
__device__ __forceinline__ void dt_cuda_sum_rows(float (&sum)[dt_cuda_group<TYPE>],
                                                 const struct dt_cuda_view &x, int64_t column,
                                                 int64_t first, int64_t end, int64_t step)
{
    constexpr int group = dt_cuda_group<TYPE>, at_once = 4;
    for (int64_t row = first; row < end; row += at_once * step) {
        dt_cuda_fetched<TYPE> of_rows[at_once];
#pragma unroll
        for (int k = 0; k < at_once; k++)
            if (row + k * step < end)
                of_rows[k] = dt_cuda_fetch<TYPE>(x, row + k * step, column);
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            float v[group];
            if (row + k * step >= end)
                continue;
            dt_cuda_unpack(of_rows[k], v);
#pragma unroll
            for (int i = 0; i < group; i++)
                sum[i] += v[i];
        }
    }
}

/* Loads one element of any type. */
__device__ __forceinline__ float dt_cuda_element(const struct dt_cuda_view &x, int64_t row,
                                                 int64_t column)
{
    int64_t at = row * x.stride + column;
    if (x.dtype == DT_DTYPE_F32)
        return static_cast<const float *>(x.data)[at];
    if (x.dtype == DT_DTYPE_BF16)
        return dt_cuda_to_float(static_cast<const __nv_bfloat16 *>(x.data)[at]);
    return dt_cuda_to_float(static_cast<const __half *>(x.data)[at]);
}

/* Stores one element of any type. */
__device__ __forceinline__ void dt_cuda_set_element(const struct dt_cuda_view &x, int64_t row,
                                                    int64_t column, float v)
{
    int64_t at = row * x.stride + column;
    if (x.dtype == DT_DTYPE_F32)
        static_cast<float *>(x.data)[at] = v;
    else if (x.dtype == DT_DTYPE_BF16)
        dt_cuda_round(static_cast<__nv_bfloat16 *>(x.data) + at, v);
    else
        dt_cuda_round(static_cast<__half *>(x.data) + at, v);
}

/* Rounds v as storing it in a tensor of the type would. */
template <int TYPE, int N>
__device__ __forceinline__ void dt_cuda_as_stored(const struct dt_cuda_view &x, float (&v)[N])
{
    int type = TYPE == dt_cuda_mixed ? x.dtype : TYPE;
#pragma unroll
    for (int i = 0; i < N; i++)
        if (type == DT_DTYPE_BF16)
            v[i] = dt_cuda_to_float(__float2bfloat16_rn(v[i]));
        else if (type == DT_DTYPE_F16)
            v[i] = dt_cuda_to_float(__float2half_rn(v[i]));
}

/* A grid that covers rows x columns, one group of elements per thread: a block is a strip of a
 * row, and the blocks of a row are adjacent. */
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
