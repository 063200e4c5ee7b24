/* SPDX-License-Identifier: MIT */
#include "optim/learning-rate.h"

#include <math.h>

#include "math/math.h"

/* Progress of a decay over steps first to end - 1, from 0 to 1. */
static double progress(long step, long first, long end)
{
    if (step < first)
        return 0;
    double fraction = end - first > 1 ? (double)(step - first) / (double)(end - first - 1) : 1;
    return fraction < 1 ? fraction : 1;
}

static long stable_end(const struct dt_settings *s)
{
    long steps = s->training.max_steps - s->training.schedule_start;
    long warmup = s->training.warmup_steps;
    long end = steps - lround(s->training.decay_fraction * (double)steps);
    return end > warmup ? end : warmup;
}

double dt_learning_rate(const struct dt_settings *s, long step)
{
    double peak = s->training.learning_rate, low = peak * s->training.min_learning_rate_ratio;
    long warmup = s->training.warmup_steps;
    long end = s->training.max_steps - s->training.schedule_start;
    step -= s->training.schedule_start;
    if (step < warmup)
        return peak * (double)(step + 1) / (double)warmup;
    switch ((enum dt_lr_schedule)s->training.schedule) {
    case DT_LR_SCHEDULE_CONSTANT:
        break;
    case DT_LR_SCHEDULE_LINEAR:
        return peak - (peak - low) * progress(step, warmup, end);
    case DT_LR_SCHEDULE_COSINE:
        return low + 0.5 * (peak - low) * (1 + dt_math_cos(M_PI * progress(step, warmup, end)));
    case DT_LR_SCHEDULE_WSD:
        return peak - (peak - low) * progress(step, stable_end(s), end);
    case DT_LR_SCHEDULE_INVERSE_SQRT:
        return fmax(low, peak * sqrt(fmax((double)warmup, 1) / (double)(step + 1)));
    }
    return peak;
}
