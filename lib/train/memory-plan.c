/* SPDX-License-Identifier: MIT */
#include "train/memory-plan.h"

#include <stdio.h>

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

int dt_memory_check(const struct dt_memory_plan *p, const struct dt_model *model, int ranks,
                    struct dt_error *err)
{
    size_t available = model->device->ops->available(model->device);
    if (p->total <= available / (size_t)ranks)
        return 0;
    char each[40] = "";
    if (ranks > 1)
        snprintf(each, sizeof each, " for each of %d ranks", ranks);
    return dt_fail(err, DT_ENOMEM,
                   "a model of %.1f million parameters needs %.2f GiB%s, and %.2f GiB are free: "
                   "parameters %.2f, weights %.2f, gradients %.2f, moments %.2f, activations %.2f, "
                   "snapshot %.2f",
                   (double)model->table.parameters * 1e-6, gib(p->total), each, gib(available),
                   gib(p->parameters), gib(p->weights), gib(p->gradients),
                   gib(p->moments + p->average + p->scratch), gib(p->activations),
                   gib(p->snapshot));
}
