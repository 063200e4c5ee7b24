/* SPDX-License-Identifier: MIT */
#include "settings/batch-ramp.h"

#include <limits.h>
#include <math.h>

long dt_batch_passes(const struct dt_settings *s, uint64_t samples)
{
    long last = s->training.gradient_accumulation_steps, first = s->training.batch_ramp_start;
    double tokens = (double)samples * (double)s->training.sequence_length;
    double end = (double)s->training.batch_ramp_tokens;
    if (tokens >= end)
        return last;
    return first + (long)floor((double)(last - first) * (tokens / end));
}

/* How many steps in a row, the one at samples included, have as many passes as that:
 * found by doubling, then by halving, as passes never become fewer. */
static long steps_alike(const struct dt_settings *s, uint64_t samples, long passes)
{
    uint64_t size = (uint64_t)(passes * s->training.batch_size);
    long low = 0, high = 1; /* steps from here that are alike; that are not */
    if (passes == s->training.gradient_accumulation_steps)
        return LONG_MAX;
    for (; dt_batch_passes(s, samples + (uint64_t)high * size) == passes; high *= 2)
        low = high;
    while (high - low > 1) {
        long middle = low + (high - low) / 2;
        bool alike = dt_batch_passes(s, samples + (uint64_t)middle * size) == passes;
        low = alike ? middle : low;
        high = alike ? high : middle;
    }
    return high;
}

/* Walks from the first step to the one that has used at_least samples, or to step most. */
static void walk(const struct dt_settings *s, double at_least, long most, long *steps,
                 uint64_t *samples)
{
    *steps = 0;
    *samples = 0;
    while (*steps < most && (double)*samples < at_least) {
        long passes = dt_batch_passes(s, *samples);
        long alike = steps_alike(s, *samples, passes);
        double size = (double)passes * (double)s->training.batch_size;
        double needed = ceil((at_least - (double)*samples) / size);
        long count = most - *steps < alike ? most - *steps : alike;
        count = needed < (double)count ? (long)needed : count;
        *steps += count;
        *samples += (uint64_t)count * (uint64_t)(passes * s->training.batch_size);
    }
}

uint64_t dt_batch_samples(const struct dt_settings *s, long steps)
{
    uint64_t samples;
    walk(s, INFINITY, steps, &steps, &samples);
    return samples;
}

long dt_batch_steps(const struct dt_settings *s, double at_least, long max_steps)
{
    long steps;
    uint64_t samples;
    walk(s, at_least, max_steps, &steps, &samples);
    return steps;
}
