/* SPDX-License-Identifier: MIT */
#include "train/store.h"

#include <math.h>

#include "train/schedule.h"

static void lay_out(struct dt_store *s)
{
    size_t bytes = (size_t)s->elements * sizeof(float);
    s->gradients = dt_arena_take(&s->arena, bytes);
    s->first_moment = dt_arena_take(&s->arena, bytes);
    s->second_moment = dt_arena_take(&s->arena, bytes);
}

int dt_store_init(struct dt_store *s, struct dt_model *model, struct dt_error *err)
{
    *s = (struct dt_store){.model = model, .elements = model->table.elements};
    lay_out(s);
    DT_TRY(dt_arena_allocate(&s->arena, model->device, err));
    lay_out(s);
    return 0;
}

void dt_store_release(struct dt_store *s)
{
    if (s->model)
        dt_arena_release(&s->arena, s->model->device);
    s->model = NULL;
}

#define ZERO_BLOCK ((int64_t)1 << 16)

void dt_store_zero_gradients(struct dt_store *s)
{
    struct dt_device *dev = s->model->device;
    int64_t whole = s->elements / ZERO_BLOCK * ZERO_BLOCK;
    struct dt_tensor blocks = dt_matrix(s->gradients, whole / ZERO_BLOCK, ZERO_BLOCK);
    struct dt_tensor rest = dt_matrix(s->gradients + whole, 1, s->elements - whole);
    dev->ops->zero(dev, &blocks);
    dev->ops->zero(dev, &rest);
}

double dt_store_gradient_norm(struct dt_store *s)
{
    struct dt_device *dev = s->model->device;
    return sqrt(dev->ops->sum_squares(dev, s->gradients, s->elements));
}

void dt_store_update(struct dt_store *s, const struct dt_settings *settings, long step, double norm)
{
    struct dt_device *dev = s->model->device;
    double clip = settings->training.grad_clip, t = (double)step + 1;
    struct dt_adamw how = {
        .learning_rate = (float)dt_learning_rate(settings, step),
        .beta1 = (float)settings->training.beta1,
        .beta2 = (float)settings->training.beta2,
        .epsilon = (float)settings->training.epsilon,
        .correction1 = (float)(1 - pow(settings->training.beta1, t)),
        .correction2 = (float)(1 - pow(settings->training.beta2, t)),
        .gradient_scale = clip > 0 && norm > clip ? (float)(clip / norm) : 1.0f,
    };
    for (int i = 0; i < s->model->table.count; i++) {
        const struct dt_param *p = &s->model->table.params[i];
        how.weight_decay = p->decay ? (float)settings->training.weight_decay : 0.0f;
        dev->ops->adamw(dev, s->model->parameters + p->offset, s->first_moment + p->offset,
                        s->second_moment + p->offset, s->gradients + p->offset, p->count, &how);
    }
}
