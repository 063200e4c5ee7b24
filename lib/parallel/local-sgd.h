/* SPDX-License-Identifier: MIT */
/*
 * Replicas that train alone for some steps, each on its own micro-batches, and then
 * come together.
 *
 *     local_sgd   all take the mean of their parameters and of the optimizer's state
 *                 (Stich 2019)
 *     diloco      the mean of what the parameters have changed by is taken for a gradient,
 *                 and an outer step with Nesterov's momentum follows it (Douillard et al. 2023)
 *
 * The optimizer's state becomes its mean with both, so that replicas are the same behind
 * each synchronisation, and a checkpoint holds all there is, the outer momentum too.
 */
#ifndef DT_PARALLEL_LOCAL_SGD_H
#define DT_PARALLEL_LOCAL_SGD_H

#include "parallel/train-state.h"

struct dt_local_sgd {
    struct dt_train_state *store; /* borrowed */
    bool active;                  /* replicas train alone */
    long every;                   /* steps */
    float rate, momentum;         /* of the outer step of diloco, whose state is the store's */
};

void dt_local_sgd_plan(struct dt_local_sgd *steps, struct dt_train_state *store,
                       const struct dt_settings *settings);

/* The run begins, or goes on, from the store's parameters. */
void dt_local_sgd_begin(struct dt_local_sgd *steps);
/* Whether replicas come together behind so many steps; last: of the run. */
bool dt_local_sgd_due(const struct dt_local_sgd *steps, long step, long last);
int dt_local_sgd_synchronize(struct dt_local_sgd *steps, struct dt_error *err) DT_MUST_CHECK;

#endif
