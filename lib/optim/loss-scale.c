/* SPDX-License-Identifier: MIT */
#include "optim/loss-scale.h"

#define INITIAL         65536
#define LARGEST         16777216
#define GROWTH_INTERVAL 2000

struct dt_loss_scale dt_loss_scale_first(void)
{
    return (struct dt_loss_scale){.factor = INITIAL};
}

void dt_loss_scale_grow(struct dt_loss_scale *s)
{
    if (++s->updates < GROWTH_INTERVAL)
        return;
    s->updates = 0;
    s->factor = 2 * s->factor <= LARGEST ? 2 * s->factor : LARGEST;
}

bool dt_loss_scale_shrink(struct dt_loss_scale *s)
{
    if (s->factor <= 1)
        return false;
    s->factor /= 2;
    s->updates = 0;
    return true;
}
