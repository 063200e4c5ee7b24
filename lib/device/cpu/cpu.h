/* SPDX-License-Identifier: MIT */
/* What the files of the cpu engine share: its ops, its scratch memory, and the
 * few functions of mathematics that must vectorize the same way everywhere. */
#ifndef DT_DEVICE_CPU_CPU_H
#define DT_DEVICE_CPU_CPU_H

#include <stdint.h>
#include <string.h>

#include "device/device.h"

void dt_cpu_copy(struct dt_device *, struct dt_tensor *, const struct dt_tensor *);
void dt_cpu_zero(struct dt_device *, struct dt_tensor *);
void dt_cpu_combine(struct dt_device *, struct dt_tensor *, float, const struct dt_tensor *, float);
void dt_cpu_matmul(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                   const struct dt_tensor *, const struct dt_matmul *);
void dt_cpu_dropout(struct dt_device *, struct dt_tensor *, int64_t, const struct dt_dropout *);
void dt_cpu_bias_backward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *);
void dt_cpu_embedding_forward(struct dt_device *, struct dt_tensor *, const int32_t *,
                              const struct dt_tensor *, const struct dt_tensor *, int64_t, int64_t);
void dt_cpu_embedding_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                               const struct dt_tensor *, const int32_t *, int64_t);
void dt_cpu_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                         struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                         const struct dt_tensor *, const struct dt_tensor *, float);
void dt_cpu_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                          struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                          const struct dt_tensor *, const struct dt_tensor *);
void dt_cpu_rms_norm_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                             struct dt_tensor *, const struct dt_tensor *, const struct dt_tensor *,
                             const struct dt_tensor *, float);
void dt_cpu_rms_norm_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_tensor *);
void dt_cpu_rope(struct dt_device *, struct dt_tensor *, const struct dt_tensor *, int64_t, int64_t,
                 bool);
void dt_cpu_swiglu_forward(struct dt_device *, struct dt_tensor *, const struct dt_tensor *,
                           const struct dt_tensor *);
void dt_cpu_swiglu_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                            const struct dt_tensor *, const struct dt_tensor *);
void dt_cpu_attention_forward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_tensor *,
                              const struct dt_tensor *, const struct dt_attention *);
void dt_cpu_attention_backward(struct dt_device *, struct dt_tensor *, struct dt_tensor *,
                               struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_tensor *,
                               const struct dt_tensor *, const struct dt_attention *);
void dt_cpu_cross_entropy(struct dt_device *, float *, float *, struct dt_tensor *, const int32_t *,
                          const struct dt_cross_entropy *);
double dt_cpu_sum_squares(struct dt_device *, const float *, int64_t);
double dt_cpu_sum(struct dt_device *, const float *, int64_t);
void dt_cpu_adamw(struct dt_device *, float *, float *, float *, const float *, int64_t,
                  const struct dt_adamw *);
void dt_cpu_sgd(struct dt_device *, float *, float *, const float *, int64_t,
                const struct dt_sgd *);

/* Scratch of one thread, at least size floats, kept from call to call. */
float *dt_cpu_scratch(struct dt_device *dev, int thread, size_t size);

/* One thread's product, row-major as everything here: C = op(A) op(B) * alpha + C * beta. */
void dt_cpu_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha,
                  const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                  int64_t ldc);

static inline float *dt_cpu_row(const struct dt_tensor *x, int64_t row)
{
    return (float *)x->data + row * x->stride;
}

/* Row number row of sum = x + add (add NULL: of sum = x, which may be the same memory). */
static inline float *dt_cpu_sum_row(const struct dt_tensor *sum, const struct dt_tensor *x,
                                    const struct dt_tensor *add, int64_t row)
{
    float *to = dt_cpu_row(sum, row);
    const float *from = dt_cpu_row(x, row);
    if (add) {
        const float *restrict more = dt_cpu_row(add, row);
        for (int64_t j = 0; j < x->columns; j++)
            to[j] = from[j] + more[j];
    } else if (to != from) {
        memcpy(to, from, (size_t)x->columns * sizeof *to);
    }
    return to;
}

/* Part number i of count of 0 .. n, cut at multiples of unit. */
static inline void dt_cpu_share(int64_t n, int64_t unit, int64_t i, int64_t count, int64_t *from,
                                int64_t *to)
{
    int64_t units = (n + unit - 1) / unit;
    *from = units * i / count * unit;
    *to = units * (i + 1) / count * unit;
    *to = *to < n ? *to : n;
    *from = *from < n ? *from : n;
}

/* exp(x) to 2 ulp over the fp32 range, 0 below it: x = k ln2 + r, a polynomial
 * of degree 6 in r, then k into the exponent. Plain C without branches, so that
 * compilers vectorize it; libm's vector functions exist on some platforms only. */
static inline float dt_cpu_exp(float x)
{
    const float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    float clamped = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    float shifted = clamped * log2e + round;
    float k = shifted - round;
    float r = clamped - k * ln2_high - k * ln2_low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits, exponent;
    memcpy(&exponent, &shifted, sizeof exponent);
    memcpy(&bits, &p, sizeof bits);
    bits += (int32_t)((uint32_t)exponent << 23);
    memcpy(&p, &bits, sizeof p);
    return x < -87.0f ? 0.0f : p;
}

static inline float dt_cpu_tanh(float x)
{
    return 1.0f - 2.0f / (dt_cpu_exp(2.0f * x) + 1.0f);
}

#endif
