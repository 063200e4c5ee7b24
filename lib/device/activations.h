/* SPDX-License-Identifier: MIT */
/*
 * Activation functions. An activation is one entry of this list:
 *
 *     X(NAME, "name", fused, f(x), f'(x))
 *
 * The enum, the kernels of each engine, the choice of fused epilogues and the tests of
 * tests/device expand it; an entry without its derivative does not compile.
 *
 * fused: cuBLASLt's epilogues GELU_AUX and DGELU compute f and f'.
 * f(x), f'(x): expressions of fp32 x without branches, which the cpu engine vectorizes. They may
 * call these functions of device/functions.h:
 *
 *     DT_FMA(a, b, c)           a b + c, rounded once
 *     DT_EXP(x)                 exp(x)
 *     DT_ERF(x)                 erf(x)
 *     DT_TANH(x)                tanh(x)
 *     DT_SIGMOID(x)             1 / (1 + exp(-x))
 *     DT_SIGMOID_SLOPE(a, x)    a times its derivative
 */
#ifndef DT_DEVICE_ACTIVATIONS_H
#define DT_DEVICE_ACTIVATIONS_H

/* GELU (Hendrycks and Gimpel 2016): x times the normal distribution's cumulative function at x, in
 * its tanh approximation ("gelu_new" of GPT-2) and exactly ("gelu" of BERT). The former has
 * (1 + tanh(u)) / 2, which is the logistic function of 2 u: DT_GELU_INNER is 2 u, with the factors
 * 2 sqrt(2 / pi) and 0.044715 times that. SILU (Elfwing et al. 2018) is x times the logistic
 * function. */
#define DT_GELU_INNER(x)            ((x)*DT_FMA((x) * (x), 0x1.2444f2p-4f, 0x1.988454p+0f))
#define DT_GELU_INNER_DERIVATIVE(x) DT_FMA((x) * (x), 0x1.b6676cp-3f, 0x1.988454p+0f)
#define DT_NORMAL_CDF(x)            DT_FMA(0.5f, DT_ERF(0x1.6a09e6p-1f * (x)), 0.5f)
#define DT_NORMAL_DENSITY(x)        (0x1.988454p-2f * DT_EXP(-0.5f * (x) * (x)))

/* clang-format off */
#define DT_ACTIVATION_LIST(X)                                                                      \
    X(NONE, "none", false, x, 1.0f)                                                                \
    X(GELU_TANH, "gelu_tanh", true,                                                                \
      x * DT_SIGMOID(DT_GELU_INNER(x)),                                                            \
      DT_FMA(DT_SIGMOID_SLOPE(x, DT_GELU_INNER(x)), DT_GELU_INNER_DERIVATIVE(x),                   \
             DT_SIGMOID(DT_GELU_INNER(x))))                                                        \
    X(GELU_ERF, "gelu_erf", false,                                                                 \
      x * DT_NORMAL_CDF(x),                                                                        \
      DT_FMA(x, DT_NORMAL_DENSITY(x), DT_NORMAL_CDF(x)))                                           \
    X(SILU, "silu", false,                                                                         \
      x * DT_SIGMOID(x),                                                                           \
      DT_SIGMOID(x) * DT_FMA(x, 1.0f - DT_SIGMOID(x), 1.0f))                                       \
    X(TANH, "tanh", false, DT_TANH(x), DT_FMA(-DT_TANH(x), DT_TANH(x), 1.0f))                      \
    X(RELU, "relu", false, x * (float)(x > 0.0f), (float)(x > 0.0f))
/* clang-format on */

#define DT_ACTIVATION_ENUMERATOR(NAME, ...) DT_ACTIVATION_##NAME,
enum dt_activation { DT_ACTIVATION_LIST(DT_ACTIVATION_ENUMERATOR) };

#endif
