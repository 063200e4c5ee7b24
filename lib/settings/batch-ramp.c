/* SPDX-License-Identifier: MIT */
#include "settings/batch-ramp.h"

#include <limits.h>
#include <math.h>

long dt_batch_passes(const struct dt_settings *s, uint64_t samples)
{
    long last = s->training.gradient_accumulation_steps, first = s->training.batch_ramp_start;
    double tokens = (double)samples * (double)dt_settings_sample_tokens(s);
    double end = (double)s->training.batch_ramp_tokens;
    if (tokens >= end)
        return last;
    return first + (long)floor((double)(last - first) * (tokens / end));
}

/* The number of consecutive steps, from the one at samples on, with the same number of
 * micro-batches. It never decreases, so bisection finds the end. */
static long equal_steps(const struct dt_settings *s, uint64_t samples, long passes)
{
    uint64_t size = (uint64_t)(passes * s->training.batch_size);
    long low = 0, high = 1; /* steps with the same number; with another */
    if (passes == s->training.gradient_accumulation_steps)
        return LONG_MAX;
    for (; dt_batch_passes(s, samples + (uint64_t)high * size) == passes; high *= 2)
        low = high;
    while (high - low > 1) {
        long middle = low + (high - low) / 2;
        bool equal = dt_batch_passes(s, samples + (uint64_t)middle * size) == passes;
        low = equal ? middle : low;
        high = equal ? high : middle;
    }
    return high;
}

/* Advances from the first step, or that of a branch, until at_least samples were used, or to step
 * most. */
static void advance(const struct dt_settings *s, double at_least, long most, long *steps,
                    double *samples)
{
    *steps = s->branch.step;
    *samples = (double)s->branch.samples;
    while (*steps < most && *samples < at_least) {
        long passes = dt_batch_passes(s, (uint64_t)*samples);
        long equal = equal_steps(s, (uint64_t)*samples, passes);
        double size = (double)passes * (double)s->training.batch_size;
        double needed = ceil((at_least - *samples) / size);
        long count = most - *steps < equal ? most - *steps : equal;
        count = needed < (double)count ? (long)needed : count;
        *steps += count;
        *samples += (double)count * size;
    }
}

double dt_batch_samples(const struct dt_settings *s, long steps)
{
    double samples;
    advance(s, INFINITY, steps, &steps, &samples);
    return samples;
}

long dt_batch_steps(const struct dt_settings *s, double at_least, long max_steps)
{
    long steps;
    double samples;
    advance(s, at_least, max_steps, &steps, &samples);
    return steps;
}
