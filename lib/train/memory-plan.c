/* SPDX-License-Identifier: MIT */
#include "train/memory-plan.h"

struct dt_memory_plan dt_memory_plan(const struct dt_model *model, const struct dt_store *store,
                                     const struct dt_workspace *work,
                                     const struct dt_snapshot *snapshot)
{
    struct dt_memory_plan p = {
        .parameters = (size_t)model->table.elements * sizeof(float),
        .gradients = store->bytes.gradients,
        .moments = store->bytes.moments,
        .average = store->bytes.average,
        .scratch = store->bytes.scratch,
        .activations = dt_workspace_bytes(work),
        .snapshot = dt_snapshot_bytes(snapshot),
    };
    p.weights = dt_model_bytes(model) - p.parameters;
    p.device =
        p.parameters + p.weights + p.gradients + p.moments + p.average + p.scratch + p.activations;
    p.total = p.device + p.snapshot;
    return p;
}

static double gib(size_t bytes)
{
    return (double)bytes / (1 << 30);
}

int dt_memory_check(const struct dt_memory_plan *p, const struct dt_model *model,
                    struct dt_error *err)
{
    size_t available = model->device->ops->available(model->device);
    if (p->device <= available)
        return 0;
    return dt_fail(err, DT_ENOMEM,
                   "a model of %.1f million parameters needs %.2f GiB, and %.2f GiB are free: "
                   "parameters %.2f, weights %.2f, gradients %.2f, moments %.2f, activations %.2f",
                   (double)model->table.parameters * 1e-6, gib(p->device), gib(available),
                   gib(p->parameters), gib(p->weights), gib(p->gradients),
                   gib(p->moments + p->average + p->scratch), gib(p->activations));
}
