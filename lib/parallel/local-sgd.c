/* SPDX-License-Identifier: MIT */
#include "parallel/local-sgd.h"

void dt_local_sgd_plan(struct dt_local_sgd *l, struct dt_train_state *state,
                       const struct dt_settings *s)
{
    bool several = dt_comm_size(state->dp.dp_group.all) > 1;
    *l = (struct dt_local_sgd){.state = state,
                               .active = several && dt_settings_sync_is_local(s),
                               .every = s->distributed.local_steps,
                               .rate = (float)s->distributed.outer_learning_rate,
                               .momentum = (float)s->distributed.outer_momentum,
                               .equal = true};
    l->streams = l->active && s->distributed.sync == DT_SYNC_STREAMING_DILOCO;
    dt_outer_fragments_init(&l->fragments, state, s);
}

void dt_local_sgd_release(struct dt_local_sgd *l)
{
    dt_outer_fragments_release(&l->fragments);
}

void dt_local_sgd_begin(struct dt_local_sgd *l)
{
    struct dt_train_state *s = l->state;
    struct dt_device *dev = s->model->device;
    struct dt_tensor start = dt_matrix(s->outer_start, 1, s->elements);
    struct dt_tensor parameters = dt_matrix(s->model->parameters, 1, s->elements);
    if (s->has_outer)
        dev->ops->copy(dev, &start, &parameters);
}

bool dt_local_sgd_due(const struct dt_local_sgd *l, long step, long last)
{
    return !l->active || step % l->every == 0 || step == last;
}

/* Replaces values by their mean over data-parallel ranks. */
static int average(struct dt_train_state *s, float *values, int64_t n, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    struct dt_tensor all = dt_matrix(values, 1, n);
    DT_TRY(dt_host_staging_all_reduce(&s->dp.staging, values, n, err));
    dev->ops->combine(dev, &all, 0, &all, 1 / (float)dt_comm_size(s->dp.dp_group.all));
    return 0;
}

/* Nesterov: d = start - parameters; v = momentum v + d; start -= rate (d + momentum v); parameters
 * = start. d overwrites the parameters. */
static void outer_step(const struct dt_local_sgd *l)
{
    struct dt_train_state *s = l->state;
    struct dt_device *dev = s->model->device;
    struct dt_tensor parameters = dt_matrix(s->model->parameters, 1, s->elements);
    struct dt_tensor start = dt_matrix(s->outer_start, 1, s->elements);
    struct dt_tensor velocity = dt_matrix(s->outer_momentum, 1, s->elements);
    dev->ops->combine(dev, &parameters, -1, &start, 1);
    dev->ops->combine(dev, &velocity, l->momentum, &parameters, 1);
    dev->ops->combine(dev, &start, 1, &parameters, -l->rate);
    dev->ops->combine(dev, &start, 1, &velocity, -l->rate * l->momentum);
    dev->ops->copy(dev, &parameters, &start);
}

static int synchronize(struct dt_local_sgd *l, struct dt_error *err)
{
    struct dt_train_state *s = l->state;
    DT_TRY(l->streams ? dt_outer_fragments_flush(&l->fragments, err)
                      : average(s, s->model->parameters, s->elements, err));
    for (int i = 0; i < DT_UPDATE_SLOTS_MOST; i++)
        DT_TRY(average(s, s->optimizer.state[i], s->optimizer.elements[i], err));
    if (s->ema)
        DT_TRY(average(s, s->ema, s->elements, err));
    if (s->has_outer && !l->streams)
        outer_step(l);
    return 0;
}

int dt_local_sgd_step(struct dt_local_sgd *l, long step, long last, bool needed,
                      struct dt_error *err)
{
    if (!l->active)
        return 0;
    l->equal = dt_local_sgd_due(l, step, last) && (needed || !l->streams);
    if (l->equal)
        DT_TRY(synchronize(l, err));
    else if (l->streams)
        DT_TRY(dt_outer_fragments_step(&l->fragments, step, err));
    if (l->equal || l->streams)
        dt_train_state_refresh_weights(l->state);
    return 0;
}
