/* SPDX-License-Identifier: MIT */
/* Epilogues of products that cuBLASLt does not support. */
#ifndef DT_DEVICE_CUDA_EPILOGUE_H
#define DT_DEVICE_CUDA_EPILOGUE_H

#include "device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = activation(x + bias), elementwise; bias (1 x columns) may be NULL, y may be x. kept,
 * unless NULL, receives x + bias. */
void dt_cuda_bias_activation(struct dt_device *dev, const struct dt_tensor *y,
                             const struct dt_tensor *x, const struct dt_tensor *bias,
                             const struct dt_tensor *kept, enum dt_activation activation);

#ifdef __cplusplus
}
#endif
#endif
