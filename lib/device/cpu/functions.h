/* SPDX-License-Identifier: MIT */
/* exp, tanh and erf in plain C without branches, which compilers vectorize the same way on every
 * platform. libm has vector functions on some platforms only. */
#ifndef DT_DEVICE_CPU_FUNCTIONS_H
#define DT_DEVICE_CPU_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* exp(x) to 2 ulp for x from -87 to 88, 0 below and exp(88) above: x = k ln2 + r, a
 * polynomial of degree 6 in r, then k into the exponent. A mask selects the results of other x:
 * compilers turn a choice of constants into branches, which do not vectorize. */
static inline float dt_cpu_exp(float x)
{
    const float log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    float shifted = x * log2e + round;
    float k = shifted - round;
    float r = x - k * ln2_high - k * ln2_low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t bits, exponent;
    memcpy(&exponent, &shifted, sizeof exponent);
    memcpy(&bits, &p, sizeof bits);
    uint32_t below = -(uint32_t)(x < -87.0f), above = -(uint32_t)(x > 88.0f);
    uint32_t none = -(uint32_t)(x != x), largest = 0x7ef882b7;
    bits = ((bits + (exponent << 23)) & ~(below | above)) | (above & largest) | none;
    memcpy(&p, &bits, sizeof p);
    return p;
}

static inline float dt_cpu_tanh(float x)
{
    return 1.0f - 2.0f / (dt_cpu_exp(2.0f * x) + 1.0f);
}

/* (1 + tanh(u)) / 2; dt_cpu_tanh_slope: a times its derivative. */
static inline float dt_cpu_tanh_step(float u)
{
    return 0.5f * (1.0f + dt_cpu_tanh(u));
}

static inline float dt_cpu_tanh_slope(float a, float u)
{
    float t = dt_cpu_tanh(u);
    return 0.5f * a * (1.0f - t * t);
}

/* erf(x) to 2 ulp: below 1 an odd polynomial of degree 13; above, 1 - exp(-q(x)) with a
 * polynomial q of degree 6. Both were fitted for the least relative error of erf. */
static inline float dt_cpu_erf(float x)
{
    float size = fabsf(x), s = x * x;
    float u = size > 4.0f ? 4.0f : size; /* erf is 1 in fp32 from here on */
    float p = 7.854012461e-5f;
    p = p * s - 8.010243758e-4f;
    p = p * s + 5.188334091e-3f;
    p = p * s - 2.685381587e-2f;
    p = p * s + 1.128358527e-1f;
    p = p * s - 3.761262584e-1f;
    p = p * s + 1.283791656e-1f;
    p = p * x + x;
    float q = -2.101823281e-4f;
    q = q * u + 3.183119205e-3f;
    q = q * u - 2.278609213e-2f;
    q = q * u + 1.050966782e-1f;
    q = q * u + 6.358463924e-1f;
    q = q * u + 1.128475579e+0f;
    return size < 1.0f ? p : copysignf(1.0f - dt_cpu_exp(-q * u), x);
}

/* The functions that the expressions of device/activations.h call. */
#define DT_EXP(x)           dt_cpu_exp(x)
#define DT_ERF(x)           dt_cpu_erf(x)
#define DT_TANH_STEP(u)     dt_cpu_tanh_step(u)
#define DT_TANH_SLOPE(a, u) dt_cpu_tanh_slope(a, u)

#endif
