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
 * call these functions, which each engine defines:
 *
 *     DT_EXP(x)              exp(x)
 *     DT_ERF(x)              erf(x)
 *     DT_TANH_STEP(u)        (1 + tanh(u)) / 2
 *     DT_TANH_SLOPE(a, u)    a times the derivative of DT_TANH_STEP at u
 */
#ifndef DT_DEVICE_ACTIVATIONS_H
#define DT_DEVICE_ACTIVATIONS_H

/* GELU (Hendrycks and Gimpel 2016): x times the normal distribution's cumulative function at x, in
 * its tanh approximation ("gelu_new" of GPT-2) and exactly ("gelu" of BERT). */
#define DT_GELU_INNER(x)            (0.7978845608f * ((x) + 0.044715f * (x) * (x) * (x)))
#define DT_GELU_INNER_DERIVATIVE(x) (0.7978845608f * (1.0f + 3.0f * 0.044715f * (x) * (x)))
#define DT_NORMAL_CDF(x)            (0.5f + 0.5f * DT_ERF(0.7071067812f * (x)))

/* clang-format off */
#define DT_ACTIVATION_LIST(X)                                                                      \
    X(NONE, "none", false, x, 1.0f)                                                                \
    X(GELU_TANH, "gelu_tanh", true,                                                                \
      x * DT_TANH_STEP(DT_GELU_INNER(x)),                                                          \
      DT_TANH_STEP(DT_GELU_INNER(x)) +                                                             \
          DT_TANH_SLOPE(x, DT_GELU_INNER(x)) * DT_GELU_INNER_DERIVATIVE(x))                        \
    X(GELU_ERF, "gelu_erf", false,                                                                 \
      x * DT_NORMAL_CDF(x),                                                                        \
      DT_NORMAL_CDF(x) + 0.3989422804f * x * DT_EXP(-0.5f * x * x))
/* clang-format on */

#define DT_ACTIVATION_ENUMERATOR(NAME, ...) DT_ACTIVATION_##NAME,
enum dt_activation { DT_ACTIVATION_LIST(DT_ACTIVATION_ENUMERATOR) };

#endif
