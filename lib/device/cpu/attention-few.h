/* SPDX-License-Identifier: MIT */
/* Attention of few queries, for attention.c. */
#ifndef DT_DEVICE_CPU_ATTENTION_FEW_H
#define DT_DEVICE_CPU_ATTENTION_FEW_H

#include "device/cpu/attention.h"

#define DT_CPU_FEW_QUERIES 16

/* Whether these are such: causal, with whole rows of keys, and all weights kept. */
bool dt_cpu_has_few_queries(const struct dt_attention *how);
void dt_cpu_attend_few(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                       const struct dt_tensor *q, const struct dt_tensor *k,
                       const struct dt_tensor *v, const struct dt_attention *how);

#endif
