/* SPDX-License-Identifier: MIT */
#ifndef DT_DEVICE_CUDA_SORT_H
#define DT_DEVICE_CUDA_SORT_H

#include "device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of memory that dt_cuda_sort needs for n keys. */
size_t dt_cuda_sort_bytes(int64_t n);

struct dt_cuda_sorted {
    const int32_t *keys, *places; /* in ascending order, and the original index of each; in the
                                     memory of the caller */
};

/* Sorts n keys on the device, stably. Keys below 0, or not below most, count as most. */
struct dt_cuda_sorted dt_cuda_sort(struct dt_device *dev, const int32_t *keys, int64_t n,
                                   int64_t most, void *room);

#ifdef __cplusplus
}
#endif
#endif
