/* SPDX-License-Identifier: MIT */
/* The ops of the cpu engine, its state and its scratch memory. */
#ifndef DT_DEVICE_CPU_CPU_H
#define DT_DEVICE_CPU_CPU_H

#include <stdint.h>
#include <string.h>

#include "device/cpu/elements.h"
#include "device/cpu/functions.h"
#include "device/device.h"

void dt_cpu_copy(struct dt_device *, struct dt_tensor *, const struct dt_tensor *);
void dt_cpu_zero(struct dt_device *, struct dt_tensor *);
void dt_cpu_combine(struct dt_device *, struct dt_tensor *, float, const struct dt_tensor *, float);
void dt_cpu_matmul(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                   const struct dt_tensor *, const struct dt_matmul *);
bool dt_cpu_store_panels(struct dt_device *, struct dt_tensor *, bool columns);
void dt_cpu_dropout(struct dt_device *, struct dt_tensor *, int64_t, const struct dt_dropout *);
void dt_cpu_activation_forward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                               enum dt_activation);
void dt_cpu_activation_backward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                                enum dt_activation);
void dt_cpu_bias_backward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *, int);
void dt_cpu_embedding_forward(struct dt_device *, struct dt_tensor *, const int32_t *,
                              const struct dt_tensor *, const struct dt_tensor *, int64_t, int64_t);
void dt_cpu_embedding_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                               const struct dt_tensor *, const int32_t *, int64_t, int);
void dt_cpu_gather(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                   const int32_t *);
void dt_cpu_scatter(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                    const int32_t *);
void dt_cpu_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                         struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                         const struct dt_tensor *, const struct dt_tensor *, float);
void dt_cpu_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                          struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                          const struct dt_tensor *, const struct dt_tensor *, int);
void dt_cpu_rms_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                             struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                             const struct dt_tensor *, float, float);
void dt_cpu_rms_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_tensor *,
                              const struct dt_tensor *, float, const struct dt_tensor *, int);
void dt_cpu_rope(struct dt_device *, struct dt_tensor *, const struct dt_tensor *, int64_t, int64_t,
                 int64_t, bool);
void dt_cpu_gated_forward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                          const struct dt_tensor *, enum dt_activation);
void dt_cpu_gated_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                           const struct dt_tensor *, const struct dt_tensor *, enum dt_activation);
void dt_cpu_attention_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_attention *);
void dt_cpu_attention_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                               struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_attention *);
void dt_cpu_map_logits(struct dt_device *, struct dt_tensor *, const struct dt_logit_map *);
void dt_cpu_cross_entropy(struct dt_device *, float *, float *, struct dt_tensor *, const int32_t *,
                          const struct dt_cross_entropy *);
void dt_cpu_logit_sums(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                       const int32_t *, const struct dt_logit_parts *, const struct dt_logit_map *);
void dt_cpu_cross_entropy_of_sums(struct dt_device *, float *, float *, struct dt_tensor *,
                                  const struct dt_tensor *, const int32_t *,
                                  const struct dt_logit_parts *, const struct dt_cross_entropy *);
double dt_cpu_sum_squares(struct dt_device *, const float *, int64_t);
void dt_cpu_exact_sum(struct dt_device *, struct dt_exact_sum *, const float *, int64_t, bool);
void dt_cpu_take_largest(struct dt_device *, float *, int64_t, int64_t, int32_t *, float *);
void dt_cpu_orthonormalize(struct dt_device *, struct dt_tensor *);
void dt_cpu_update(struct dt_device *, float *, float *const *, const float *, int64_t,
                   const struct dt_update *);
void dt_cpu_hash(struct dt_device *, struct dt_sum_hash *, const struct dt_tensor *, uint64_t,
                 uint64_t, uint64_t);

/* Rows of n: y = activation of x; dy *= the activation's derivative at x. */
void dt_cpu_activate(float *y, const float *x, int64_t n, enum dt_activation);
void dt_cpu_activate_backward(float *restrict dy, const float *restrict x, int64_t n,
                              enum dt_activation);

/* Row row of x, which has panels, as fp32. */
void dt_cpu_load_from_panel(const struct dt_tensor *x, int64_t row, float *to);

/* dev->state. */
int dt_cpu_state_open(struct dt_device *dev, struct dt_error *err) DT_MUST_CHECK;
void dt_cpu_state_close(struct dt_device *dev);

/* Scratch memory of a thread, at least size floats, which its next call reuses; and a buffer that
 * the threads of an op share, requested before they start. */
float *dt_cpu_scratch(struct dt_device *dev, int thread, size_t size);
float *dt_cpu_shared_scratch(struct dt_device *dev, size_t size);

/* Exits with one line and status 1, for ops, which do not return errors. Not exit(), which would
 * run destructors of libraries while other threads are inside them. */
void dt_cpu_end(const char *reason, const char *what) __attribute__((noreturn));
/* what: the allocation that failed. */
void dt_cpu_no_memory(const char *what) __attribute__((noreturn));

/* bf16 matrix products, opened on first use by one thread; NULL if this machine does not support
 * them. */
struct dt_cpu_bf16 *dt_cpu_bf16(struct dt_device *dev);
/* The kernel of products with panels of bf16 (gemm/bf16-panels.h), or NULL; asked by one thread. */
const struct dt_cpu_bf16_kernel *dt_cpu_bf16_kernel(struct dt_device *dev);

/* With fewer multiplications, one thread is faster than waking up others. */
#define DT_CPU_SMALL_WORK 32768

/* Computes row number row of sum = x + add (add NULL: sum = x, which may be the same memory), and
 * returns it as stored, after rounding, so that backward can recompute what follows. scratch: 2
 * rows unless all are fp32. */
const float *dt_cpu_sum_row(const struct dt_tensor *sum, const struct dt_tensor *x,
                            const struct dt_tensor *add, int64_t row, float *scratch);

/* Part number i of count of the range 0 .. n, divided at multiples of unit. */
static inline void dt_cpu_share(int64_t n, int64_t unit, int64_t i, int64_t count, int64_t *from,
                                int64_t *to)
{
    int64_t units = (n + unit - 1) / unit;
    *from = units * i / count * unit;
    *to = units * (i + 1) / count * unit;
    *to = *to < n ? *to : n;
    *from = *from < n ? *from : n;
}

#endif
