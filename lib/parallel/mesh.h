/* SPDX-License-Identifier: MIT */
/*
 * The device mesh: pipeline stages x data-parallel x context-parallel x tensor-parallel ranks, and
 * the process groups along each axis.
 *
 *     rank = ((pp * dp_size + dp) * cp_size + cp) * tp_size + tp
 *
 * Tensor-parallel ranks, which communicate most, are neighbours; then context-parallel ones. For 8
 * ranks with distributed.pp 2 and distributed.tp 2 (dp_size is what remains: 2):
 *
 *                     pp 0                      pp 1
 *                 tp 0   tp 1               tp 0   tp 1
 *         dp 0  |  0      1  |      dp 0  |  4      5  |     tp_group   0 1, 2 3, 4 5, 6 7
 *         dp 1  |  2      3  |      dp 1  |  6      7  |     pp_group   0 4, 1 5, 2 6, 3 7
 *                                                            dp_group   0 2, 1 3, 4 6, 5 7
 *
 * Pipeline stages and tensor-parallel ranks hold parts of one model. Data-parallel ranks hold equal
 * parts and compute different micro-batches; context-parallel ranks hold equal parts and compute
 * different tokens of one micro-batch. Gradients are reduced over all dp x cp ranks with equal
 * parts: struct dt_data_group. ZeRO shards within it: over all of its ranks, or, with
 * distributed.shard_ranks, over sharding groups of neighbours, each of which holds everything
 * (hybrid sharding, HSDP). For 6 ranks with shard_ranks 3:
 *
 *     all      0 1 2 3 4 5
 *     group    0 1 2 | 3 4 5      shard parameters, gradients, optimizer state
 *     across   0 3 | 1 4 | 2 5    hold equal shards
 */
#ifndef DT_PARALLEL_MESH_H
#define DT_PARALLEL_MESH_H

#include "comm/comm.h"
#include "model/table.h"
#include "settings/settings.h"

/* The dp x cp ranks that hold equal parts of the model. Rank i of all is rank i % size of sharding
 * group i / size. Communicators are borrowed. */
struct dt_data_group {
    struct dt_comm *all;   /* the reduction of gradients */
    struct dt_comm *group; /* this rank's sharding group; all, if there is one */
    struct dt_comm
        *across; /* the ranks of all sharding groups with equal shards; NULL: one group */
    int cp_size; /* neighbours in all that compute the same micro-batches */
};

struct dt_mesh {
    struct dt_comm *world; /* borrowed, as are its groups: */
    struct dt_data_group data;
    struct dt_comm *tp_group, *cp_group, *pp_group;
    struct dt_model_part part; /* what this rank holds */
};

/* DT_EINVALID if distributed.pp, .cp, .tp and .shard_ranks do not fit the ranks or the model.
 * Release with dt_mesh_release, also after a failure. */
int dt_mesh_open(struct dt_mesh *mesh, struct dt_comm *world, const struct dt_settings *settings,
                 struct dt_error *err) DT_MUST_CHECK;

void dt_mesh_release(struct dt_mesh *mesh);

/* DT_EINVALID if the bits of a layout with distributed.invariant would depend on it; 0 without. */
int dt_mesh_check_invariant(const struct dt_settings *settings, struct dt_error *err) DT_MUST_CHECK;

/* The same groups, for device memory (dt_comm_on_device). */
struct dt_data_group dt_data_group_on_device(const struct dt_data_group *dp_group);

/* Number of sharding groups. */
int dt_data_group_count(const struct dt_data_group *dp_group);

/* values: the sums over the ranks of a group. Collective, as are those below. */
int dt_mesh_sum_integers(struct dt_comm *group, int64_t *values, size_t count,
                         struct dt_error *err) DT_MUST_CHECK;
int dt_mesh_sum_exact(struct dt_comm *group, struct dt_exact_sum *sum,
                      struct dt_error *err) DT_MUST_CHECK;

/* Sums over tokens: integers, so that no order of additions shows. */
struct dt_token_sums {
    struct dt_exact_sum loss;
    int64_t counts[2]; /* of targets, and of hits */
};

/* Sums over all tokens that the dp x cp ranks of the last stage have counted, on all ranks. */
int dt_mesh_sum_tokens(const struct dt_mesh *mesh, struct dt_token_sums *sums,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
