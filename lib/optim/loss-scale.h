/* SPDX-License-Identifier: MIT */
/*
 * Dynamic loss scaling for fp16 (Micikevicius et al. 2018): the loss is multiplied by a
 * power of two, so that small gradients do not underflow. An overflow halves the scale;
 * 2000 consecutive updates without overflow double it.
 */
#ifndef DT_OPTIM_LOSS_SCALE_H
#define DT_OPTIM_LOSS_SCALE_H

#include <stdbool.h>

struct dt_loss_scale {
    double factor; /* 1: no scaling */
    long updates;  /* since the factor last changed */
};

struct dt_loss_scale dt_loss_scale_first(void);
/* Call after an update without overflow. */
void dt_loss_scale_grow(struct dt_loss_scale *scale);
/* Call after an overflow. Returns false if the factor is already 1, so that scaling is not the
 * cause. */
bool dt_loss_scale_shrink(struct dt_loss_scale *scale);

#endif
