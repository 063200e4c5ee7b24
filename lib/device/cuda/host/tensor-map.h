/* SPDX-License-Identifier: MIT */
/* Tensor maps, the descriptors of TMA on sm_90a: encoded by the driver, on the host. */
#ifndef DT_DEVICE_CUDA_TENSOR_MAP_H
#define DT_DEVICE_CUDA_TENSOR_MAP_H

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "device/device.h"

/* Heads of 16-bit elements: extents are channels, heads, rows of a sequence, and sequences;
 * steps are the byte strides of heads, rows and sequences. Strides and data are multiples of 16. */
struct dt_cuda_heads {
    void *data;
    enum dt_dtype dtype;
    int64_t extents[4], steps[3];
};

/* Finds the driver's function, if DT_CUDA_WGMMA enables the wgmma kernels; otherwise does
 * nothing. DT_EMISSING if the GPU or the driver does not support them. */
int dt_cuda_wgmma_open(struct dt_device *dev, struct dt_error *err);

/* Encodes a map with boxes of one head and `rows` rows: of 64 channels, swizzled as matrices of
 * wgmma.cuh, or of all channels, not swizzled, if there are fewer. Elements outside of the
 * tensor are 0. Returns less than 0, with the failure recorded, if the driver rejects the map. */
int dt_cuda_map_heads(struct dt_device *dev, CUtensorMap *map, const struct dt_cuda_heads *x,
                      int box_rows);

#ifdef __cplusplus
}
#endif
#endif
