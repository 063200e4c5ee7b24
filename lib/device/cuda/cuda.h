/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of the cuda engine: its ops, stream and scratch memory. Host code is C;
 * kernel files (.cu) are C++ that includes kernel.cuh first.
 *
 * Ops are asynchronous: they enqueue work in one stream. Comments name the places where the host
 * waits. Errors are recorded, and synchronize() reports the first.
 */
#ifndef DT_DEVICE_CUDA_CUDA_H
#define DT_DEVICE_CUDA_CUDA_H

#include <cuda_runtime_api.h>

#include "device/cuda/host/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "device/device.h"
#include "device/gpu-record.h"

#define DT_CUDA_HEAD_CHANNELS 256 /* of a head of attention, at most */

struct dt_cuda_blas;
struct dt_cuda_links;
struct dt_cuda_staging;

/* State of the engine for a device. */
struct dt_cuda {
    int device;
    char isa[64];                  /* name and compute capability of the device */
    struct dt_cuda_stream *stream; /* the stream of all ops */
    int processors;                /* multiprocessors of the device */
    int capability;                /* 80, 90, ... */
    struct dt_gpu_record record;   /* which options are on without their environment variable */
    void *encode_tensor_map;       /* the driver's cuTensorMapEncodeTiled; NULL: no wgmma */
    void *scratch;
    size_t scratch_bytes;
    struct dt_cuda_blas *blas;
    struct dt_cuda_staging *staging;
    struct dt_cuda_links *links; /* NULL: not used yet */
    struct dt_error failure;     /* the first; code DT_OK: none */
};

static inline struct dt_cuda *dt_cuda_of(struct dt_device *dev)
{
    return (struct dt_cuda *)dev->state;
}

/* Whether an environment variable is neither 0 nor empty; `otherwise` if it is not set. */
bool dt_cuda_is_set(const char *variable, bool otherwise);

/* Records a failure, if it is the first. Does nothing for cudaSuccess. */
void dt_cuda_note(struct dt_device *dev, const char *what, cudaError_t error);
void dt_cuda_note_text(struct dt_device *dev, const char *text);

/* Scratch memory of at least `bytes` for one op; the next op in the stream reuses it. 256-byte
 * aligned, uninitialized. NULL, with the failure recorded, if the allocation fails. It grows in
 * the first steps only, by stream-ordered allocation: cudaFree would wait for the whole device,
 * and so for messages in flight. */
void *dt_cuda_scratch(struct dt_device *dev, size_t bytes);

/* A kernel that every build has. */
const void *dt_cuda_any_kernel(void);

/* Memory and transfers. */
void *dt_cuda_allocate(struct dt_device *, size_t);
void dt_cuda_release(struct dt_device *, void *, size_t);
void dt_cuda_upload(struct dt_device *, void *, const void *, size_t);
void dt_cuda_download(struct dt_device *, void *, const void *, size_t);
size_t dt_cuda_available(struct dt_device *);
int dt_cuda_synchronize(struct dt_device *, struct dt_error *);

/* The ops of struct dt_ops. */
void dt_cuda_copy(struct dt_device *, struct dt_tensor *, const struct dt_tensor *);
void dt_cuda_zero(struct dt_device *, struct dt_tensor *);
void dt_cuda_combine(struct dt_device *, struct dt_tensor *, float, const struct dt_tensor *,
                     float);
void dt_cuda_matmul(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                    const struct dt_tensor *, const struct dt_matmul *);
void dt_cuda_dropout(struct dt_device *, struct dt_tensor *, int64_t, const struct dt_dropout *);
void dt_cuda_activation_forward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                                enum dt_activation);
void dt_cuda_activation_backward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                                 enum dt_activation);
void dt_cuda_bias_backward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *, int);
void dt_cuda_embedding_forward(struct dt_device *, struct dt_tensor *, const int32_t *,
                               const struct dt_tensor *, const struct dt_tensor *, int64_t,
                               int64_t);
void dt_cuda_embedding_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                const struct dt_tensor *, const int32_t *, int64_t, int);
void dt_cuda_gather(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                    const int32_t *);
void dt_cuda_scatter(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                     const int32_t *);
void dt_cuda_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                          struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                          const struct dt_tensor *, const struct dt_tensor *, float);
void dt_cuda_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                           struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                           const struct dt_tensor *, const struct dt_tensor *, int);
void dt_cuda_rms_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                              struct dt_tensor *, const struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_tensor *, float, float);
void dt_cuda_rms_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, float, const struct dt_tensor *, int);
void dt_cuda_rope(struct dt_device *, struct dt_tensor *, const struct dt_tensor *, int64_t,
                  int64_t, int64_t, bool);
void dt_cuda_gated_forward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                           const struct dt_tensor *, enum dt_activation);
void dt_cuda_gated_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                            const struct dt_tensor *, const struct dt_tensor *, enum dt_activation);
void dt_cuda_attention_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_attention *);
void dt_cuda_attention_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                struct dt_tensor *, const struct dt_tensor *,
                                const struct dt_tensor *, const struct dt_tensor *,
                                const struct dt_tensor *, const struct dt_tensor *,
                                const struct dt_tensor *, const struct dt_attention *);
void dt_cuda_map_logits(struct dt_device *, struct dt_tensor *, const struct dt_logit_map *);
void dt_cuda_cross_entropy(struct dt_device *, float *, float *, struct dt_tensor *,
                           const int32_t *, const struct dt_cross_entropy *);
void dt_cuda_logit_sums(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                        const int32_t *, const struct dt_logit_parts *,
                        const struct dt_logit_map *);
void dt_cuda_cross_entropy_of_sums(struct dt_device *, float *, float *, struct dt_tensor *,
                                   const struct dt_tensor *, const int32_t *,
                                   const struct dt_logit_parts *, const struct dt_cross_entropy *);
double dt_cuda_sum_squares(struct dt_device *, const float *, int64_t);
void dt_cuda_exact_sum(struct dt_device *, struct dt_exact_sum *, const float *, int64_t, bool);
void dt_cuda_take_largest(struct dt_device *, float *, int64_t, int64_t, int32_t *, float *);
void dt_cuda_orthonormalize(struct dt_device *, struct dt_tensor *);
void dt_cuda_update(struct dt_device *, float *, float *const *, const float *, int64_t,
                    const struct dt_update *);
void dt_cuda_hash(struct dt_device *, struct dt_sum_hash *, const struct dt_tensor *, uint64_t,
                  uint64_t, uint64_t);

#ifdef __cplusplus
}
#endif
#endif
