/* SPDX-License-Identifier: MIT */
#include "train/mesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* Sizes of the mesh, and a rank's place in it. */
struct place {
    int stages, replicas, slices;
    int shards; /* replicas of a group */
    int stage, replica, slice;
};

static int rank_at(const struct place *p, int stage, int replica, int slice)
{
    return (stage * p->replicas + replica) * p->slices + slice;
}

static int find_place(struct place *p, struct dt_comm *world, const struct dt_settings *s,
                      struct dt_error *err)
{
    int size = dt_comm_size(world), rank = dt_comm_rank(world);
    *p = (struct place){.stages = (int)s->distributed.pp, .slices = (int)s->distributed.tp};
    if (size % (p->stages * p->slices) != 0)
        return dt_fail(err, DT_EINVALID,
                       "%d ranks cannot be dealt out: distributed.pp (%d) times distributed.tp "
                       "(%d) must divide their number",
                       size, p->stages, p->slices);
    if (p->stages * s->distributed.virtual_stages > s->model.num_layers)
        return dt_fail(err, DT_EINVALID,
                       "%ld layers cannot be cut into %ld runs, one for each of "
                       "%d stages%s",
                       s->model.num_layers, p->stages * s->distributed.virtual_stages, p->stages,
                       s->distributed.virtual_stages > 1 ? "' chunks" : "");
    DT_TRY(dt_slices_check(&s->model, p->slices, "the model", err));
    p->replicas = size / (p->stages * p->slices);
    p->shards = s->distributed.shard_ranks > 0 ? (int)s->distributed.shard_ranks : p->replicas;
    if (p->replicas % p->shards != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.shard_ranks (%d) must divide the replicas, of which there are "
                       "%d",
                       p->shards, p->replicas);
    p->slice = rank % p->slices;
    p->replica = rank / p->slices % p->replicas;
    p->stage = rank / p->slices / p->replicas;
    return 0;
}

/* A group of count replicas, first + i * stride. ranks: room for all. */
static struct dt_comm *group_replicas(struct dt_comm *world, const struct place *p, int first,
                                      int stride, int count, int *ranks)
{
    for (int i = 0; i < count; i++)
        ranks[i] = rank_at(p, p->stage, first + i * stride, p->slice);
    return dt_comm_group(world, ranks, count);
}

static void open_replicas(struct dt_replicas *r, struct dt_comm *world, const struct place *p,
                          int *ranks)
{
    int number = p->replica % p->shards, groups = p->replicas / p->shards;
    r->all = group_replicas(world, p, 0, 1, p->replicas, ranks);
    r->group = r->all;
    if (groups == 1)
        return;
    r->group = group_replicas(world, p, p->replica - number, 1, p->shards, ranks);
    r->across = group_replicas(world, p, number, p->shards, groups, ranks);
}

int dt_groups(const struct dt_replicas *r)
{
    return r->across ? dt_comm_size(r->across) : 1;
}

int dt_mesh_open(struct dt_mesh *m, struct dt_comm *world, const struct dt_settings *s,
                 struct dt_error *err)
{
    struct place p;
    DT_TRY(find_place(&p, world, s, err));
    int *ranks = dt_alloc((size_t)dt_comm_size(world), sizeof *ranks);
    *m = (struct dt_mesh){.world = world};
    open_replicas(&m->data, world, &p, ranks);
    for (int i = 0; i < p.slices; i++)
        ranks[i] = rank_at(&p, p.stage, p.replica, i);
    m->slices = dt_comm_group(world, ranks, p.slices);
    for (int i = 0; i < p.stages; i++)
        ranks[i] = rank_at(&p, i, p.replica, p.slice);
    m->stages = dt_comm_group(world, ranks, p.stages);
    free(ranks);
    m->flags = dt_alloc((size_t)dt_comm_size(world), 1);
    size_t most = (size_t)(p.stages > p.slices ? p.stages : p.slices);
    m->values =
        dt_alloc(most * (size_t)(dt_layer_bucket((int)s->model.num_layers) + 2), sizeof *m->values);
    m->part = (struct dt_model_part){
        .stage = p.stage,
        .stages = p.stages,
        .chunks = (int)s->distributed.virtual_stages,
        .slice = p.slice,
        .slices = p.slices,
        .peers = p.slices > 1 ? m->slices : NULL,
        .sequence = s->distributed.sequence_parallel,
        .tied_apart = p.stages > 1 || s->distributed.invariant,
    };
    return 0;
}

void dt_mesh_release(struct dt_mesh *m)
{
    free(m->flags);
    free(m->values);
    *m = (struct dt_mesh){0};
}

int dt_mesh_flags(const struct dt_mesh *m, unsigned char own, unsigned char *any,
                  struct dt_error *err)
{
    m->flags[dt_comm_rank(m->world)] = own;
    DT_TRY(dt_comm_share(m->world, m->flags, 1, err));
    *any = 0;
    for (int r = 0; r < dt_comm_size(m->world); r++)
        *any |= m->flags[r];
    return 0;
}

int dt_mesh_from_last_stage(const struct dt_mesh *m, double *values, int64_t count,
                            struct dt_error *err)
{
    size_t bytes = (size_t)count * sizeof *values;
    return dt_comm_wait(m->stages, dt_comm_broadcast(m->stages, values, bytes, m->part.stages - 1),
                        err);
}

/* Every rank of a group gives count values. */
static int share_values(const struct dt_mesh *m, struct dt_comm *group, const double *values,
                        size_t count, struct dt_error *err)
{
    size_t bytes = count * sizeof *values;
    memcpy(m->values + (size_t)dt_comm_rank(group) * count, values, bytes);
    return dt_comm_share(group, m->values, bytes, err);
}

int dt_mesh_add_up_slices(const struct dt_mesh *m, double *values, int buckets,
                          struct dt_error *err)
{
    size_t count = (size_t)buckets;
    if (m->part.slices == 1)
        return 0;
    DT_TRY(share_values(m, m->slices, values, count, err));
    for (size_t b = 0; b < count; b++) {
        values[b] = 0;
        for (size_t r = 0; r < (size_t)m->part.slices; r++)
            values[b] += m->values[r * count + b];
    }
    return 0;
}

/* The stage whose values of a bucket count. */
static int holder_of(const struct dt_mesh *m, const struct dt_table *t, int bucket)
{
    struct dt_model_part part = m->part;
    int layer = bucket < dt_layer_bucket(0) ? -1 : bucket - dt_layer_bucket(0);
    for (part.stage = 0; part.stage < part.stages; part.stage++)
        if (dt_part_holds(&part, t->layers, layer))
            return part.stage;
    return 0;
}

int dt_mesh_share_buckets(const struct dt_mesh *m, const struct dt_table *t, double *values,
                          struct dt_error *err)
{
    size_t stages = (size_t)m->part.stages, count = (size_t)t->bucket_count;
    if (stages == 1)
        return 0;
    DT_TRY(share_values(m, m->stages, values, count, err));
    for (size_t b = 0; b < count; b++)
        values[b] = m->values[(size_t)holder_of(m, t, (int)b) * count + b];
    return 0;
}
