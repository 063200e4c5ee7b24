/* SPDX-License-Identifier: MIT */
#include "parallel/mesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/ring-attention.h"

/* Sizes of the mesh, and a rank's place in it. */
struct place {
    int stages, replicas, contexts, slices;
    int shards; /* ranks of a group */
    int stage, replica, context, slice;
};

/* Ranks with the same part, and the number of one of them. */
static int copies(const struct place *p)
{
    return p->replicas * p->contexts;
}

static int copy_at(const struct place *p, int replica, int context)
{
    return replica * p->contexts + context;
}

static int rank_at(const struct place *p, int stage, int copy, int slice)
{
    return (stage * copies(p) + copy) * p->slices + slice;
}

static int check_message(const struct place *p, const struct dt_settings *s, struct dt_error *err)
{
    size_t bytes = dt_ring_message(&s->model, s->training.batch_size * s->training.sequence_length /
                                                  p->contexts);
    if (p->contexts == 1 || bytes <= DT_TRANSFER_MOST)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "gradients of keys and values would be messages of %zu bytes, and %zu are the "
                   "most: lower training.batch_size, or raise distributed.cp",
                   bytes, DT_TRANSFER_MOST);
}

static int find_sizes(struct place *p, int size, const struct dt_settings *s, struct dt_error *err)
{
    *p = (struct place){.stages = (int)s->distributed.pp,
                        .contexts = (int)s->distributed.cp,
                        .slices = (int)s->distributed.tp};
    int64_t part = (int64_t)p->stages * p->contexts * p->slices;
    if (size % part != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.pp (%d) times distributed.cp (%d) times distributed.tp (%d) "
                       "must divide the number of ranks, which is %d",
                       p->stages, p->contexts, p->slices, size);
    p->replicas = size / (int)part;
    p->shards = s->distributed.shard_ranks > 0 ? (int)s->distributed.shard_ranks : copies(p);
    if (copies(p) % p->shards != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.shard_ranks (%d) must divide the replicas%s, of which there "
                       "are %d",
                       p->shards, p->contexts > 1 ? "' contexts" : "", copies(p));
    return 0;
}

static int find_place(struct place *p, struct dt_comm *world, const struct dt_settings *s,
                      struct dt_error *err)
{
    int rank = dt_comm_rank(world);
    DT_TRY(find_sizes(p, dt_comm_size(world), s, err));
    if (p->stages * s->distributed.virtual_stages > s->model.num_layers)
        return dt_fail(err, DT_EINVALID,
                       "%ld layers cannot be cut into %ld runs, one for each of "
                       "%d stages%s",
                       s->model.num_layers, p->stages * s->distributed.virtual_stages, p->stages,
                       s->distributed.virtual_stages > 1 ? "' chunks" : "");
    DT_TRY(dt_slices_check(&s->model, p->slices, "the model", err));
    DT_TRY(check_message(p, s, err));
    p->slice = rank % p->slices;
    p->context = rank / p->slices % p->contexts;
    p->replica = rank / p->slices / p->contexts % p->replicas;
    p->stage = rank / p->slices / copies(p);
    return 0;
}

/* A group of count ranks with the same part, first + i * stride. ranks: room for all. */
static struct dt_comm *group_copies(struct dt_comm *world, const char *name, const struct place *p,
                                    int first, int stride, int count, int *ranks)
{
    for (int i = 0; i < count; i++)
        ranks[i] = rank_at(p, p->stage, first + i * stride, p->slice);
    return dt_comm_group(world, name, ranks, count);
}

static void open_replicas(struct dt_replicas *r, struct dt_comm *world, const struct place *p,
                          int *ranks)
{
    int own = copy_at(p, p->replica, p->context);
    int number = own % p->shards, groups = copies(p) / p->shards;
    r->contexts = p->contexts;
    r->all = group_copies(world, "data-parallel", p, 0, 1, copies(p), ranks);
    r->group = r->all;
    if (groups == 1)
        return;
    r->group = group_copies(world, "sharding", p, own - number, 1, p->shards, ranks);
    r->across = group_copies(world, "replication", p, number, p->shards, groups, ranks);
}

struct dt_replicas dt_replicas_near(const struct dt_replicas *r)
{
    struct dt_replicas near = *r;
    near.all = dt_comm_near(r->all);
    near.group = dt_comm_near(r->group);
    near.across = dt_comm_near(r->across);
    return near;
}

int dt_groups(const struct dt_replicas *r)
{
    return r->across ? dt_comm_size(r->across) : 1;
}

/* The groups of ranks, all made in the same order. */
static void open_groups(struct dt_mesh *m, const struct place *p)
{
    int *ranks = dt_alloc((size_t)dt_comm_size(m->world), sizeof *ranks);
    int own = copy_at(p, p->replica, p->context);
    open_replicas(&m->data, m->world, p, ranks);
    m->contexts =
        group_copies(m->world, "context-parallel", p, own - p->context, 1, p->contexts, ranks);
    for (int i = 0; i < p->slices; i++)
        ranks[i] = rank_at(p, p->stage, own, i);
    m->slices = dt_comm_group(m->world, "tensor-parallel", ranks, p->slices);
    for (int i = 0; i < p->stages; i++)
        ranks[i] = rank_at(p, i, own, p->slice);
    m->stages = dt_comm_group(m->world, "pipeline", ranks, p->stages);
    free(ranks);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Values of buckets are told by stages and slices, others by contexts. */
static size_t count_values(const struct place *p, const struct dt_settings *s)
{
    size_t buckets = (size_t)dt_layer_bucket((int)s->model.num_layers) + 2;
    size_t told = most(2 * (size_t)s->training.gradient_accumulation_steps,
                       3 * (size_t)s->training.eval_batches);
    return most(most((size_t)p->stages, (size_t)p->slices) * buckets, (size_t)p->contexts * told);
}

int dt_mesh_open(struct dt_mesh *m, struct dt_comm *world, const struct dt_settings *s,
                 struct dt_error *err)
{
    struct place p;
    DT_TRY(find_place(&p, world, s, err));
    *m = (struct dt_mesh){.world = world};
    open_groups(m, &p);
    m->flags = dt_alloc((size_t)dt_comm_size(world), 1);
    m->values = dt_alloc(count_values(&p, s), sizeof *m->values);
    m->part = (struct dt_model_part){
        .stage = p.stage,
        .stages = p.stages,
        .chunks = (int)s->distributed.virtual_stages,
        .slice = p.slice,
        .slices = p.slices,
        .peers = p.slices > 1 ? dt_comm_near(m->slices) : NULL,
        .sequence = s->distributed.sequence_parallel,
        .context = p.context,
        .contexts = p.contexts,
        .ring = p.contexts > 1 ? dt_comm_near(m->contexts) : NULL,
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

static int add_up(const struct dt_mesh *m, struct dt_comm *group, double *values, size_t count,
                  struct dt_error *err)
{
    size_t ranks = (size_t)dt_comm_size(group);
    if (ranks == 1)
        return 0;
    DT_TRY(share_values(m, group, values, count, err));
    for (size_t i = 0; i < count; i++) {
        values[i] = 0;
        for (size_t r = 0; r < ranks; r++)
            values[i] += m->values[r * count + i];
    }
    return 0;
}

int dt_mesh_add_up_slices(const struct dt_mesh *m, double *values, int buckets,
                          struct dt_error *err)
{
    return add_up(m, m->slices, values, (size_t)buckets, err);
}

int dt_mesh_add_up_contexts(const struct dt_mesh *m, double *values, int64_t count,
                            struct dt_error *err)
{
    return add_up(m, m->contexts, values, (size_t)count, err);
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
