/* SPDX-License-Identifier: MIT */
#include "optim/loss-scale.h"

#define FIRST      65536
#define MOST       16777216
#define UNTIL_GROW 2000

struct dt_loss_scale dt_loss_scale_first(void)
{
    return (struct dt_loss_scale){.factor = FIRST};
}

void dt_loss_scale_grow(struct dt_loss_scale *s)
{
    if (++s->updates < UNTIL_GROW)
        return;
    s->updates = 0;
    s->factor = 2 * s->factor <= MOST ? 2 * s->factor : MOST;
}

bool dt_loss_scale_shrink(struct dt_loss_scale *s)
{
    if (s->factor <= 1)
        return false;
    s->factor /= 2;
    s->updates = 0;
    return true;
}
