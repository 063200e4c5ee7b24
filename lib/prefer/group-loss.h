/* SPDX-License-Identifier: MIT */
/*
 * The loss of group relative policy optimization (GRPO, Shao et al. 2024): a prompt has a group of
 * completions, whose advantage is how far their reward is above the group's mean.
 *
 * With p, q and r the log-probabilities of a token under the model, the sampler and the reference,
 * A the advantage of its completion, and the ratio w = exp(p - q):
 *
 *     loss = -min(w A, clip(w, 1 - low, 1 + high) A) + beta (exp(r - p) - (r - p) - 1)
 *
 * A step's loss is, by kind (the names are TRL's):
 *
 *     dapo       the mean over all tokens of the step (Yu et al. 2025)
 *     grpo       the mean over completions of the mean over their tokens
 *     dr_grpo    the sum over completions / (their number times the most tokens; Liu et al. 2025)
 */
#ifndef DT_PREFER_GROUP_LOSS_H
#define DT_PREFER_GROUP_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "settings/choices.h"

struct dt_group_loss {
    enum dt_grpo_loss kind;
    double beta, clip_low, clip_high;
    long max_new_tokens;
};

/* Advantages of a group of n rewards: reward - mean, with scale divided by the standard deviation
 * (of n - 1 degrees of freedom) + 1e-4. Returns the standard deviation. */
double dt_group_loss_advantages(const double *rewards, long n, bool scale, double *advantages);

/* A token; reference: used with beta above 0. */
struct dt_group_token {
    double log_probability, sampled, reference, advantage;
};
struct dt_group_token_loss {
    double loss, slope; /* slope: of the loss by log_probability */
    double ratio, divergence;
    bool clipped;
};

struct dt_group_token_loss dt_group_loss_of(const struct dt_group_loss *how,
                                            const struct dt_group_token *token);
/* The factor of the losses of a completion of that many tokens, whose sum over the step is divided
 * by the sum of dt_group_loss_count. */
double dt_group_loss_share(const struct dt_group_loss *how, int64_t tokens);
int64_t dt_group_loss_count(const struct dt_group_loss *how, int64_t tokens);

#endif
