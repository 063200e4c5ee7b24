/* SPDX-License-Identifier: MIT */
#include "parallel/mesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "model/context-parallel.h"

/* Sizes of the mesh, and a rank's coordinates. */
struct position {
    int stages, dp_size, cp_size, tp_size;
    int shards; /* ranks of a sharding group */
    int stage, dp_rank, cp_rank, tp_rank;
};

/* Ranks that hold equal parts of the model, and the number of one of them. */
static int dp_cp_size(const struct position *p)
{
    return p->dp_size * p->cp_size;
}

static int dp_cp_rank(const struct position *p, int dp_rank, int cp_rank)
{
    return dp_rank * p->cp_size + cp_rank;
}

static int rank_at(const struct position *p, int stage, int dp_cp, int tp_rank)
{
    return (stage * dp_cp_size(p) + dp_cp) * p->tp_size + tp_rank;
}

static int find_sizes(struct position *p, int size, const struct dt_settings *s,
                      struct dt_error *err)
{
    *p = (struct position){.stages = (int)s->distributed.pp,
                           .cp_size = (int)s->distributed.cp,
                           .tp_size = (int)s->distributed.tp};
    int64_t part = (int64_t)p->stages * p->cp_size * p->tp_size;
    if (size % part != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.pp (%d) times distributed.cp (%d) times distributed.tp (%d) "
                       "must divide the number of ranks, which is %d",
                       p->stages, p->cp_size, p->tp_size, size);
    p->dp_size = size / (int)part;
    p->shards = s->distributed.shard_ranks > 0 ? (int)s->distributed.shard_ranks : dp_cp_size(p);
    if (dp_cp_size(p) % p->shards != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.shard_ranks (%d) must divide the number of data-parallel%s "
                       "ranks, which is %d",
                       p->shards, p->cp_size > 1 ? " times context-parallel" : "", dp_cp_size(p));
    return 0;
}

/* The rows of a micro-batch are in 16 parts for the sums of norms (layer.c), of which each rank
 * that has some of the rows must have whole ones. */
static int check_row_parts(const struct dt_settings *s, struct dt_error *err)
{
    long cp_size = s->distributed.cp, tp_size = s->distributed.tp;
    long sharing = s->distributed.sequence_parallel ? cp_size * tp_size : cp_size;
    long rows = s->training.batch_size * s->training.sequence_length;
    if (DT_ROW_PARTS % sharing != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.invariant needs a distributed.cp%s that divides %d, not %ld",
                       sharing > cp_size ? " times distributed.tp, with sequence_parallel," : "",
                       DT_ROW_PARTS, sharing);
    if (rows % sharing != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.invariant with distributed.sequence_parallel needs a "
                       "training.batch_size times training.sequence_length that is a multiple of "
                       "%ld, not %ld",
                       sharing, rows);
    return 0;
}

/* Whether ranks have parts of the sums inside a micro-batch. */
static bool splits_sums(const struct dt_settings *s)
{
    return s->distributed.tp > 1 || s->distributed.cp > 1;
}

int dt_mesh_check_invariant(const struct dt_settings *s, struct dt_error *err)
{
    long tp_size = s->distributed.tp, groups = s->distributed.shard_ranks;
    int most = dt_tensor_partition_most_invariant(&s->model);
    if (!s->distributed.invariant)
        return 0;
    if (tp_size > most || (tp_size & (tp_size - 1)) != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.invariant needs a distributed.tp that is a power of two up to "
                       "%d with this model, not %ld: it must divide the heads of keys and values "
                       "and the MLP's channels",
                       most, tp_size);
    if (splits_sums(s) && s->training.precision != DT_DTYPE_F32 &&
        s->training.arithmetic != DT_ARITHMETIC_CANONICAL)
        return dt_fail(err, DT_EINVALID,
                       "distributed.invariant with 16-bit types and distributed.tp or "
                       "distributed.cp above 1 needs training.arithmetic canonical");
    if (groups % s->distributed.cp != 0)
        return dt_fail(err, DT_EINVALID,
                       "distributed.invariant needs a distributed.shard_ranks that is a multiple "
                       "of distributed.cp, which is %ld, not %ld",
                       s->distributed.cp, groups);
    return check_row_parts(s, err);
}

static int find_position(struct position *p, struct dt_comm *world, const struct dt_settings *s,
                         struct dt_error *err)
{
    int rank = dt_comm_rank(world);
    DT_TRY(find_sizes(p, dt_comm_size(world), s, err));
    if (p->stages * s->distributed.virtual_stages > s->model.num_layers)
        return dt_fail(err, DT_EINVALID,
                       "model.num_layers (%ld) must be at least distributed.pp times "
                       "distributed.virtual_stages, which is %ld",
                       s->model.num_layers, p->stages * s->distributed.virtual_stages);
    DT_TRY(dt_tensor_partition_check(&s->model, p->tp_size, "the model", err));
    DT_TRY(dt_mesh_check_invariant(s, err));
    p->tp_rank = rank % p->tp_size;
    p->cp_rank = rank / p->tp_size % p->cp_size;
    p->dp_rank = rank / p->tp_size / p->cp_size % p->dp_size;
    p->stage = rank / p->tp_size / dp_cp_size(p);
    return 0;
}

/* The group of count dp x cp ranks first + i * stride. ranks: scratch, one for each rank. */
static struct dt_comm *dp_cp_group(struct dt_comm *world, const char *name,
                                   const struct position *p, int first, int stride, int count,
                                   int *ranks)
{
    for (int i = 0; i < count; i++)
        ranks[i] = rank_at(p, p->stage, first + i * stride, p->tp_rank);
    return dt_comm_group(world, name, ranks, count);
}

static void open_data_groups(struct dt_data_group *r, struct dt_comm *world,
                             const struct position *p, int *ranks)
{
    int own = dp_cp_rank(p, p->dp_rank, p->cp_rank);
    int number = own % p->shards, groups = dp_cp_size(p) / p->shards;
    r->cp_size = p->cp_size;
    r->all = dp_cp_group(world, "data-parallel", p, 0, 1, dp_cp_size(p), ranks);
    r->group = r->all;
    if (groups == 1)
        return;
    r->group = dp_cp_group(world, "sharding", p, own - number, 1, p->shards, ranks);
    r->across = dp_cp_group(world, "replication", p, number, p->shards, groups, ranks);
}

struct dt_data_group dt_data_group_on_device(const struct dt_data_group *r)
{
    struct dt_data_group device = *r;
    device.all = dt_comm_on_device(r->all);
    device.group = dt_comm_on_device(r->group);
    device.across = dt_comm_on_device(r->across);
    return device;
}

int dt_data_group_count(const struct dt_data_group *r)
{
    return r->across ? dt_comm_size(r->across) : 1;
}

/* All ranks create all groups in this order. */
static void open_groups(struct dt_mesh *m, const struct position *p)
{
    int *ranks = dt_alloc((size_t)dt_comm_size(m->world), sizeof *ranks);
    int own = dp_cp_rank(p, p->dp_rank, p->cp_rank);
    open_data_groups(&m->data, m->world, p, ranks);
    m->cp_group =
        dp_cp_group(m->world, "context-parallel", p, own - p->cp_rank, 1, p->cp_size, ranks);
    for (int i = 0; i < p->tp_size; i++)
        ranks[i] = rank_at(p, p->stage, own, i);
    m->tp_group = dt_comm_group(m->world, "tensor-parallel", ranks, p->tp_size);
    for (int i = 0; i < p->stages; i++)
        ranks[i] = rank_at(p, i, own, p->tp_rank);
    m->pp_group = dt_comm_group(m->world, "pipeline", ranks, p->stages);
    free(ranks);
}

int dt_mesh_open(struct dt_mesh *m, struct dt_comm *world, const struct dt_settings *s,
                 struct dt_error *err)
{
    struct position p;
    DT_TRY(find_position(&p, world, s, err));
    *m = (struct dt_mesh){.world = world};
    open_groups(m, &p);
    m->part = (struct dt_model_part){
        .stage = p.stage,
        .stages = p.stages,
        .chunks = (int)s->distributed.virtual_stages,
        .tp_rank = p.tp_rank,
        .tp_size = p.tp_size,
        .tp_group = p.tp_size > 1 ? dt_comm_on_device(m->tp_group) : NULL,
        .sequence = s->distributed.sequence_parallel,
        .cp_rank = p.cp_rank,
        .cp_size = p.cp_size,
        .cp_group = p.cp_size > 1 ? dt_comm_on_device(m->cp_group) : NULL,
        .sequence_parts = (int)s->distributed.sequence_parts,
        .tied_apart = p.stages > 1 || s->distributed.invariant,
        .invariant = s->distributed.invariant,
    };
    return 0;
}

void dt_mesh_release(struct dt_mesh *m)
{
    *m = (struct dt_mesh){0};
}

int dt_mesh_sum_integers(struct dt_comm *group, int64_t *values, size_t count, struct dt_error *err)
{
    size_t ranks = (size_t)dt_comm_size(group), bytes = count * sizeof *values;
    if (ranks == 1)
        return 0;
    int64_t *all = dt_alloc(ranks, bytes);
    memcpy(all + (size_t)dt_comm_rank(group) * count, values, bytes);
    int rc = dt_comm_share(group, all, bytes, err);
    memset(values, 0, bytes);
    for (size_t i = 0; i < ranks * count; i++)
        values[i % count] += all[i];
    free(all);
    return rc;
}

int dt_mesh_sum_exact(struct dt_comm *group, struct dt_exact_sum *sum, struct dt_error *err)
{
    int64_t words[DT_EXACT_SUM_WORDS];
    memcpy(words, sum, sizeof words);
    DT_TRY(dt_mesh_sum_integers(group, words, DT_EXACT_SUM_WORDS, err));
    memcpy(sum, words, sizeof words);
    dt_exact_sum_normalize(sum);
    return 0;
}

int dt_mesh_sum_tokens(const struct dt_mesh *m, struct dt_token_sums *sums, struct dt_error *err)
{
    DT_TRY(dt_mesh_sum_exact(m->data.all, &sums->loss, err));
    DT_TRY(dt_mesh_sum_integers(m->data.all, sums->counts, 2, err));
    if (m->part.stages == 1)
        return 0;
    return dt_comm_wait(
        m->pp_group, dt_comm_broadcast(m->pp_group, sums, sizeof *sums, m->part.stages - 1), err);
}
