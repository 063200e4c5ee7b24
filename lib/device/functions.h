/* SPDX-License-Identifier: MIT */
/*
 * exp, log, erf, tanh and the logistic function in fp32, of all engines: sequences of IEEE
 * operations without branches, which compilers vectorize, with the same bits on every machine. libm
 * differs between machines. dt-arithmetic(7) has their largest errors.
 *
 * An engine defines, before it includes this file,
 *
 *     DT_FMA(a, b, c)    a b + c with one rounding
 *     DT_FUNCTION        the qualifiers of an inline function
 *
 * and compiles it without contraction. A mask selects between results: compilers turn a choice
 * into branches, which do not vectorize.
 */
#ifndef DT_DEVICE_FUNCTIONS_H
#define DT_DEVICE_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef DT_FUNCTION
#define DT_FUNCTION static inline
#endif
#ifndef DT_FMA
#define DT_FMA(a, b, c) fmaf(a, b, c)
#endif

DT_FUNCTION uint32_t dt_device_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

DT_FUNCTION float dt_device_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) to 1 ulp; 0 where it is below 2^-126, the least normal number. x = k ln2 + r, with ln2 in
 * two parts; then a polynomial of degree 6 in r, and k is added to its exponent. */
DT_FUNCTION float dt_device_exp(float x)
{
    const float round = 0x1.8p+23f; /* adding it rounds to a whole number */
    float shifted = DT_FMA(x, 0x1.715476p+0f, round);
    float k = shifted - round;
    float r = DT_FMA(k, -0x1.62e43p-1f, x);
    r = DT_FMA(k, 0x1.05c61p-29f, r);
    float p = 0x1.6ac744p-10f;
    p = DT_FMA(p, r, 0x1.123dep-7f);
    p = DT_FMA(p, r, 0x1.555858p-5f);
    p = DT_FMA(p, r, 0x1.55548cp-3f);
    p = DT_FMA(p, r, 0x1.fffffcp-2f);
    p = DT_FMA(p, r, 1.0f);
    p = DT_FMA(p, r, 1.0f);
    uint32_t none = -(uint32_t)(x != x);
    uint32_t below = -(uint32_t)(x < -0x1.5d589ep+6f), above = -(uint32_t)(x > 0x1.62e42ep+6f);
    uint32_t bits = dt_device_bits(p) + (dt_device_bits(shifted) << 23);
    return dt_device_from_bits((bits & ~(below | above)) | (above & 0x7f800000) | none);
}

/* log(x) to 1 ulp; minus infinity at 0, NaN below. x = 2^k (1 + f) with 1 + f from 2/3 to 4/3, and
 * log(1 + f) = f + f^2 times a polynomial of degree 8. Subnormal x is scaled first. */
DT_FUNCTION float dt_device_log(float x)
{
    uint32_t subnormal = -(uint32_t)(x < 0x1p-126f);
    uint32_t bits = (dt_device_bits(x * 0x1p23f) & subnormal) | (dt_device_bits(x) & ~subnormal);
    uint32_t exponent = (bits - 0x3f2aaaab) & 0xff800000;
    float f = dt_device_from_bits(bits - exponent) - 1.0f;
    float k = (float)((int32_t)exponent >> 23) - dt_device_from_bits(subnormal & 0x41b80000);
    float p = -0x1.06bcd4p-3f;
    p = DT_FMA(p, f, 0x1.1e9c54p-3f);
    p = DT_FMA(p, f, -0x1.f3ae04p-4f);
    p = DT_FMA(p, f, 0x1.1ecaa6p-3f);
    p = DT_FMA(p, f, -0x1.5597ep-3f);
    p = DT_FMA(p, f, 0x1.99d11p-3f);
    p = DT_FMA(p, f, -0x1.ffff14p-3f);
    p = DT_FMA(p, f, 0x1.555504p-2f);
    p = DT_FMA(p, f, -0.5f);
    p = DT_FMA(p, f * f, f);
    p = DT_FMA(k, 0x1.62e43p-1f, p);
    uint32_t zero = -(uint32_t)(x == 0), none = -(uint32_t) !(x >= 0);
    uint32_t infinite = -(uint32_t)(x > 0x1.fffffep+127f);
    bits = dt_device_bits(p) & ~(zero | infinite);
    return dt_device_from_bits(bits | (zero & 0xff800000) | (infinite & 0x7f800000) | none);
}

/* erf(x) to 1.2 ulp: below 1 an odd polynomial of degree 13; above, 1 - exp(-q(x)) with a
 * polynomial q of degree 6. Both were fitted for the least relative error of erf. */
DT_FUNCTION float dt_device_erf(float x)
{
    float size = fabsf(x), s = x * x;
    uint32_t bits = dt_device_bits(size), four = 0x40800000; /* erf is 1 in fp32 from 4 on */
    float u = dt_device_from_bits(bits < four ? bits : four);
    float p = 0x1.496bd2p-14f;
    p = DT_FMA(p, s, -0x1.a3f7acp-11f);
    p = DT_FMA(p, s, 0x1.5405cep-8f);
    p = DT_FMA(p, s, -0x1.b7f912p-6f);
    p = DT_FMA(p, s, 0x1.ce2cf8p-4f);
    p = DT_FMA(p, s, -0x1.81273ep-2f);
    p = DT_FMA(p, s, 0x1.06eba8p-3f);
    p = DT_FMA(p, x, x);
    float q = -0x1.b8c8c8p-13f;
    q = DT_FMA(q, u, 0x1.a137c2p-9f);
    q = DT_FMA(q, u, -0x1.7553ccp-6f);
    q = DT_FMA(q, u, 0x1.ae79dap-4f);
    q = DT_FMA(q, u, 0x1.458da8p-1f);
    q = DT_FMA(q, u, 0x1.20e3c6p+0f);
    float far = 1.0f - dt_device_exp(-q * u);
    uint32_t near = -(uint32_t) !(size >= 1.0f), sign = dt_device_bits(x) & 0x80000000;
    return dt_device_from_bits((dt_device_bits(p) & near) | ((dt_device_bits(far) | sign) & ~near));
}

/* tanh(x) to 1.4 ulp: below 5/8 an odd polynomial of degree 11, fitted for the least relative
 * error; above, 1 - 2 / (exp(2 x) + 1). */
DT_FUNCTION float dt_device_tanh(float x)
{
    float size = fabsf(x), s = x * x;
    float p = -0x1.75e1ccp-8f;
    p = DT_FMA(p, s, 0x1.52269ap-6f);
    p = DT_FMA(p, s, -0x1.b83c5ap-5f);
    p = DT_FMA(p, s, 0x1.110726p-3f);
    p = DT_FMA(p, s, -0x1.555532p-2f);
    p = DT_FMA(p * s, x, x);
    float far = 1.0f - 2.0f / (dt_device_exp(size + size) + 1.0f);
    uint32_t near = -(uint32_t) !(size >= 0.625f), sign = dt_device_bits(x) & 0x80000000;
    return dt_device_from_bits((dt_device_bits(p) & near) | (dt_device_bits(far) & ~near) | sign);
}

/* 1 / (1 + exp(-x)); and a times its derivative. */
DT_FUNCTION float dt_device_sigmoid(float x)
{
    return 1.0f / (1.0f + dt_device_exp(-x));
}

DT_FUNCTION float dt_device_sigmoid_slope(float a, float x)
{
    float s = dt_device_sigmoid(x);
    return a * s * (1.0f - s);
}

/* The functions that the expressions of device/activations.h and device/logit-map.h call. */
#define DT_EXP(x)              dt_device_exp(x)
#define DT_ERF(x)              dt_device_erf(x)
#define DT_TANH(x)             dt_device_tanh(x)
#define DT_SIGMOID(x)          dt_device_sigmoid(x)
#define DT_SIGMOID_SLOPE(a, x) dt_device_sigmoid_slope(a, x)

#endif
