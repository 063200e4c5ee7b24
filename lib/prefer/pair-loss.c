/* SPDX-License-Identifier: MIT */
#include "prefer/pair-loss.h"

#include "math/math.h"

/* log(1 + e^-x), without overflow. */
static double softplus_of_minus(double x)
{
    return x >= 0 ? dt_math_log(1 + dt_math_exp(-x)) : dt_math_log(1 + dt_math_exp(x)) - x;
}

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + dt_math_exp(-x)) : dt_math_exp(x) / (1 + dt_math_exp(x));
}

/* The loss of h; *slope: its derivative. */
static double loss_of(const struct dt_pair_loss *how, double h, double *slope)
{
    double z = how->beta * h, s = how->label_smoothing, distance;
    *slope = 0;
    switch (how->kind) {
    case DT_DPO_LOSS_SIGMOID:
        *slope = how->beta * (s * sigmoid(z) - (1 - s) * sigmoid(-z));
        return (1 - s) * softplus_of_minus(z) + s * softplus_of_minus(-z);
    case DT_DPO_LOSS_IPO:
        distance = h - 1 / (2 * how->beta);
        *slope = 2 * distance;
        return distance * distance;
    case DT_DPO_LOSS_HINGE:
        if (z >= 1)
            return 0;
        *slope = -how->beta;
        return 1 - z;
    }
    return 0;
}

struct dt_pair_result dt_pair_loss_of(const struct dt_pair_loss *how, const struct dt_pair *pair)
{
    struct dt_pair_result r;
    double ratio[2], share[2], slope;
    for (int i = 0; i < 2; i++) {
        share[i] = how->kind == DT_DPO_LOSS_IPO ? 1 / (double)pair->tokens[i] : 1;
        ratio[i] = share[i] * (pair->log_probability[i] - pair->reference[i]);
        r.reward[i] = how->beta * ratio[i];
    }
    r.loss = loss_of(how, ratio[0] - ratio[1], &slope);
    r.slope[0] = slope * share[0];
    r.slope[1] = -slope * share[1];
    return r;
}
