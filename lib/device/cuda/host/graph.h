/* SPDX-License-Identifier: MIT */
/*
 * The stream of the ops. With DT_CUDA_GRAPH=1 work for it is deferred: launches are recorded until
 * a caller needs the stream itself, dt_cuda_flush. A sequence of them that recurs is captured as a
 * CUDA graph, and is one launch from then on.
 *
 * Sequences are the same if they have the same kernels in the same order. Grids and arguments may
 * differ: those that have changed are updated in the graph before its launch. Work other than
 * kernels, dt_cuda_put, cannot be updated: its context must be identical, byte for byte. So ops
 * need not declare what changes from step to step, and the GPU does the same work in the same order
 * as without graphs.
 */
#ifndef DT_DEVICE_CUDA_GRAPH_H
#define DT_DEVICE_CUDA_GRAPH_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/device.h"

#define DT_CUDA_MOST_ARGUMENTS 32

struct dt_cuda_recording;

struct dt_cuda_stream {
    struct dt_device *dev;
    size_t shared_limit; /* of a block's shared memory on this device, bytes */
    cudaStream_t stream;
    struct dt_cuda_recording *recording; /* NULL: graphs are off */
};

/* A launch without its arguments; sizes: bytes of each argument, 0 after the last. */
struct dt_cuda_kernel {
    const void *function;
    const size_t *sizes; /* static */
    dim3 grid, block;
    size_t shared_bytes;
};

/* Enqueues work other than a kernel launch. */
typedef void dt_cuda_work(struct dt_device *dev, cudaStream_t stream, const void *context);

int dt_cuda_stream_open(struct dt_device *dev, struct dt_error *err);
void dt_cuda_stream_close(struct dt_device *dev); /* waits for the stream */

/* Enqueues all deferred work and returns the stream, for use outside of ops. */
cudaStream_t dt_cuda_flush(struct dt_device *dev);

/* Runs work, now or deferred, with a copy of context, whose padding must be 0. */
void dt_cuda_put(struct dt_device *dev, dt_cuda_work *work, const void *context, size_t bytes);

/* Records the failure to launch a kernel, by the kernel's name. Does nothing for cudaSuccess. */
void dt_cuda_note_kernel(struct dt_device *dev, const void *kernel, cudaError_t error);

/* Records a launch (dt_cuda_launch of kernel.cuh). Arguments are copied. */
void dt_cuda_record(struct dt_cuda_recording *r, const struct dt_cuda_kernel *kernel,
                    void *const *arguments);

#ifdef __cplusplus
}
#endif
#endif
