/* SPDX-License-Identifier: MIT */
#include "train/memory-plan.h"

#include <stdio.h>

#include "base/progress.h"

struct dt_memory_plan dt_memory_plan(const struct dt_model *model,
                                     const struct dt_train_state *state, size_t activations,
                                     size_t sampler, const struct dt_snapshot *snapshot)
{
    struct dt_memory_plan p = {
        .parameters =
            model->bare ? state->bytes.parameters : (size_t)model->table.elements * sizeof(float),
        .gradients = state->bytes.gradients,
        .moments = state->bytes.moments,
        .average = state->bytes.average,
        .scratch = state->bytes.scratch,
        .activations = activations,
        .sampler = sampler,
        .snapshot = dt_snapshot_bytes(snapshot),
        .file = dt_optimizer_file_bytes(&state->optimizer),
    };
    p.weights = dt_model_bytes(model) + state->bytes.weights - (model->bare ? 0 : p.parameters);
    p.device = p.parameters + p.weights + p.gradients + p.moments + p.average + p.scratch +
               p.activations + p.sampler;
    p.total = p.device + p.snapshot;
    return p;
}

void dt_memory_plan_add_copies(struct dt_memory_plan *p, size_t bytes)
{
    p->copies += bytes;
    p->total += bytes;
}

int dt_memory_plan_check(const struct dt_memory_plan *p, const struct dt_model *model, int ranks,
                         struct dt_error *err)
{
    size_t available = model->device->ops->available(model->device);
    if (p->total <= available / (size_t)ranks)
        return 0;
    char each[40] = "", needed[DT_PROGRESS_BYTES], room[DT_PROGRESS_BYTES],
         text[8][DT_PROGRESS_BYTES];
    const size_t parts[8] = {
        p->parameters,  p->weights,  p->gradients, p->moments + p->average + p->scratch,
        p->activations, p->snapshot, p->sampler,   p->copies};
    for (int i = 0; i < 8; i++)
        dt_progress_bytes((double)parts[i], text[i]);
    if (ranks > 1)
        snprintf(each, sizeof each, " for each of %d ranks", ranks);
    return dt_fail(err, DT_ENOMEM,
                   "a model of %.1f million parameters needs %s%s, and %s are free: parameters %s, "
                   "weights %s, gradients %s, moments %s, activations %s, snapshot %s, sampler %s, "
                   "copies %s",
                   (double)model->base->parameters * 1e-6,
                   dt_progress_bytes((double)p->total, needed), each,
                   dt_progress_bytes((double)available, room), text[0], text[1], text[2], text[3],
                   text[4], text[5], text[6], text[7]);
}
