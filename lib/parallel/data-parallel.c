/* SPDX-License-Identifier: MIT */
#include "parallel/data-parallel.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fault.h"

#define COUNTED 256 /* micro-batches up to which arrays are counted exactly, not bounded */

struct dt_bucket_reduction {
    int64_t passes; /* backward passes of this rank that have left the bucket */
    bool entered;
    struct dt_tree_stack stack;
    float **spares; /* free arrays for nodes of the tree */
    int spare_count;
    size_t *offsets, *bytes; /* ranks of the sharding group + 1: where each rank's blocks begin in
                              * the bucket, in floats and in bytes */
    size_t shard[2];         /* 0, and the floats of this rank's blocks */
    dt_comm_request request;
    bool pending;
    float *host; /* staged: copies of the messages */
};

static int size_of(const struct dt_data_parallel *p)
{
    return dt_comm_size(p->dp_group.all);
}

static int rank_of(const struct dt_data_parallel *p)
{
    return dt_comm_rank(p->dp_group.all);
}

/* Whether NCCL sums gradients, and whether it does so in bf16. */
static bool uses_library(const struct dt_data_parallel *p)
{
    return p->collectives != DT_COLLECTIVES_ORDERED;
}

static bool sums_in_bf16(const struct dt_data_parallel *p)
{
    return p->collectives == DT_COLLECTIVES_NCCL_BF16;
}

/* Data-parallel ranks, without context parallelism, and the number of one. */
static int dp_size_of(const struct dt_data_parallel *p)
{
    return size_of(p) / p->dp_group.cp_size;
}

static int dp_rank_of(const struct dt_data_parallel *p, int rank)
{
    return rank / p->dp_group.cp_size;
}

/* This rank in its sharding group. */
static int owner_of(const struct dt_data_parallel *p)
{
    return dt_comm_rank(p->dp_group.group);
}

static struct dt_range bucket_range(const struct dt_data_parallel *p, int bucket)
{
    return (struct dt_range){p->sharding.buckets[bucket], p->sharding.buckets[bucket + 1]};
}

static int64_t bucket_size(const struct dt_data_parallel *p, int bucket)
{
    struct dt_range run = bucket_range(p, bucket);
    return dt_range_count(run);
}

/* --- assignment of micro-batches -------------------------------------------------------------- */

int dt_data_parallel_size(const struct dt_data_parallel *p)
{
    return dp_size_of(p);
}

struct dt_range dt_data_parallel_part(const struct dt_data_parallel *p, int64_t count)
{
    return dt_range_part(count, dp_rank_of(p, rank_of(p)), dp_size_of(p));
}

static int group_of(const struct dt_data_parallel *p)
{
    return rank_of(p) / p->sharding.owners;
}

/* Data-parallel ranks of a sharding group; with TREE_SHARD none is in two groups. */
static int group_dp_size(const struct dt_data_parallel *p)
{
    return p->sharding.owners / p->dp_group.cp_size;
}

/* The micro-batches of a sharding group, which with TREE_SHARD its data-parallel ranks take
 * round-robin. */
static struct dt_range group_part(const struct dt_data_parallel *p, int64_t batches, int group)
{
    return dt_range_part(batches, group, p->sharding.groups);
}

static int64_t batch_count_of(const struct dt_data_parallel *p, int64_t batches, int rank)
{
    int dp_rank = dp_rank_of(p, rank), ranks = group_dp_size(p);
    struct dt_range part;
    if (p->storage != DT_GRADIENT_STORAGE_TREE_SHARD) {
        part = dt_range_part(batches, dp_rank, dp_size_of(p));
        return dt_range_count(part);
    }
    part = group_part(p, batches, rank / p->sharding.owners);
    return (dt_range_count(part) - dp_rank % ranks + ranks - 1) / ranks;
}

static int64_t batch_of(const struct dt_data_parallel *p, int64_t batches, int rank, int64_t i)
{
    int dp_rank = dp_rank_of(p, rank), ranks = group_dp_size(p);
    if (p->storage == DT_GRADIENT_STORAGE_TREE_SHARD)
        return group_part(p, batches, rank / p->sharding.owners).first + i * ranks +
               dp_rank % ranks;
    return dt_range_part_first(batches, dp_rank, dp_size_of(p)) + i;
}

int64_t dt_data_parallel_batch_count(const struct dt_data_parallel *p, int64_t batches)
{
    return batch_count_of(p, batches, rank_of(p));
}

int64_t dt_data_parallel_batch(const struct dt_data_parallel *p, int64_t batches, int64_t i)
{
    return batch_of(p, batches, rank_of(p), i);
}

/* With FULL storage, padding comes first, while the arena is still empty. */
int64_t dt_data_parallel_round_batch(const struct dt_data_parallel *p, int64_t round)
{
    int64_t i =
        p->storage == DT_GRADIENT_STORAGE_FULL ? round - (p->rounds - p->own_batches) : round;
    return i < 0 || i >= p->own_batches ? -1 : dt_data_parallel_batch(p, p->batches, i);
}

/* --- layout ----------------------------------------------------------------------------------- */

/* Arrays that the tree needs at a time, in any step of up to most micro-batches. */
static int arrays_needed(const struct dt_data_parallel *p, int64_t most)
{
    int needed = 1;
    bool rounds = p->storage == DT_GRADIENT_STORAGE_TREE_SHARD;
    int64_t each = p->dp_group.cp_size; /* leaves of a micro-batch */
    if (most > COUNTED) {
        int64_t ranges = rounds ? p->sharding.groups : size_of(p);
        for (int64_t own = (most + ranges - 1) / ranges * each; own > 1; own /= 2)
            needed += 2;
        return needed + 1;
    }
    for (int64_t batches = dp_size_of(p); batches <= most; batches++) {
        struct dt_range own =
            rounds ? group_part(p, batches, group_of(p)) : dt_data_parallel_part(p, batches);
        int arrays = dt_tree_arrays(each * own.first, each * own.end, each * batches);
        needed = arrays > needed ? arrays : needed;
    }
    return needed;
}

static bool uses_slots(const struct dt_data_parallel *p)
{
    return p->storage == DT_GRADIENT_STORAGE_SHARD || p->storage == DT_GRADIENT_STORAGE_TREE_SHARD;
}

static enum dt_gradient_storage storage_of(const struct dt_data_parallel *p, int64_t most)
{
    bool sharded = p->zero_stage >= 2 || p->dp_group.cp_size > 1;
    if (p->invariant)
        return sharded ? DT_GRADIENT_STORAGE_TREE_SHARD : DT_GRADIENT_STORAGE_TREE;
    return p->zero_stage >= 2 && most == dp_size_of(p) ? DT_GRADIENT_STORAGE_SHARD
                                                       : DT_GRADIENT_STORAGE_FULL;
}

static void allocate_bucket(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    int owners = p->sharding.owners;
    s->spares = dt_alloc((size_t)p->arena_count, sizeof *s->spares);
    s->offsets = dt_alloc((size_t)owners + 1, sizeof *s->offsets);
    s->bytes = dt_alloc((size_t)owners + 1, sizeof *s->bytes);
    for (int r = 0; r < owners; r++) {
        struct dt_range run = dt_sharding_owned(&p->sharding, bucket, r);
        s->offsets[r] = (size_t)(run.first - p->sharding.buckets[bucket]);
        s->offsets[r + 1] = (size_t)(run.end - p->sharding.buckets[bucket]);
    }
    for (int r = 0; r <= owners; r++)
        s->bytes[r] = s->offsets[r] * (sums_in_bf16(p) ? sizeof(uint16_t) : sizeof(float));
    s->shard[1] = s->offsets[owner_of(p) + 1] - s->offsets[owner_of(p)];
}

/* Arrays that grow with the number of ranks, which a plan does not need. */
static void allocate_group_arrays(struct dt_data_parallel *p)
{
    size_t size = (size_t)size_of(p);
    p->first_leaves = dt_alloc(size + 1, sizeof *p->first_leaves);
    p->group_first_leaves = dt_alloc((size_t)p->sharding.groups + 1, sizeof *p->group_first_leaves);
    for (int b = 0; b < p->sharding.count; b++)
        allocate_bucket(p, b);
}

/* Every rank needs a micro-batch in every step. */
static int check(const struct dt_settings *settings, int size, struct dt_error *err)
{
    long most = settings->training.gradient_accumulation_steps;
    long least =
        settings->training.batch_ramp_tokens > 0 ? settings->training.batch_ramp_start : most;
    if (least < size)
        return dt_fail(
            err, DT_EINVALID,
            "a step has %ld micro-batch%s, and each of %d data-parallel ranks needs one: raise %s",
            least, least == 1 ? "" : "es", size,
            least < most ? "training.batch_ramp_start" : "training.gradient_accumulation_steps");
    return 0;
}

/* Scratch of the device communicator for partial sums. */
static size_t link_scratch_of(const struct dt_data_parallel *p)
{
    size_t most = 0;
    if (!dt_comm_is_on_device(p->device_group.all) || size_of(p) == 1 || uses_library(p))
        return 0;
    for (int b = 0; b < p->sharding.count; b++)
        most = (size_t)bucket_size(p, b) > most ? (size_t)bucket_size(p, b) : most;
    most = most < DT_LINK_CHUNK ? most : DT_LINK_CHUNK;
    return (size_t)(p->sharding.owners + p->sharding.groups) * most * sizeof(float);
}

int dt_data_parallel_init(struct dt_data_parallel *p, const struct dt_data_group *dp_group,
                          struct dt_device *device, const struct dt_sharding *sharding,
                          const struct dt_settings *settings, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(dp_group->all),
           groups = (size_t)dt_data_group_count(dp_group);
    const struct dt_data_group device_group = dt_data_group_on_device(dp_group);
    bool own_memory = device && device->engine->own_memory;
    size_t owners = size / groups;
    long most = settings->training.gradient_accumulation_steps;
    *p = (struct dt_data_parallel){
        .dp_group = *dp_group,
        .device_group = device_group,
        .device = device,
        .sharding = *sharding,
        .zero_stage = owners > 1 ? (int)settings->distributed.zero_stage : 0,
        .invariant = settings->distributed.invariant,
        .overlap = settings->distributed.overlap,
        .staged = own_memory && size > 1 && !dt_comm_is_on_device(device_group.all)};
    p->staging =
        (struct dt_host_staging){.comm = device_group.all, .device = device, .needed = p->staged};
    DT_TRY(check(settings, dp_size_of(p), err));
    p->max_batches = most;
    p->sharding.owners = (int)owners;
    p->sharding.groups = (int)groups;
    p->separate = size > 1 && dt_settings_sync_is_local(settings);
    p->local = p->separate || (size > 1 && settings->distributed.compress != 0);
    if (size > 1 && settings->distributed.sync == DT_SYNC_PARAMETER_SERVER) {
        p->sharding.root_owns_all = true;
        p->zero_stage = p->zero_stage > 0 ? p->zero_stage : 1;
    }
    if (p->invariant && p->dp_group.cp_size > 1 && p->zero_stage == 0)
        p->zero_stage = 1;
    if (size > 1)
        p->collectives = (enum dt_collectives)settings->distributed.collectives;
    p->sharding.even = uses_library(p);
    p->link_scratch_bytes = link_scratch_of(p);
    p->storage = storage_of(p, most);
    bool tree =
        p->storage == DT_GRADIENT_STORAGE_TREE || p->storage == DT_GRADIENT_STORAGE_TREE_SHARD;
    p->arena_count = tree ? arrays_needed(p, most) : 1;
    p->arenas = dt_alloc((size_t)p->arena_count, sizeof *p->arenas);
    p->gradients = dt_alloc((size_t)sharding->count, sizeof *p->gradients);
    p->reductions = dt_alloc((size_t)sharding->count, sizeof *p->reductions);
    if (uses_slots(p))
        dt_bucket_slots_init(&p->slots, &p->sharding);
    if (sums_in_bf16(p))
        dt_bucket_slots_init(&p->rounded, &p->sharding);
    return 0;
}

/* TREE_SHARD through host memory: the nodes of the tree are on the host. */
static bool nodes_on_host(const struct dt_data_parallel *p)
{
    return p->staged && p->storage == DT_GRADIENT_STORAGE_TREE_SHARD;
}

void dt_data_parallel_layout(struct dt_data_parallel *p, struct dt_arena *arena)
{
    const struct dt_sharding *s = &p->sharding;
    int64_t elements =
        uses_slots(p) ? dt_sharding_owned_before(s, s->count, owner_of(p)) : s->buckets[s->count];
    bool on_host = nodes_on_host(p);
    if (arena->memory)
        allocate_group_arrays(p);
    for (int i = 0; i < p->arena_count && !on_host; i++)
        p->arenas[i] = dt_arena_take(arena, (size_t)elements * sizeof(float));
    for (int i = 0; i < p->arena_count && on_host && arena->memory; i++)
        p->arenas[i] = dt_alloc((size_t)elements, sizeof(float));
    if (on_host)
        p->device_sums = dt_arena_take(arena, (size_t)elements * sizeof(float));
    if (uses_slots(p))
        dt_bucket_slots_layout(&p->slots, sizeof(float), arena);
    if (sums_in_bf16(p))
        dt_bucket_slots_layout(&p->rounded, sizeof(uint16_t), arena);
    p->link_scratch = dt_arena_take(arena, p->link_scratch_bytes);
    if (arena->memory && p->link_scratch_bytes > 0)
        dt_comm_give_scratch(p->device_group.all, p->link_scratch, p->link_scratch_bytes);
}

void dt_data_parallel_release(struct dt_data_parallel *p)
{
    for (int b = 0; p->reductions && b < p->sharding.count; b++) {
        free(p->reductions[b].spares);
        free(p->reductions[b].offsets);
        free(p->reductions[b].bytes);
        free(p->reductions[b].host);
    }
    for (int i = 0; i < p->arena_count && nodes_on_host(p); i++)
        free(p->arenas[i]);
    dt_bucket_slots_release(&p->slots);
    dt_bucket_slots_release(&p->rounded);
    dt_host_staging_release(&p->staging);
    dt_gradient_norm_release(&p->norm);
    free(p->reductions);
    free(p->gradients);
    free(p->arenas);
    free(p->first_leaves);
    free(p->group_first_leaves);
    *p = (struct dt_data_parallel){0};
}

/* --- gradients -------------------------------------------------------------------------------- */

#define ROW ((int64_t)1 << 16)

/* n floats as a matrix of full rows and one shorter row: ops take matrices. */
static void rows_of(float *x, int64_t n, struct dt_tensor *rows, struct dt_tensor *rest)
{
    *rows = dt_matrix(x, n / ROW, ROW);
    *rest = dt_matrix(x + n / ROW * ROW, 1, n % ROW);
}

static void zero(struct dt_device *dev, float *x, int64_t n)
{
    struct dt_tensor rows, rest;
    rows_of(x, n, &rows, &rest);
    dev->ops->zero(dev, &rows);
    dev->ops->zero(dev, &rest);
}

static void add(void *context, float *sum, const float *x, size_t n)
{
    struct dt_device *dev = context;
    struct dt_tensor to[2], from[2];
    rows_of(sum, (int64_t)n, &to[0], &to[1]);
    rows_of((float *)(uintptr_t)x, (int64_t)n, &from[0], &from[1]);
    for (int i = 0; i < 2; i++)
        dev->ops->combine(dev, &to[i], 1, &from[i], 1);
}

/* A bucket, or the shard of it, in an arena. */
static float *gradients_in(const struct dt_data_parallel *p, int arena, int bucket)
{
    int64_t at = uses_slots(p) ? dt_sharding_owned_before(&p->sharding, bucket, owner_of(p))
                               : p->sharding.buckets[bucket];
    return p->arenas[arena] + at;
}

static void begin_bucket(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    s->passes = 0;
    s->entered = s->pending = false;
    s->stack = (struct dt_tree_stack){.total = p->first_leaves[size_of(p)],
                                      .n = (size_t)bucket_size(p, bucket)};
    if (p->storage == DT_GRADIENT_STORAGE_TREE_SHARD) {
        s->stack.n = s->shard[1];
    } else {
        s->stack.adder = (struct dt_tree_adder){add, p->device};
    }
    s->spare_count = 0;
    for (int i = p->arena_count - 1; i >= 0; i--) /* the first array is taken first */
        s->spares[s->spare_count++] = gradients_in(p, i, bucket);
    if (!p->invariant)
        s->stack.parts[s->stack.count++] = (struct dt_tree_part){{0, rank_of(p)}, s->spares[0]};
}

void dt_data_parallel_begin_step(struct dt_data_parallel *p, int64_t batches)
{
    int size = size_of(p), dp_size = dp_size_of(p), cp_size = p->dp_group.cp_size;
    p->batches = batches;
    p->own_batches = dt_data_parallel_batch_count(p, batches);
    p->rounds = p->zero_stage == 3 || p->storage == DT_GRADIENT_STORAGE_TREE_SHARD
                    ? (batches + dp_size - 1) / dp_size
                    : p->own_batches;
    p->padding = false;
    p->failed = 0;
    for (int r = 0; r <= size; r++)
        p->first_leaves[r] =
            p->invariant ? cp_size * dt_range_part_first(batches, dp_rank_of(p, r), dp_size) : r;
    for (int g = 0; g <= p->sharding.groups; g++)
        p->group_first_leaves[g] = p->first_leaves[g * p->sharding.owners];
    for (int b = 0; b < p->sharding.count; b++)
        begin_bucket(p, b);
    if (p->sums_first)
        dt_gradient_norm_begin(&p->norm, p->device);
}

/* --- staging ---------------------------------------------------------------------------------- */

static float *copy_to_host(struct dt_data_parallel *p, int bucket, int index, const float *from)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    size_t n = (size_t)bucket_size(p, bucket);
    if (s->host == NULL)
        s->host = dt_alloc(n * (size_t)(uses_slots(p) ? 1 : p->arena_count), sizeof *s->host);
    float *to = s->host + (size_t)index * n;
    p->device->ops->download(p->device, to, from, n * sizeof *to);
    return to;
}

/* Copies this rank's part of the reduced bucket back to the device. */
static void upload_reduced(struct dt_data_parallel *p, int bucket)
{
    const struct dt_bucket_reduction *s = &p->reductions[bucket];
    int owner = owner_of(p);
    size_t first = p->zero_stage > 0 ? s->offsets[owner] : 0;
    size_t end = s->offsets[p->zero_stage > 0 ? owner + 1 : p->sharding.owners];
    const float *from = s->host + first;
    if (nodes_on_host(p))
        from = s->stack.parts[0].values;
    if (end > first && (!nodes_on_host(p) || s->passes == p->rounds))
        p->device->ops->upload(p->device, dt_data_parallel_reduced(p, bucket), from,
                               (end - first) * sizeof *from);
}

static void copy(const struct dt_data_parallel *p, float *to, float *from, size_t n)
{
    struct dt_tensor t = dt_matrix(to, 1, (int64_t)n), f = dt_matrix(from, 1, (int64_t)n);
    if (to != from)
        p->device->ops->copy(p->device, &t, &f);
}

static float *own_blocks(const struct dt_data_parallel *p, int bucket)
{
    return (float *)p->gradients[bucket] + p->reductions[bucket].offsets[owner_of(p)];
}

/* Copies this rank's shard out of the slot, which is free then. */
static void store_shard(struct dt_data_parallel *p, int bucket)
{
    copy(p, gradients_in(p, 0, bucket), own_blocks(p, bucket), p->reductions[bucket].shard[1]);
}

/* The sums of NCCL_BF16, in fp32: of the whole bucket, or of this rank's shard. */
static void store_rounded(struct dt_data_parallel *p, int bucket)
{
    struct dt_range run = dt_data_parallel_shard(p, bucket);
    const uint16_t *sums = dt_bucket_slots_buffer(&p->rounded, bucket);
    int64_t n = dt_range_count(run);
    struct dt_tensor to = dt_matrix(dt_data_parallel_reduced(p, bucket), 1, n);
    struct dt_tensor from = dt_matrix_of(
        DT_DTYPE_BF16, (void *)(uintptr_t)(sums + (run.first - p->sharding.buckets[bucket])), 1, n);
    p->device->ops->copy(p->device, &to, &from);
}

/* Waits for a bucket's reduction. */
static void finish_reduction(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    struct dt_error err;
    if (!s->pending)
        return;
    s->pending = false;
    int rc = dt_comm_wait(p->device_group.all, s->request, &err);
    if (rc < 0 && p->failed == 0) {
        p->failed = rc;
        p->error = err;
    }
    if (p->staged && rc == 0)
        upload_reduced(p, bucket);
    else if (sums_in_bf16(p))
        store_rounded(p, bucket);
    else if (p->storage == DT_GRADIENT_STORAGE_SHARD)
        store_shard(p, bucket);
}

void dt_data_parallel_enter_bucket(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    if (bucket_size(p, bucket) == 0 || s->entered)
        return;
    s->entered = true;
    if (uses_slots(p)) {
        int holder = dt_bucket_slots_holder(&p->slots, bucket);
        if (holder >= 0)
            finish_reduction(p, holder);
        p->gradients[bucket] = dt_bucket_slots_take(&p->slots, bucket);
    } else {
        p->gradients[bucket] = s->spares[s->spare_count - 1];
    }
    if (p->storage != DT_GRADIENT_STORAGE_FULL || s->passes == 0)
        zero(p->device, p->gradients[bucket], bucket_size(p, bucket));
}

/* Fault injection: the result is this rank's own gradients. */
static void skip_reduction(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    if (p->storage == DT_GRADIENT_STORAGE_TREE_SHARD && !p->padding) {
        s->stack.parts[0].values = s->spares[0];
        if (!p->staged) {
            copy(p, s->spares[0], own_blocks(p, bucket), s->shard[1]);
            return;
        }
        p->device->ops->download(p->device, s->spares[0], own_blocks(p, bucket),
                                 s->shard[1] * sizeof(float));
        upload_reduced(p, bucket);
    } else if (p->storage == DT_GRADIENT_STORAGE_TREE) {
        copy(p, gradients_in(p, 0, bucket), s->stack.parts[0].values,
             (size_t)bucket_size(p, bucket));
    } else if (p->storage == DT_GRADIENT_STORAGE_SHARD) {
        store_shard(p, bucket);
    }
}

/* The bucket in bf16, in a slot whose last bucket has been summed. */
static void *round_bucket(struct dt_data_parallel *p, int bucket, float *values)
{
    int holder = dt_bucket_slots_holder(&p->rounded, bucket);
    int64_t n = bucket_size(p, bucket);
    if (holder >= 0)
        finish_reduction(p, holder);
    void *rounded = dt_bucket_slots_take(&p->rounded, bucket);
    struct dt_tensor to = dt_matrix_of(DT_DTYPE_BF16, rounded, 1, n),
                     from = dt_matrix(values, 1, n);
    p->device->ops->copy(p->device, &to, &from);
    return rounded;
}

/* As start_reduction, by NCCL. */
static void start_library_reduction(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    enum dt_dtype type = sums_in_bf16(p) ? DT_DTYPE_BF16 : DT_DTYPE_F32;
    void *values = uses_slots(p) ? p->gradients[bucket] : gradients_in(p, 0, bucket);
    if (sums_in_bf16(p))
        values = round_bucket(p, bucket, values);
    s->request = dt_comm_library_reduce_scatter(p->device_group.all, values, type, s->offsets);
    if (p->zero_stage == 0)
        s->request = dt_comm_all_gather(p->device_group.all, values, s->bytes);
    s->pending = true;
}

static void start_reduction(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    float *whole = uses_slots(p) ? p->gradients[bucket] : gradients_in(p, 0, bucket);
    if (p->storage == DT_GRADIENT_STORAGE_SHARD)
        s->stack.parts[0].values = whole;
    for (int i = 0; i < s->stack.count && p->staged; i++)
        s->stack.parts[i].values = copy_to_host(p, bucket, i, s->stack.parts[i].values);
    if (p->staged)
        whole = s->host;
    struct dt_reduction how = {.offsets = s->offsets,
                               .firsts = p->first_leaves,
                               .parts = s->stack.parts,
                               .count = s->stack.count,
                               .sum = whole,
                               .groups = p->sharding.groups};
    s->request = dt_comm_reduce_scatter(p->device_group.all, &how);
    if (p->zero_stage == 0)
        s->request = dt_comm_all_gather(p->device_group.group, whole, s->bytes);
    s->pending = true;
}

/* After the last round: reduces the nodes of all sharding groups. */
static void reduce_across_groups(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    struct dt_tree_node nodes[DT_TREE_NODES];
    const int64_t *first = &p->group_first_leaves[group_of(p)];
    struct dt_reduction how = {.offsets = s->shard,
                               .firsts = p->group_first_leaves,
                               .parts = s->stack.parts,
                               .count = dt_tree_cover(first[0], first[1], s->stack.total, nodes),
                               .groups = p->sharding.groups};
    s->request = dt_comm_reduce_scatter(p->device_group.across, &how);
}

static void start_round_reduction(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    float *values = p->gradients[bucket];
    const int64_t *first = &p->group_first_leaves[group_of(p)];
    if (p->staged)
        values = copy_to_host(p, bucket, 0, values);
    struct dt_round round = {.offsets = s->offsets,
                             .first = first[0] + (s->passes - 1) * p->sharding.owners,
                             .end = first[1],
                             .values = values,
                             .stack = &s->stack,
                             .spares = s->spares,
                             .spare_count = &s->spare_count};
    s->request = dt_comm_reduce_round(p->device_group.group, &round);
    if (p->sharding.groups > 1 && s->passes == p->rounds)
        reduce_across_groups(p, bucket);
    s->pending = true;
}

void dt_data_parallel_leave_bucket(struct dt_data_parallel *p, int bucket)
{
    struct dt_bucket_reduction *s = &p->reductions[bucket];
    struct dt_error err;
    s->entered = false;
    if (bucket_size(p, bucket) == 0 || (p->padding && p->storage != DT_GRADIENT_STORAGE_TREE_SHARD))
        return;
    if (p->sums_first && s->passes == 0)
        dt_gradient_norm_add(&p->norm, p->device, bucket_range(p, bucket), p->gradients[bucket]);
    s->passes++;
    if (p->storage == DT_GRADIENT_STORAGE_TREE) {
        float *values = s->spares[--s->spare_count];
        s->spare_count +=
            dt_tree_push(&s->stack, dt_data_parallel_batch(p, p->batches, s->passes - 1), values,
                         s->spares + s->spare_count);
    }
    if (p->local || (p->storage != DT_GRADIENT_STORAGE_TREE_SHARD && s->passes < p->own_batches))
        return;
    if (dt_comm_finish_ops(p->device_group.all, p->device, &err) < 0 && p->failed == 0) {
        p->failed = err.code;
        p->error = err;
    }
    if (dt_fault_injected(DT_FAULT_SKIP_REDUCTION, bucket))
        skip_reduction(p, bucket);
    else if (p->storage == DT_GRADIENT_STORAGE_TREE_SHARD)
        start_round_reduction(p, bucket);
    else if (uses_library(p))
        start_library_reduction(p, bucket);
    else
        start_reduction(p, bucket);
    if (!p->overlap)
        finish_reduction(p, bucket);
}

/* --- reduced gradients ------------------------------------------------------------------------ */

struct dt_range dt_data_parallel_shard(const struct dt_data_parallel *p, int bucket)
{
    if (p->zero_stage > 0)
        return dt_sharding_owned(&p->sharding, bucket, owner_of(p));
    return bucket_range(p, bucket);
}

struct dt_range dt_data_parallel_owned(const struct dt_data_parallel *p, int bucket)
{
    return dt_sharding_owned_part(&p->sharding, bucket, owner_of(p), group_of(p));
}

static float *owned_gradients(const struct dt_data_parallel *p, int bucket)
{
    const struct dt_bucket_reduction *s = &p->reductions[bucket];
    if (nodes_on_host(p))
        return p->device_sums + dt_sharding_owned_before(&p->sharding, bucket, owner_of(p));
    if (p->storage == DT_GRADIENT_STORAGE_TREE_SHARD)
        return s->stack.parts[0].values;
    return uses_slots(p) ? gradients_in(p, 0, bucket)
                         : gradients_in(p, 0, bucket) + s->offsets[owner_of(p)];
}

float *dt_data_parallel_reduced(const struct dt_data_parallel *p, int bucket)
{
    return p->zero_stage > 0 ? owned_gradients(p, bucket) : gradients_in(p, 0, bucket);
}

int dt_data_parallel_wait(struct dt_data_parallel *p, struct dt_error *err)
{
    for (int b = 0; b < p->sharding.count; b++)
        finish_reduction(p, b);
    if (p->failed < 0)
        *err = p->error;
    return p->failed;
}

int dt_data_parallel_squares(struct dt_data_parallel *p, int buckets, struct dt_exact_sum *sum,
                             struct dt_error *err)
{
    dt_gradient_norm_begin(&p->norm, p->device);
    for (int b = 0; b < buckets; b++) {
        if (p->separate)
            dt_gradient_norm_add(&p->norm, p->device, dt_data_parallel_shard(p, b),
                                 dt_data_parallel_reduced(p, b));
        else
            dt_gradient_norm_add(&p->norm, p->device,
                                 dt_sharding_owned(&p->sharding, b, owner_of(p)),
                                 owned_gradients(p, b));
    }
    dt_gradient_norm_end(&p->norm, p->device, sum);
    if (p->separate)
        return dt_mesh_sum_integers(p->dp_group.all, sum->infinities, 2, err);
    return dt_mesh_sum_exact(p->dp_group.group, sum, err);
}
