/* SPDX-License-Identifier: MIT */
/* The functions of device/functions.h, with this engine's fused multiply-add. */
#ifndef DT_DEVICE_CPU_FUNCTIONS_H
#define DT_DEVICE_CPU_FUNCTIONS_H

#include "device/cpu/vector.h"

#define DT_FMA(a, b, c) dt_cpu_fmaf(a, b, c)

#include "device/functions.h"

#endif
