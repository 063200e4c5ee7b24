/* SPDX-License-Identifier: MIT */
/* Pinned memory of the host that transfers pass through: the caller's may be used again
 * at once, and the copy itself goes on beside the host. */
#ifndef DT_DEVICE_CUDA_STAGING_H
#define DT_DEVICE_CUDA_STAGING_H

#include "device/cuda/cuda.h"

int dt_cuda_staging_open(struct dt_device *dev, struct dt_error *err);
void dt_cuda_staging_close(struct dt_device *dev);

#endif
