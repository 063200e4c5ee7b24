/* SPDX-License-Identifier: MIT */
/* Transfers through pinned host memory: the caller may reuse its buffer at once, and the copy is
 * asynchronous. */
#ifndef DT_DEVICE_CUDA_STAGING_H
#define DT_DEVICE_CUDA_STAGING_H

#include "device/cuda/cuda.h"

int dt_cuda_staging_open(struct dt_device *dev, struct dt_error *err);
void dt_cuda_staging_close(struct dt_device *dev);

#endif
