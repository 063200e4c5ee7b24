/* SPDX-License-Identifier: MIT */
/* Tensors as the copies of sm_90a take them (TMA): described by the driver, on the host. */
#ifndef DT_DEVICE_CUDA_TENSOR_MAP_H
#define DT_DEVICE_CUDA_TENSOR_MAP_H

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/device.h"

/* Heads of 16-bit elements: extents are channels, heads, rows of a sequence, and sequences;
 * steps are bytes from one head, row and sequence to the next, multiples of 16, as data is. */
struct dt_cuda_heads {
    void *data;
    enum dt_dtype dtype;
    int64_t extents[4], steps[3];
};

/* Finds the driver's function, if DT_CUDA_WGMMA says that kernels of wgmma are wanted;
 * without that does nothing. DT_EMISSING, with a line in err, if the GPU or the driver has
 * none. */
int dt_cuda_wgmma_open(struct dt_device *dev, struct dt_error *err);

/* Describes boxes of one head and so many rows: of 64 channels, swizzled as matrices of
 * wgmma.cuh, or of all channels, as they are, if there are fewer. What is outside is 0. Less than
 * 0, with the failure kept, if the driver does not take it. */
int dt_cuda_map_heads(struct dt_device *dev, CUtensorMap *map, const struct dt_cuda_heads *x,
                      int box_rows);

#ifdef __cplusplus
}
#endif
#endif
