/* SPDX-License-Identifier: MIT */
/* Links between GPUs: point-to-point messages of NCCL, in a stream per channel, and sums by a
 * kernel (device/links.h). */
#ifndef DT_DEVICE_CUDA_LINKS_H
#define DT_DEVICE_CUDA_LINKS_H

#include "device/cuda/cuda.h"
#include "device/links.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct dt_links dt_cuda_links;

/* sum += x, n floats, in the stream. */
cudaError_t dt_cuda_add_floats(cudaStream_t stream, float *sum, const float *x, size_t n);

#ifdef __cplusplus
}
#endif
#endif
