/* SPDX-License-Identifier: MIT */
#include "device/cpu/cpu.h"

#define BLOCK 16384

/* One thread updates fewer elements in less than half a millisecond. On a busy machine, to wait for
 * the others takes several: until each of them had its turn. */
#define FEW (16 * BLOCK)

/* rule is a constant in each inlined copy, so that the loop vectorizes without branches. */
__attribute__((always_inline)) static inline void
update(enum dt_update_rule rule, float *restrict p, float *restrict state0, float *restrict state1,
       const float *restrict gradients, int64_t n, const struct dt_update *how)
{
    const struct dt_update_factors f = dt_update_factors_of(how);
    const bool two = dt_update_slots(rule) > 1;
    for (int64_t i = 0; i < n; i++) {
        struct dt_update_element x = {p[i], {state0[i], two ? state1[i] : 0}};
        dt_update_apply(rule, &x, gradients[i], &f);
        p[i] = x.parameter;
        state0[i] = x.state[0];
        if (two)
            state1[i] = x.state[1];
    }
}

#define LOOP(NAME, name, slots)                                                                    \
    static void name(float *p, float *state0, float *state1, const float *gradients, int64_t n,    \
                     const struct dt_update *how)                                                  \
    {                                                                                              \
        update(DT_UPDATE_RULE_##NAME, p, state0, state1, gradients, n, how);                       \
    }
DT_UPDATE_RULES(LOOP)

#define ENTRY(NAME, name, slots) [DT_UPDATE_RULE_##NAME] = name,
static void (*const loops[])(float *, float *, float *, const float *, int64_t,
                             const struct dt_update *) = {DT_UPDATE_RULES(ENTRY)};

void dt_cpu_update(struct dt_device *dev, float *parameters, float *const *state,
                   const float *gradients, int64_t n, const struct dt_update *how)
{
    const bool two = dt_update_slots(how->rule) > 1;
#pragma omp parallel for num_threads(dev->threads) schedule(static) if (n > FEW)
    for (int64_t from = 0; from < n; from += BLOCK) {
        int64_t size = n - from < BLOCK ? n - from : BLOCK;
        loops[how->rule](parameters + from, state[0] + from, two ? state[1] + from : NULL,
                         gradients + from, size, how);
    }
}
