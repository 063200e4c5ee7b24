/* SPDX-License-Identifier: MIT */
/* Rows that a kernel copies. */
#ifndef DT_DEVICE_CUDA_ROWS_H
#define DT_DEVICE_CUDA_ROWS_H

#include "device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = x, of one type, byte by byte. */
void dt_cuda_copy_rows(struct dt_device *dev, const struct dt_tensor *y, const struct dt_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
