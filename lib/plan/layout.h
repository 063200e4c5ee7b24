/* SPDX-License-Identifier: MIT */
/*
 * A parallel layout: a mesh of pp x dp x cp x tp ranks (parallel/mesh.h).
 *
 * Ranks fill the nodes in order. tp is the fastest-varying dimension, then cp, dp and pp:
 *
 *     rank = ((pp_rank * dp + dp_rank) * cp + cp_rank) * tp + tp_rank
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
    long shard;                  /* ranks of a ZeRO group: distributed.shard_ranks; 0: all */
    struct dt_pipeline pipeline; /* schedule and virtual stages; its stages are pp */
    long batch;                  /* sequences per micro-batch */
    long batches;                /* micro-batches per step of a data-parallel rank */
    int recompute;               /* enum dt_recompute */
    long tp_rank;                /* tensor-parallel rank whose sizes are computed; below tp */
};

/* The layout of the settings on devices ranks: dp = devices / (pp * cp * tp). DT_EINVALID if that
 * is not a whole number, or the layout is invalid. */
int dt_layout_read(struct dt_plan_layout *layout, const struct dt_settings *settings, long devices,
                   struct dt_error *err) DT_MUST_CHECK;
/* NULL, or why the layout is invalid: a constant. */
const char *dt_layout_fault(const struct dt_plan_layout *layout,
                            const struct dt_settings *settings);
/* NULL, or why its tensor-parallel shards differ in size: a constant. */
const char *dt_layout_uneven(const struct dt_plan_layout *layout,
                             const struct dt_settings *settings);

long dt_layout_ranks(const struct dt_plan_layout *layout);
/* Ranks with the same part of the model: dp * cp. */
long dt_layout_dp_cp_size(const struct dt_plan_layout *layout);
/* Model chunks: pp * virtual stages. */
long dt_layout_chunks(const struct dt_plan_layout *layout);
/* ZeRO groups, each of which holds one full copy of the sharded state, and ranks per group. */
long dt_layout_shard_groups(const struct dt_plan_layout *layout);
long dt_layout_shard_size(const struct dt_plan_layout *layout);
/* The part of the model that tensor-parallel rank tp_rank of a stage holds. */
struct dt_model_part dt_layout_part(const struct dt_plan_layout *layout, long stage);
/* Tokens per micro-batch on a rank: batch * sequence_length / cp. */
double dt_layout_tokens(const struct dt_plan_layout *layout, const struct dt_settings *settings);
/* Layers of a model chunk. */
long dt_layout_layers(const struct dt_plan_layout *layout, long layers, long chunk);

#endif
