/* SPDX-License-Identifier: MIT */
/* Ops with the bits of dt-arithmetic(7), for those that are faster in another order. */
#ifndef DT_DEVICE_CUDA_CANONICAL_H
#define DT_DEVICE_CUDA_CANONICAL_H

#include "device/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

void dt_cuda_canonical_matmul(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_matmul *);
void dt_cuda_canonical_activation_forward(struct dt_device *, struct dt_tensor *,
                                          const struct dt_tensor *, enum dt_activation);
void dt_cuda_canonical_activation_backward(struct dt_device *, struct dt_tensor *,
                                           const struct dt_tensor *, enum dt_activation);
void dt_cuda_canonical_bias_backward(struct dt_device *, struct dt_tensor *,
                                     const struct dt_tensor *, int);
void dt_cuda_canonical_embedding_backward(struct dt_device *, struct dt_tensor *,
                                          struct dt_tensor *, const struct dt_tensor *,
                                          const int32_t *, int64_t, int);
void dt_cuda_canonical_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                    struct dt_tensor *, const struct dt_tensor *,
                                    const struct dt_tensor *, const struct dt_tensor *,
                                    const struct dt_tensor *, float);
void dt_cuda_canonical_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                     struct dt_tensor *, const struct dt_tensor *,
                                     const struct dt_tensor *, const struct dt_tensor *,
                                     const struct dt_tensor *, int);
void dt_cuda_canonical_rms_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                        struct dt_tensor *, const struct dt_tensor *,
                                        const struct dt_tensor *, const struct dt_tensor *, float,
                                        float);
void dt_cuda_canonical_rms_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                         const struct dt_tensor *, const struct dt_tensor *,
                                         const struct dt_tensor *, float, const struct dt_tensor *,
                                         int);
void dt_cuda_canonical_rope(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                            int64_t, int64_t, int64_t, bool);
void dt_cuda_canonical_gated_forward(struct dt_device *, struct dt_tensor *,
                                     const struct dt_tensor *, const struct dt_tensor *,
                                     enum dt_activation);
void dt_cuda_canonical_gated_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                      const struct dt_tensor *, const struct dt_tensor *,
                                      enum dt_activation);
void dt_cuda_canonical_attention_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                                         const struct dt_tensor *, const struct dt_tensor *,
                                         const struct dt_tensor *, const struct dt_attention *);
void dt_cuda_canonical_attention_backward(struct dt_device *, struct dt_tensor *,
                                          struct dt_tensor *, struct dt_tensor *,
                                          const struct dt_tensor *, const struct dt_tensor *,
                                          const struct dt_tensor *, const struct dt_tensor *,
                                          const struct dt_tensor *, const struct dt_tensor *,
                                          const struct dt_attention *);
void dt_cuda_canonical_map_logits(struct dt_device *, struct dt_tensor *,
                                  const struct dt_logit_map *);
void dt_cuda_canonical_cross_entropy(struct dt_device *, float *, float *, struct dt_tensor *,
                                     const int32_t *, const struct dt_cross_entropy *);
void dt_cuda_canonical_logit_sums(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                                  const int32_t *, const struct dt_logit_parts *,
                                  const struct dt_logit_map *);
void dt_cuda_canonical_cross_entropy_of_sums(struct dt_device *, float *, float *,
                                             struct dt_tensor *, const struct dt_tensor *,
                                             const int32_t *, const struct dt_logit_parts *,
                                             const struct dt_cross_entropy *);
void dt_cuda_canonical_orthonormalize(struct dt_device *, struct dt_tensor *);

#ifdef __cplusplus
}
#endif
#endif
