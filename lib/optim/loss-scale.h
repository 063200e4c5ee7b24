/* SPDX-License-Identifier: MIT */
/*
 * Dynamic loss scaling (Micikevicius et al. 2018): with fp16, gradients are computed
 * times a power of two, so that small ones do not become 0. One that overflows halves
 * the scale, and 2000 updates in a row without one double it.
 */
#ifndef DT_OPTIM_LOSS_SCALE_H
#define DT_OPTIM_LOSS_SCALE_H

#include <stdbool.h>

struct dt_loss_scale {
    double factor; /* 1 where nothing is scaled */
    long updates;  /* in a row, since the factor last changed */
};

struct dt_loss_scale dt_loss_scale_first(void);
/* After an update. */
void dt_loss_scale_grow(struct dt_loss_scale *scale);
/* After an overflow; false if the factor is 1 and cannot be what is wrong. */
bool dt_loss_scale_shrink(struct dt_loss_scale *scale);

#endif
