/* SPDX-License-Identifier: MIT */
/*
 * Losses of direct preference optimization. With p the log-probability of an answer, and
 * h = (p(chosen) - p(rejected)) - (the same of the reference model):
 *
 *     sigmoid    -(1 - s) log sigmoid(beta h) - s log sigmoid(-beta h)      Rafailov et al. 2023
 *     ipo        (h - 1 / (2 beta))^2, p the mean over the answer's tokens  Azar et al. 2023
 *     hinge      max(0, 1 - beta h)                                         Zhao et al. 2023
 *
 * where s is the label smoothing (Mitchell 2023). Values and gradients are TRL's.
 */
#ifndef DT_PREFER_PAIR_LOSS_H
#define DT_PREFER_PAIR_LOSS_H

#include <stdint.h>

#include "settings/choices.h"

struct dt_pair_loss {
    enum dt_dpo_loss kind;
    double beta, label_smoothing;
};

/* Of the answers of a pair, the chosen one first. */
struct dt_pair {
    double log_probability[2]; /* sums over the tokens with loss, in nats */
    double reference[2];       /* the same of the reference model */
    int64_t tokens[2];         /* with loss */
};

struct dt_pair_result {
    double loss;
    double slope[2];  /* of the loss by each log_probability */
    double reward[2]; /* beta (log_probability - reference) */
};

struct dt_pair_result dt_pair_loss_of(const struct dt_pair_loss *how, const struct dt_pair *pair);

#endif
