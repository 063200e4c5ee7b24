/* SPDX-License-Identifier: MIT */
/*
 * Matrix products by cuBLASLt. For each shape, type, layout and epilogue a plan is cached: the
 * algorithm to run. At first it is the choice of the library's heuristic; when a product is used
 * repeatedly, the fastest of several that are timed (not with DT_CUDA_TUNE=0, which makes runs
 * bitwise reproducible).
 *
 * fp32 is multiplied as fp32, unless DT_CUDA_TF32=1 allows TF32 tensor cores, which round
 * significands to 10 bits. bf16 and fp16 accumulate in fp32.
 */
#ifndef DT_DEVICE_CUDA_BLAS_H
#define DT_DEVICE_CUDA_BLAS_H

#include "device/cuda/cuda.h"

/* Epilogues: what the library fuses into a product. It supports the activations that the list of
 * device/activations.h marks as fused. */
enum dt_cuda_epilogue {
    DT_CUDA_PLAIN,
    DT_CUDA_BIAS,              /* adds the bias */
    DT_CUDA_ACTIVATE,          /* stores the product in aux and its activation in C */
    DT_CUDA_ACTIVATE_BIAS,     /* both */
    DT_CUDA_ACTIVATE_BACKWARD, /* multiplies by the activation's derivative at aux */
    DT_CUDA_SUMS_A, /* adds the column sums of A (A is transposed) to bias, if C is fp32 */
    DT_CUDA_SUMS_B  /* adds the column sums of B (B is not) likewise */
};

struct dt_cuda_product {
    struct dt_tensor c, a, b; /* strides of at least a row */
    bool transpose_a, transpose_b, accumulate;
    bool replicated; /* never timed: all ranks use the same algorithm, the library's first choice */
    enum dt_cuda_epilogue epilogue;
    struct dt_tensor bias, aux;    /* of C's type; data NULL: none */
    enum dt_activation activation; /* of aux */
};

int dt_cuda_blas_open(struct dt_device *dev, struct dt_error *err);
void dt_cuda_blas_close(struct dt_device *dev);

/* Whether the library supports this product with its epilogue, and is not known to be slower
 * than `instead`, which computes the same otherwise. */
bool dt_cuda_blas_takes(struct dt_device *dev, const struct dt_cuda_product *product,
                        void (*instead)(struct dt_device *, const struct dt_cuda_product *));

/* Enqueues the product. An unsupported product is recorded as the failure of the device. */
void dt_cuda_blas_multiply(struct dt_device *dev, const struct dt_cuda_product *product);

#endif
