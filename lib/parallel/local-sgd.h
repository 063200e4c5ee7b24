/* SPDX-License-Identifier: MIT */
/*
 * Local SGD and DiLoCo (distributed.sync): data-parallel ranks train independently for
 * distributed.local_steps steps, then synchronize.
 *
 *     local_sgd   parameters become the mean over ranks (Stich 2019)
 *     diloco      the mean change of the parameters since the last synchronization is the gradient
 *                 of an outer step with Nesterov momentum (Douillard et al. 2023)
 *
 *     rank 0   s s s s \      / s s s s \
 *     rank 1   s s s s - mean - s s s s - mean ...       s: a step on the rank's own micro-batches
 *     rank 2   s s s s /      \ s s s s /
 *
 *     streaming_diloco   diloco, but in fragments and while training continues (outer-fragments.h);
 *                        ranks are made equal only where a validation or a checkpoint needs it
 *
 * All average the optimizer state and the EMA too: ranks are equal after a synchronization, and a
 * checkpoint, which is written only then, needs the state of one rank.
 */
#ifndef DT_PARALLEL_LOCAL_SGD_H
#define DT_PARALLEL_LOCAL_SGD_H

#include "parallel/outer-fragments.h"

struct dt_local_sgd {
    struct dt_train_state *state; /* borrowed; has the state of the outer step */
    bool active;                  /* local_sgd or diloco, on more than one rank */
    long every;                   /* steps between synchronizations */
    float rate, momentum;         /* of diloco's outer step */
    bool streams;                 /* streaming_diloco */
    bool equal;                   /* ranks are, after the last step */
    struct dt_outer_fragments fragments;
};

void dt_local_sgd_plan(struct dt_local_sgd *local, struct dt_train_state *state,
                       const struct dt_settings *settings);

/* Call when the run starts or resumes: the outer step starts from the current parameters. */
void dt_local_sgd_begin(struct dt_local_sgd *local);
/* Whether ranks can be equal after that step; always without local SGD. last: step of the run. */
bool dt_local_sgd_due(const struct dt_local_sgd *local, long step, long last);
/* After a step: synchronizes what is due. needed: ranks have to be equal, if they can. Collective:
 * data-parallel group. */
int dt_local_sgd_step(struct dt_local_sgd *local, long step, long last, bool needed,
                      struct dt_error *err) DT_MUST_CHECK;
void dt_local_sgd_release(struct dt_local_sgd *local);

#endif
