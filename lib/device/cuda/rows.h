/* SPDX-License-Identifier: MIT */
/* Copies of rows by a kernel. */
#ifndef DT_DEVICE_CUDA_ROWS_H
#define DT_DEVICE_CUDA_ROWS_H

#include "device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = x, of the same type, as bytes. */
void dt_cuda_copy_rows(struct dt_device *dev, const struct dt_tensor *y, const struct dt_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
