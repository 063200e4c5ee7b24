/* SPDX-License-Identifier: MIT */
#include "prefer/group-loss.h"

#include <math.h>

#include "math/math.h"

#define LEAST_DEVIATION 1e-4 /* as TRL */

/* Of equal rewards exactly that: a sum of them is rounded, and the small deviation that divides the
 * difference would make an advantage of it. */
static double mean_of(const double *rewards, long n)
{
    double sum = 0;
    bool equal = true;
    for (long i = 0; i < n; i++) {
        sum += rewards[i];
        equal = equal && rewards[i] == rewards[0];
    }
    return equal ? rewards[0] : sum / (double)n;
}

double dt_group_loss_advantages(const double *rewards, long n, bool scale, double *advantages)
{
    double mean = mean_of(rewards, n), squares = 0;
    for (long i = 0; i < n; i++)
        squares += (rewards[i] - mean) * (rewards[i] - mean);
    double deviation = sqrt(squares / (double)(n - 1));
    for (long i = 0; i < n; i++)
        advantages[i] = (rewards[i] - mean) / (scale ? deviation + LEAST_DEVIATION : 1);
    return deviation;
}

struct dt_group_token_loss dt_group_loss_of(const struct dt_group_loss *how,
                                            const struct dt_group_token *t)
{
    struct dt_group_token_loss r = {.ratio = dt_math_exp(t->log_probability - t->sampled)};
    double a = t->advantage, low = 1 - how->clip_low, high = 1 + how->clip_high;
    double kept = r.ratio < low ? low : r.ratio > high ? high : r.ratio;
    r.clipped = r.ratio * a > kept * a;
    r.loss = r.clipped ? -kept * a : -r.ratio * a;
    r.slope = r.clipped ? 0 : -r.ratio * a;
    if (how->beta > 0) {
        double distance = t->reference - t->log_probability, power = dt_math_exp(distance);
        r.divergence = power - distance - 1;
        r.loss += how->beta * r.divergence;
        r.slope += how->beta * (1 - power);
    }
    return r;
}

double dt_group_loss_share(const struct dt_group_loss *how, int64_t tokens)
{
    switch (how->kind) {
    case DT_GRPO_LOSS_DAPO:
        return 1;
    case DT_GRPO_LOSS_GRPO:
        return 1 / (double)tokens;
    case DT_GRPO_LOSS_DR_GRPO:
        return 1 / (double)how->max_new_tokens;
    }
    return 1;
}

int64_t dt_group_loss_count(const struct dt_group_loss *how, int64_t tokens)
{
    return how->kind == DT_GRPO_LOSS_DAPO ? tokens : 1;
}
