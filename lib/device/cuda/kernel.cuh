/* SPDX-License-Identifier: MIT */
/*
 * Included first by every kernel file: the toolkit's headers, arrays in shared memory, and
 * launches.
 *
 * The sources are CUDA C++ for nvcc, except for four macros, with which a C++ compiler compiles
 * them for the emulator of the tests (tests/cuda):
 *
 *     DT_SHARED(float, sums, 32);             __shared__ float sums[32];
 *     DT_DYNAMIC_SHARED(float, row);          the block's dynamic shared memory
 *     dt_cuda_launch(stream, grid, block, bytes, kernel, x, n);
 *                                             kernel<<<grid, block, bytes, stream>>>(x, n);
 *     DT_KERNEL(kernel)                       its address, for calls of the runtime that are told
 *                                             nothing of its parameters
 */
#ifndef DT_DEVICE_CUDA_KERNEL_CUH
#define DT_DEVICE_CUDA_KERNEL_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "device/cuda/host/graph.h"

#ifdef __CUDACC__
#define DT_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define DT_DYNAMIC_SHARED(type, name)                                                              \
    extern __shared__ __align__(1024) unsigned char dt_dynamic_shared[];                           \
    type *const name = reinterpret_cast<type *>(dt_dynamic_shared)
#define DT_KERNEL(kernel) reinterpret_cast<const void *>(kernel)
#endif

/* Does nothing for an empty grid. */
template <class... Parameters, class... Arguments>
cudaError_t dt_cuda_launch(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes,
                           void (*kernel)(Parameters...), Arguments... arguments)
{
    if (grid.x == 0 || block.x == 0)
        return cudaSuccess;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/* Launches in the stream of the ops, possibly deferred. A failure is recorded with the name of the
 * kernel. */
template <class... Parameters, class... Arguments>
void dt_cuda_launch(struct dt_cuda_stream *stream, dim3 grid, dim3 block, size_t shared_bytes,
                    void (*kernel)(Parameters...), Arguments... arguments)
{
    static_assert(sizeof...(Parameters) <= DT_CUDA_MOST_ARGUMENTS, "too many arguments");
    static constexpr size_t sizes[] = {sizeof(Parameters)..., 0};
    if (stream->recording == nullptr) {
        dt_cuda_note_kernel(
            stream->dev, DT_KERNEL(kernel),
            dt_cuda_launch(stream->stream, grid, block, shared_bytes, kernel, arguments...));
        return;
    }
    if (grid.x == 0 || block.x == 0)
        return;
    const struct dt_cuda_kernel launch = {DT_KERNEL(kernel), sizes, grid, block, shared_bytes};
    [&](Parameters... values) {
        void *places[] = {&values...};
        dt_cuda_record(stream->recording, &launch, places);
    }(arguments...);
}

/* Lets a block of the kernel have up to `bytes` of dynamic shared memory. */
template <class... Parameters>
void dt_cuda_allow_shared(struct dt_cuda_stream *stream, void (*kernel)(Parameters...),
                          size_t bytes)
{
    dt_cuda_note_kernel(
        stream->dev, DT_KERNEL(kernel),
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
}

#endif
