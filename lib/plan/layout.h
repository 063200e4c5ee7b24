/* SPDX-License-Identifier: MIT */
/*
 * A layout: how a run is cut up over its ranks, a mesh of pp x dp x cp x tp (parallel/mesh.h).
 *
 * Ranks fill the nodes in their order, so that tensor-parallel ranks are neighbours, behind
 * them those of a context, and stages lie far apart.
 */
#ifndef DT_PLAN_LAYOUT_H
#define DT_PLAN_LAYOUT_H

#include "model/model-part.h"
#include "parallel/pipeline-schedule.h"
#include "plan/cluster.h"
#include "settings/settings.h"

struct dt_plan_layout {
    long pp, dp, cp, tp;
    long zero_stage;
    long shard;                  /* ranks of a group, as distributed.shard_ranks; 0: all */
    struct dt_pipeline pipeline; /* schedule and chunks; stages are pp */
    long batch;                  /* sequences of a micro-batch */
    long batches;                /* micro-batches of a replica in a step */
    int recompute;               /* enum dt_recompute */
    long tp_rank;                /* of the ranks that are looked at; below tp */
};

/* The layout that settings ask for over that many devices; dp is what pp, cp and tp leave over.
 * DT_EINVALID if nothing is, or the layout cannot be. */
int dt_layout_read(struct dt_plan_layout *layout, const struct dt_settings *settings, long devices,
                   struct dt_error *err) DT_MUST_CHECK;
/* NULL, or why the layout cannot be, in words without its numbers. */
const char *dt_layout_fault(const struct dt_plan_layout *layout,
                            const struct dt_settings *settings);
/* NULL, or why its slices are not alike. */
const char *dt_layout_uneven(const struct dt_plan_layout *layout,
                             const struct dt_settings *settings);

long dt_layout_ranks(const struct dt_plan_layout *layout);
/* Those with the same part of the model: all contexts of all replicas. */
long dt_layout_copies(const struct dt_plan_layout *layout);
/* Runs of layers, over all stages. */
long dt_layout_runs(const struct dt_plan_layout *layout);
/* Groups of these, each of which has all that its ranks share out, and their size. */
long dt_layout_groups(const struct dt_plan_layout *layout);
long dt_layout_owners(const struct dt_plan_layout *layout);
/* What the first of a stage's tensor-parallel ranks holds of the model. */
struct dt_model_part dt_layout_part(const struct dt_plan_layout *layout, long stage);
/* Tokens of a micro-batch that a rank has. */
double dt_layout_rows(const struct dt_plan_layout *layout, const struct dt_settings *settings);
/* Layers of a run. */
long dt_layout_layers(const struct dt_plan_layout *layout, long layers, long run);

#endif
