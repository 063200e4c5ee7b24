/* SPDX-License-Identifier: MIT */
/*
 * The stream of the ops. With DT_CUDA_GRAPH=1 work for it is put off: launches are noted down
 * until somebody needs the stream itself, dt_cuda_flush. A sequence of them that comes again
 * is captured as a CUDA graph, and is one launch from then on.
 *
 * Sequences are the same if they have the same kernels in the same order. Grids and arguments
 * may be others: those that are, are set in the graph before its launch. What is no kernel,
 * dt_cuda_put, a graph holds as it was: its context must be the same to the byte. So no op says
 * what changes from step to step, and the GPU does what it would do without graphs, in that
 * order.
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
    cudaStream_t stream;
    struct dt_cuda_recording *recording; /* NULL: nothing is put off */
};

/* A launch but for its arguments, of which sizes has the bytes; a 0 ends it. */
struct dt_cuda_kernel {
    const void *function;
    const size_t *sizes; /* static */
    dim3 grid, block;
    size_t shared_bytes;
};

/* Puts work that is no launch of a kernel into the stream. */
typedef void dt_cuda_work(struct dt_device *dev, cudaStream_t stream, const void *context);

int dt_cuda_stream_open(struct dt_device *dev, struct dt_error *err);
void dt_cuda_stream_close(struct dt_device *dev); /* waits for it */

/* The stream, with all in it that ops were asked for: for whatever is no op. */
cudaStream_t dt_cuda_flush(struct dt_device *dev);

/* Has work done, now or later, with a copy of context: bytes without gaps, or with gaps that
 * are 0. */
void dt_cuda_put(struct dt_device *dev, dt_cuda_work *work, const void *context, size_t bytes);

/* Notes down a launch: dt_cuda_launch of kernel.cuh. Arguments are copied. */
void dt_cuda_record(struct dt_cuda_recording *r, const struct dt_cuda_kernel *kernel,
                    void *const *arguments);

#ifdef __cplusplus
}
#endif
#endif
