/* SPDX-License-Identifier: MIT */
/*
 * Element-wise update rules of optimizers. Each rule is written once, here, for one
 * element; the update op of every engine applies it to arrays.
 *
 *     parameter, state[0..slots-1], gradient  ->  parameter, state[0..slots-1]
 *
 * A new rule is a line of DT_UPDATE_RULES and a function dt_update_NAME.
 */
#ifndef DT_DEVICE_UPDATE_RULES_H
#define DT_DEVICE_UPDATE_RULES_H

#include <math.h>

/* Enumerator, function, and number of state slots: floats kept per parameter. */
#define DT_UPDATE_RULES(X)                                                                         \
    X(ADAMW, adamw, 2)                                                                             \
    X(SGD, sgd, 1)                                                                                 \
    X(LION, lion, 1)
#define DT_UPDATE_SLOTS_MOST 2

#define DT_UPDATE_ENUMERATOR(NAME, name, slots) DT_UPDATE_RULE_##NAME,
enum dt_update_rule { DT_UPDATE_RULES(DT_UPDATE_ENUMERATOR) };
#undef DT_UPDATE_ENUMERATOR

/* Hyper-parameters of one step; each rule uses some of them. Weight decay is decoupled
 * (Loshchilov and Hutter 2019). */
struct dt_update {
    enum dt_update_rule rule;
    float learning_rate, weight_decay;
    float gradient_scale; /* from clipping; 1 if none */
    float beta1, beta2, epsilon, momentum;
    float correction1, correction2; /* bias corrections, 1 - beta^step, above 0 */
};

/* Factors of a rule, computed once per call. */
struct dt_update_factors {
    float rate, corrected_rate; /* learning rate; divided by correction1 */
    float root;                 /* 1 / sqrt(correction2) */
    float keep;                 /* 1 - learning rate * weight decay */
    float gradient_scale, beta1, beta2, epsilon, momentum;
};

struct dt_update_element {
    float parameter, state[DT_UPDATE_SLOTS_MOST];
};

#ifdef __CUDACC__
#define DT_UPDATE_FUNCTION __host__ __device__ __forceinline__ static
#else
#define DT_UPDATE_FUNCTION __attribute__((always_inline, unused)) static inline
#endif
#ifdef __cplusplus
#define DT_UPDATE_CONSTEXPR constexpr
#else
#define DT_UPDATE_CONSTEXPR
#endif

DT_UPDATE_FUNCTION struct dt_update_factors dt_update_factors_of(const struct dt_update *how)
{
    struct dt_update_factors f;
    f.rate = how->learning_rate;
    f.corrected_rate = how->learning_rate / how->correction1;
    f.root = 1.0f / sqrtf(how->correction2);
    f.keep = 1.0f - how->learning_rate * how->weight_decay;
    f.gradient_scale = how->gradient_scale;
    f.beta1 = how->beta1;
    f.beta2 = how->beta2;
    f.epsilon = how->epsilon;
    f.momentum = how->momentum;
    return f;
}

/* AdamW (Loshchilov and Hutter 2019). state: first and second moment. */
DT_UPDATE_FUNCTION void dt_update_adamw(struct dt_update_element *x, float gradient,
                                        const struct dt_update_factors *f)
{
    float g = gradient * f->gradient_scale;
    x->state[0] = f->beta1 * x->state[0] + (1.0f - f->beta1) * g;
    x->state[1] = f->beta2 * x->state[1] + (1.0f - f->beta2) * g * g;
    x->parameter = x->parameter * f->keep -
                   f->corrected_rate * x->state[0] / (sqrtf(x->state[1]) * f->root + f->epsilon);
}

/* Stochastic gradient descent. state: momentum. */
DT_UPDATE_FUNCTION void dt_update_sgd(struct dt_update_element *x, float gradient,
                                      const struct dt_update_factors *f)
{
    x->state[0] = f->momentum * x->state[0] + gradient * f->gradient_scale;
    x->parameter = x->parameter * f->keep - f->rate * x->state[0];
}

/* Lion (Chen et al. 2023). state: momentum. A direction of exactly 0 or NaN has sign 0 and NaN. */
DT_UPDATE_FUNCTION void dt_update_lion(struct dt_update_element *x, float gradient,
                                       const struct dt_update_factors *f)
{
    float g = gradient * f->gradient_scale;
    float direction = f->beta1 * x->state[0] + (1.0f - f->beta1) * g;
    float sign = direction > 0 ? 1.0f : direction < 0 ? -1.0f : direction;
    x->state[0] = f->beta2 * x->state[0] + (1.0f - f->beta2) * g;
    x->parameter = x->parameter * f->keep - f->rate * sign;
}

/* Inlined into a kernel, both switch on a constant, and compilers remove the switch. */
DT_UPDATE_FUNCTION void dt_update_apply(enum dt_update_rule rule, struct dt_update_element *x,
                                        float gradient, const struct dt_update_factors *f)
{
#define DT_UPDATE_CASE(NAME, name, slots)                                                          \
    case DT_UPDATE_RULE_##NAME:                                                                    \
        dt_update_##name(x, gradient, f);                                                          \
        break;
    switch (rule) {
        DT_UPDATE_RULES(DT_UPDATE_CASE)
    }
#undef DT_UPDATE_CASE
}

/* The number of state slots of a rule. */
DT_UPDATE_CONSTEXPR DT_UPDATE_FUNCTION int dt_update_slots(enum dt_update_rule rule)
{
#define DT_UPDATE_SLOTS(NAME, name, slots) rule == DT_UPDATE_RULE_##NAME ? (slots):
    return DT_UPDATE_RULES(DT_UPDATE_SLOTS) 0;
#undef DT_UPDATE_SLOTS
}

#endif
