/* SPDX-License-Identifier: MIT */
/*
 * Products through cuBLASLt. For each shape, type, layout and epilogue there is a plan
 * that is kept: which of the library's algorithms to run. It is the library's own choice
 * at first; when a product comes again and again, the fastest of several that are timed
 * (not with DT_CUDA_TUNE=0: then the same run has the same bits every time).
 *
 * fp32 is multiplied as fp32, unless DT_CUDA_TF32=1 allows tensor cores, which cut its
 * significands to 10 bits. bf16 and fp16 are summed in fp32.
 */
#ifndef DT_DEVICE_CUDA_BLAS_H
#define DT_DEVICE_CUDA_BLAS_H

#include "device/cuda/cuda.h"

/* What the library does beside a product, or to it before it stores it; activations as far as the
 * list of device/activations.h calls them fused. */
enum dt_cuda_epilogue {
    DT_CUDA_PLAIN,
    DT_CUDA_BIAS,              /* adds bias */
    DT_CUDA_ACTIVATE,          /* stores the product in aux and its activation in C */
    DT_CUDA_ACTIVATE_BIAS,     /* both */
    DT_CUDA_ACTIVATE_BACKWARD, /* times the activation's derivative at aux */
    DT_CUDA_SUMS_A, /* adds the column sums of A (A is transposed) to bias, if C is fp32 */
    DT_CUDA_SUMS_B  /* adds the column sums of B (B is not) likewise */
};

struct dt_cuda_product {
    struct dt_tensor c, a, b; /* strides of at least a row */
    bool transpose_a, transpose_b, accumulate;
    bool replicated; /* never timed: the library's first choice, which is every rank's */
    enum dt_cuda_epilogue epilogue;
    struct dt_tensor bias, aux;    /* of C's type; data NULL: none */
    enum dt_activation activation; /* of aux */
};

int dt_cuda_blas_open(struct dt_device *dev, struct dt_error *err);
void dt_cuda_blas_close(struct dt_device *dev);

/* Whether the library has this product with its epilogue, and is not known to be slower
 * than instead, which does the same by other means. */
bool dt_cuda_blas_takes(struct dt_device *dev, const struct dt_cuda_product *product,
                        void (*instead)(struct dt_device *, const struct dt_cuda_product *));

/* Puts the product into the stream. A product that the library does not have is noted as
 * the device's failure. */
void dt_cuda_blas_multiply(struct dt_device *dev, const struct dt_cuda_product *product);

#endif
