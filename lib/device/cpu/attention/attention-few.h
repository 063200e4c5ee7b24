/* SPDX-License-Identifier: MIT */
/* Forward of attention for few queries (decoding), for attention.c. */
#ifndef DT_DEVICE_CPU_ATTENTION_FEW_H
#define DT_DEVICE_CPU_ATTENTION_FEW_H

#include "device/cpu/attention/attention.h"

#define DT_CPU_FEW_QUERIES 16

/* Whether dt_cpu_attend_few supports this call: few queries, causal mask, all keys at once, without
 * documents, padding and dropout. */
bool dt_cpu_has_few_queries(const struct dt_attention *how);
void dt_cpu_attend_few(struct dt_device *dev, struct dt_tensor *y, struct dt_tensor *lse,
                       const struct dt_tensor *q, const struct dt_tensor *k,
                       const struct dt_tensor *v, const struct dt_attention *how);

#endif
