/* SPDX-License-Identifier: MIT */
#include "train/store.h"

#include <math.h>

/* Bytes that the arena has grown by since the last call. */
static size_t taken(const struct dt_arena *arena, size_t *before)
{
    size_t bytes = arena->used - *before;
    *before = arena->used;
    return bytes;
}

static void lay_out(struct dt_store *s, bool averaged)
{
    size_t before = 0;
    dt_parallel_layout(&s->parallel, &s->arena);
    s->gradients = s->parallel.gradients;
    s->bytes.gradients = taken(&s->arena, &before);
    dt_optimizer_layout_moments(&s->optimizer, &s->arena);
    s->bytes.moments = taken(&s->arena, &before);
    s->average = averaged ? dt_arena_take(&s->arena, (size_t)s->elements * sizeof(float)) : NULL;
    s->bytes.average = taken(&s->arena, &before);
    dt_optimizer_layout_scratch(&s->optimizer, &s->arena);
    s->bytes.scratch = taken(&s->arena, &before);
}

int dt_store_plan(struct dt_store *s, struct dt_model *model, const struct dt_settings *settings,
                  struct dt_comm *comm, struct dt_error *err)
{
    *s = (struct dt_store){.model = model, .elements = model->table.elements};
    DT_TRY(dt_parallel_init(&s->parallel, comm, model->device, s->elements, settings, err));
    dt_optimizer_init(&s->optimizer, &model->table, settings);
    lay_out(s, settings->training.ema_decay > 0);
    return 0;
}

int dt_store_allocate(struct dt_store *s, struct dt_error *err)
{
    DT_TRY(dt_arena_allocate(&s->arena, s->model->device, err));
    lay_out(s, s->bytes.average > 0);
    return 0;
}

void dt_store_release(struct dt_store *s)
{
    if (s->model)
        dt_arena_release(&s->arena, s->model->device);
    dt_optimizer_release(&s->optimizer);
    dt_parallel_release(&s->parallel);
    s->model = NULL;
}

void dt_store_begin_average(struct dt_store *s)
{
    struct dt_tensor from = dt_matrix(s->model->parameters, 1, s->elements);
    struct dt_tensor to = dt_matrix(s->average, 1, s->elements);
    if (s->average)
        s->model->device->ops->copy(s->model->device, &to, &from);
}

/* The first updates weigh more, so that the initial parameters are soon forgotten. */
static void update_average(struct dt_store *s, double decay, long step)
{
    struct dt_tensor now = dt_matrix(s->model->parameters, 1, s->elements);
    struct dt_tensor average = dt_matrix(s->average, 1, s->elements);
    double keep = fmin(decay, (1 + (double)step) / (10 + (double)step));
    if (s->average)
        s->model->device->ops->combine(s->model->device, &average, (float)keep, &now,
                                       (float)(1 - keep));
}

void dt_store_update(struct dt_store *s, const struct dt_settings *settings, long step, double norm,
                     double factor)
{
    double clip = settings->training.grad_clip;
    double scale = clip > 0 && norm > clip ? clip / norm : 1;
    dt_optimizer_update(&s->optimizer, s->model->device, s->model->parameters, s->gradients,
                        settings, step, scale / factor);
    update_average(s, settings->training.ema_decay, step);
    dt_model_refresh(s->model);
}
