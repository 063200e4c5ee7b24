/* SPDX-License-Identifier: MIT */
#include "optim/loss-statistics.h"

#include <math.h>

#define WINDOW 100

void dt_loss_statistics_add(struct dt_loss_statistics *s, double loss)
{
    s->updates++;
    double weight = s->updates < WINDOW ? 1 / (double)s->updates : 1.0 / WINDOW;
    double distance = loss - s->mean;
    s->mean += weight * distance;
    s->variance = (1 - weight) * (s->variance + weight * distance * distance);
}

bool dt_loss_statistics_is_spike(const struct dt_loss_statistics *s, double loss, double threshold)
{
    return s->updates >= WINDOW && loss - s->mean > threshold * sqrt(s->variance);
}
