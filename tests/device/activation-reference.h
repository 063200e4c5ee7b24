/* SPDX-License-Identifier: MIT */
/* The activations of device/activations.h in double precision, by the C library's functions. */
#ifndef DT_TEST_DEVICE_ACTIVATION_REFERENCE_H
#define DT_TEST_DEVICE_ACTIVATION_REFERENCE_H

#include <math.h>

#include "device/activations.h"

#define DT_FMA(a, b, c)        fma(a, b, c)
#define DT_EXP(x)              exp(x)
#define DT_ERF(x)              erf(x)
#define DT_TANH(x)             tanh(x)
#define DT_SIGMOID(x)          (1 / (1 + exp(-(x))))
#define DT_SIGMOID_SLOPE(a, x) ((a)*DT_SIGMOID(x) * DT_SIGMOID(-(x)))

static inline double activation_reference(enum dt_activation activation, double x)
{
#define VALUE(NAME, name, fused, value, derivative)                                                \
    case DT_ACTIVATION_##NAME:                                                                     \
        return value;
    switch (activation) {
        DT_ACTIVATION_LIST(VALUE)
    }
    return NAN;
}

/* All activations. */
static const struct {
    enum dt_activation activation;
    const char *name;
} activations[] = {
#define ROW(NAME, name, ...) {DT_ACTIVATION_##NAME, name},
    DT_ACTIVATION_LIST(ROW)};
#define ACTIVATIONS (sizeof activations / sizeof *activations)

#endif
