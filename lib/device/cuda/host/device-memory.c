/* SPDX-License-Identifier: MIT */
/* Device memory, and synchronization with the stream. */
#include "device/cuda/cuda.h"

void *dt_cuda_allocate(struct dt_device *dev, size_t bytes)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes ? bytes : 1) != cudaSuccess) {
        (void)cudaGetLastError(); /* clears the error */
        return NULL;
    }
    dt_cuda_note(dev, "zero", cudaMemsetAsync(memory, 0, bytes, dt_cuda_flush(dev)));
    return memory;
}

void dt_cuda_release(struct dt_device *dev, void *memory, size_t bytes)
{
    (void)bytes;
    dt_cuda_note(dev, "release", cudaStreamSynchronize(dt_cuda_flush(dev)));
    dt_cuda_note(dev, "release", cudaFree(memory));
}

void *dt_cuda_scratch(struct dt_device *dev, size_t bytes)
{
    struct dt_cuda *cuda = dt_cuda_of(dev);
    if (cuda->scratch && bytes <= cuda->scratch_bytes)
        return cuda->scratch;
    if (cuda->scratch)
        dt_cuda_note(dev, "release", cudaFreeAsync(cuda->scratch, dt_cuda_flush(dev)));
    cuda->scratch_bytes = bytes + bytes / 4;
    cuda->scratch = NULL;
    cudaError_t error =
        cudaMallocAsync(&cuda->scratch, cuda->scratch_bytes + 1, dt_cuda_flush(dev));
    dt_cuda_note(dev, "memory for an operation", error);
    if (error != cudaSuccess)
        cuda->scratch = NULL;
    return cuda->scratch;
}

size_t dt_cuda_available(struct dt_device *dev)
{
    size_t available = 0, total;
    dt_cuda_note(dev, "memory", cudaMemGetInfo(&available, &total));
    return available;
}

int dt_cuda_synchronize(struct dt_device *dev, struct dt_error *err)
{
    const struct dt_error *failure = &dt_cuda_of(dev)->failure;
    dt_cuda_note(dev, "step", cudaStreamSynchronize(dt_cuda_flush(dev)));
    dt_cuda_note(dev, "launch", cudaGetLastError());
    if (failure->code == DT_OK)
        return 0;
    *err = *failure;
    return err->code;
}
