/* SPDX-License-Identifier: MIT */
/*
 * The mesh: which rank does what. Ranks are numbered
 *
 *     ((stage * replicas + replica) * contexts + context) * slices + slice
 *
 * so that the ranks that talk most, those of one layer's slices, are neighbours, and behind them
 * those of one micro-batch's contexts. Stages (pipeline parallelism) and slices (tensor
 * parallelism) hold parts of one model; replicas (data parallelism) hold the same part and pass
 * different micro-batches; so do contexts (context parallelism), and pass different tokens of
 * one micro-batch.
 *
 * Ranks with the same part, all contexts of all replicas, have copies of it: gradients are sums
 * over all of these. They are groups of neighbours, each of distributed.shard_ranks, or one group
 * of all. What they share out (zero_stage) a group shares out, and every group has all of it.
 */
#ifndef DT_PARALLEL_MESH_H
#define DT_PARALLEL_MESH_H

#include "comm/comm.h"
#include "model/table.h"
#include "settings/settings.h"

/* Ranks with the same part: rank i is the one of number i % size of a group in group i / size of
 * a group. */
struct dt_data_group {
    struct dt_comm *all;    /* of this rank's part; borrowed, as are these */
    struct dt_comm *group;  /* those that share out what they keep; all, if there is one group */
    struct dt_comm *across; /* those of this one's number in every group; NULL: one group */
    int cp_size;            /* neighbours of all that pass the same micro-batches */
};

struct dt_mesh {
    struct dt_comm *world; /* borrowed, like its groups: */
    struct dt_data_group data;
    struct dt_comm *tp_group, *cp_group, *stages;
    struct dt_model_part part; /* what this rank holds */
    unsigned char *flags;      /* of each rank of the world */
    double *values;            /* that ranks tell each other, rank by rank of a group */
};

/* DT_EINVALID if the ranks cannot be dealt out as distributed.pp, .cp, .tp and .shard_ranks say.
 * Release with dt_mesh_release, also then. */
int dt_mesh_open(struct dt_mesh *mesh, struct dt_comm *world, const struct dt_settings *settings,
                 struct dt_error *err) DT_MUST_CHECK;

void dt_mesh_release(struct dt_mesh *mesh);

/* Those for memory of the device (dt_comm_on_device). */
struct dt_data_group dt_data_group_on_device(const struct dt_data_group *dp_group);

/* How many groups they are. */
int dt_data_group_count(const struct dt_data_group *dp_group);

/* Flags that any rank of the world has set. */
int dt_mesh_flags(const struct dt_mesh *mesh, unsigned char own, unsigned char *any,
                  struct dt_error *err) DT_MUST_CHECK;

/* The last stage's values, which all stages get. */
int dt_mesh_from_last_stage(const struct dt_mesh *mesh, double *values, int64_t count,
                            struct dt_error *err) DT_MUST_CHECK;

/* Values of buckets, of which every slice has a part, become the sum of these. */
int dt_mesh_add_up_slices(const struct dt_mesh *mesh, double *values, int buckets,
                          struct dt_error *err) DT_MUST_CHECK;

/* Values, of which every context has a part, become the sum of these. At most two of each
 * micro-batch of a step, or three of each batch of a validation. */
int dt_mesh_add_up_contexts(const struct dt_mesh *mesh, double *values, int64_t count,
                            struct dt_error *err) DT_MUST_CHECK;

/* Values of the buckets of a whole model, one a bucket: every stage gives those of the buckets
 * that it holds, and gets the others. */
int dt_mesh_share_buckets(const struct dt_mesh *mesh, const struct dt_table *table, double *values,
                          struct dt_error *err) DT_MUST_CHECK;

#endif
