/* SPDX-License-Identifier: MIT */
#include "train/local-steps.h"

#include <string.h>

void dt_local_steps_plan(struct dt_local_steps *l, struct dt_store *store,
                         const struct dt_settings *s)
{
    bool several = dt_comm_size(store->parallel.replicas.all) > 1;
    *l = (struct dt_local_steps){.store = store,
                                 .active = several && dt_sync_is_local(s),
                                 .every = s->distributed.local_steps,
                                 .rate = (float)s->distributed.outer_learning_rate,
                                 .momentum = (float)s->distributed.outer_momentum};
}

void dt_local_steps_begin(struct dt_local_steps *l)
{
    struct dt_store *s = l->store;
    if (s->outer)
        memcpy(s->before, s->model->parameters, (size_t)s->elements * sizeof *s->before);
}

bool dt_local_steps_due(const struct dt_local_steps *l, long step, long last)
{
    return !l->active || step % l->every == 0 || step == last;
}

static int average(struct dt_comm *comm, float *values, int64_t n, struct dt_error *err)
{
    float scale = 1 / (float)dt_comm_size(comm);
    DT_TRY(dt_comm_all_reduce(comm, values, n, err));
    for (int64_t i = 0; i < n; i++)
        values[i] *= scale;
    return 0;
}

/* theta -= rate (d + momentum v), where v = momentum v + d, and d is what was lost. */
static void step_outside(struct dt_local_steps *l, float *parameters)
{
    struct dt_store *s = l->store;
    for (int64_t i = 0; i < s->elements; i++) {
        float lost = s->before[i] - parameters[i];
        s->velocity[i] = l->momentum * s->velocity[i] + lost;
        s->before[i] -= l->rate * (lost + l->momentum * s->velocity[i]);
        parameters[i] = s->before[i];
    }
}

int dt_local_steps_synchronize(struct dt_local_steps *l, struct dt_error *err)
{
    struct dt_store *s = l->store;
    struct dt_comm *comm = s->parallel.replicas.all;
    float *parameters = s->model->parameters;
    DT_TRY(average(comm, parameters, s->elements, err));
    DT_TRY(average(comm, s->optimizer.first, s->optimizer.first_elements, err));
    DT_TRY(average(comm, s->optimizer.second, s->optimizer.second_elements, err));
    if (s->average)
        DT_TRY(average(comm, s->average, s->elements, err));
    if (s->outer)
        step_outside(l, parameters);
    dt_store_publish(s);
    return 0;
}
