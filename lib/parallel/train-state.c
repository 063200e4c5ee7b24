/* SPDX-License-Identifier: MIT */
#include "parallel/train-state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fault.h"
#include "hash/hash.h"

/* Bytes taken from the arena since the last call. */
static size_t bytes_since(const struct dt_arena *arena, size_t *before)
{
    size_t bytes = arena->used - *before;
    *before = arena->used;
    return bytes;
}

static bool is_sharded(const struct dt_train_state *s)
{
    return s->dp.zero_stage > 0;
}

/* Whether the fp32 parameters are a separate array: weights have another type or are gathered, or
 * the EMA swaps with them. */
static bool has_master(const struct dt_train_state *s)
{
    return s->dp.zero_stage == 3 || s->model->compute != DT_DTYPE_F32 || s->has_ema;
}

/* Pointers to each bucket's shard in an array of all shards. */
static void locate(const struct dt_train_state *s, float *base, float **shards)
{
    for (int b = 0; b < s->model->table.bucket_count; b++) {
        shards[b] = base;
        base = base ? base + dt_range_count(s->shards[b]) : NULL;
    }
}

static void locate_parameters(struct dt_train_state *s)
{
    float *whole = is_sharded(s) ? s->gather.weights : s->model->parameters;
    if (s->master) {
        locate(s, s->master, s->parameters);
        return;
    }
    for (int b = 0; b < s->model->table.bucket_count; b++)
        s->parameters[b] = whole ? whole + s->shards[b].first : NULL;
}

/* The bucket with this stage's gradients of the tied embedding; -1: none. */
static int tied_bucket(const struct dt_train_state *s)
{
    const struct dt_table *t = &s->model->table;
    const struct dt_model_part *part = &s->model->part;
    if (!s->model->config.tie_word_embeddings || !part->tied_apart || s->model->adapter)
        return -1;
    if (part->stage == 0)
        return DT_TOKEN_BUCKET;
    return part->stage == part->stages - 1 ? dt_head_bucket(t) : -1;
}

static bool stages_are_linked(const struct dt_train_state *s)
{
    return s->mesh->part.stages > 1 && dt_comm_is_on_device(dt_comm_on_device(s->mesh->pp_group));
}

/* Bytes that the first and the last stage exchange. */
static size_t tied_bytes(const struct dt_train_state *s)
{
    int bucket = tied_bucket(s);
    if (bucket < 0 || s->model->part.stages == 1)
        return 0;
    return (size_t)dt_range_count(dt_data_parallel_shard(&s->dp, bucket)) * sizeof(float);
}

static void lay_out(struct dt_train_state *s)
{
    size_t before = 0, bytes = (size_t)s->elements * sizeof(float);
    if (is_sharded(s))
        dt_parameter_gather_layout(&s->gather, &s->arena);
    s->bytes.weights = bytes_since(&s->arena, &before);
    s->master = is_sharded(s) && has_master(s) ? dt_arena_take(&s->arena, bytes) : NULL;
    s->bytes.parameters = bytes_since(&s->arena, &before);
    if (!has_master(s)) { /* the weights are the parameters */
        s->bytes.parameters = s->bytes.weights;
        s->bytes.weights = 0;
    }
    dt_data_parallel_layout(&s->dp, &s->arena);
    if (stages_are_linked(s))
        s->tied_gradients = dt_arena_take(&s->arena, tied_bytes(s));
    dt_compression_layout(&s->compression, &s->arena);
    s->bytes.gradients = bytes_since(&s->arena, &before);
    dt_optimizer_layout_state(&s->optimizer, &s->arena);
    s->outer_start = s->has_outer ? dt_arena_take(&s->arena, bytes) : NULL;
    s->outer_momentum = s->has_outer ? dt_arena_take(&s->arena, bytes) : NULL;
    s->bytes.moments = bytes_since(&s->arena, &before);
    s->ema = s->has_ema ? dt_arena_take(&s->arena, bytes) : NULL;
    s->bytes.average = bytes_since(&s->arena, &before);
    dt_optimizer_layout_scratch(&s->optimizer, &s->arena);
    dt_gradient_norm_layout(&s->dp.norm, &s->arena);
    s->bytes.scratch = bytes_since(&s->arena, &before);
    locate_parameters(s);
    locate(s, s->ema, s->ema_shards);
}

static void enter(void *context, int bucket, bool gradients)
{
    struct dt_train_state *s = context;
    if (is_sharded(s))
        dt_parameter_gather_enter(&s->gather, bucket, gradients);
    if (gradients)
        dt_data_parallel_enter_bucket(&s->dp, bucket);
}

static void leave(void *context, int bucket, bool gradients)
{
    struct dt_train_state *s = context;
    if (gradients)
        dt_data_parallel_leave_bucket(&s->dp, bucket);
}

/* --- tied embedding -----------------------------------------------------------------------------
 *
 * The gradients of its two uses, embedding and output head, stay separate until here, so that the
 * sum has the same bits with one stage and with both uses in different stages.
 */

/* sum += received: n floats on the device. */
static void add(const struct dt_train_state *s, float *sum, float *received, int64_t n)
{
    struct dt_tensor to = dt_matrix(sum, 1, n), from = dt_matrix(received, 1, n);
    s->model->device->ops->combine(s->model->device, &to, 1, &from, 1);
}

/* Exchanges gradients with the other stage: device memory with a device communicator, otherwise
 * host memory. */
static int swap(const struct dt_train_state *s, float *own, float *other_values,
                struct dt_error *err)
{
    const struct dt_model_part *part = &s->model->part;
    struct dt_comm *stages = dt_comm_on_device(s->mesh->pp_group);
    int other = part->stage == 0 ? part->stages - 1 : 0;
    struct dt_piece sent = {own, tied_bytes(s)}, received = {other_values, tied_bytes(s)};
    struct dt_passing both = dt_comm_swap(stages, other, 0, sent, received);
    return dt_comm_end_passing(stages, &both, err);
}

/* Adds the other stage's gradients. */
static int all_reduce_tied(struct dt_train_state *s, float *sum, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    size_t bytes = tied_bytes(s), n = bytes / sizeof *sum;
    float *own = s->tied_gradients, *received = s->tied_gradients + n;
    if (stages_are_linked(s)) {
        DT_TRY(swap(s, sum, s->tied_gradients, err));
        add(s, sum, s->tied_gradients, (int64_t)n);
        return 0;
    }
    dev->ops->download(dev, own, sum, bytes);
    DT_TRY(swap(s, own, received, err));
    for (size_t i = 0; i < n; i++)
        own[i] += received[i];
    dev->ops->upload(dev, sum, own, bytes);
    return 0;
}

static int reduce_tied(struct dt_train_state *s, struct dt_error *err)
{
    int bucket = tied_bucket(s), head = dt_head_bucket(&s->model->table);
    if (bucket < 0)
        return 0;
    float *sum = dt_data_parallel_reduced(&s->dp, bucket);
    if (s->model->part.stages > 1)
        return dt_fault_injected(DT_FAULT_SKIP_TIED, 1) ? 0 : all_reduce_tied(s, sum, err);
    add(s, sum, dt_data_parallel_reduced(&s->dp, head),
        dt_range_count(dt_data_parallel_shard(&s->dp, bucket)));
    return 0;
}

int dt_train_state_reduce_gradients(struct dt_train_state *s, double *norm, struct dt_error *err)
{
    const struct dt_table *t = &s->model->table;
    struct dt_exact_sum squares;
    DT_TRY(dt_data_parallel_wait(&s->dp, err));
    dt_compression_begin(&s->compression);
    for (int b = 0; s->compression.kind != DT_COMPRESS_NONE && b < t->bucket_count; b++)
        DT_TRY(dt_compression_all_reduce(&s->compression, b, dt_data_parallel_reduced(&s->dp, b),
                                         err));
    DT_TRY(reduce_tied(s, err));
    /* A separate head's gradients are in the embedding's. */
    DT_TRY(dt_data_parallel_squares(&s->dp, dt_head_bucket(t), &squares, err));
    DT_TRY(dt_mesh_sum_exact(s->mesh->tp_group, &squares, err));
    DT_TRY(dt_mesh_sum_exact(s->mesh->pp_group, &squares, err));
    *norm = sqrt(dt_exact_sum_round(&squares));
    return 0;
}

/* --- planning --------------------------------------------------------------------------------- */

/* Elements that have parameters: the copy of a tied head has gradients only. */
static struct dt_range clip(struct dt_range run, int64_t elements)
{
    return (struct dt_range){run.first < elements ? run.first : elements,
                             run.end < elements ? run.end : elements};
}

/* Elements that another tensor-parallel rank counts in the norm: replicated ones have one owner. */
static void exclude_replicated(struct dt_train_state *s)
{
    const struct dt_table *t = &s->model->table;
    struct dt_gradient_norm *q = &s->dp.norm;
    q->excluded = dt_alloc((size_t)t->count, sizeof *q->excluded);
    for (int i = 0; i < t->count; i++)
        if (!t->params[i].leads)
            q->excluded[q->excluded_count++] =
                (struct dt_range){t->params[i].offset, t->params[i].offset + t->params[i].count};
}

/* Tensor and context parallelism work on device memory directly. Only the cpu engine makes sums in
 * parts. */
static int check_device(const struct dt_train_state *s, struct dt_error *err)
{
    const struct dt_device *dev = s->model->device;
    const struct dt_model_part *part = &s->model->part;
    if (dev == NULL || !dev->engine->own_memory)
        return 0;
    if (dt_optimizer_is_on_host(&s->optimizer))
        return dt_fail(
            err, DT_EINVALID,
            "optimizer.moments bf16 and int8, and optimizer.offload, need device cpu, not "
            "'%s'",
            dev->engine->name);
    bool tp_size = part->tp_size > 1 && !dt_comm_is_on_device(part->tp_group);
    bool cp_size = part->cp_size > 1 && !dt_comm_is_on_device(part->cp_group);
    if (part->invariant && (part->tp_size > 1 || part->cp_size > 1))
        return dt_fail(err, DT_EINVALID,
                       "distributed.invariant with distributed.tp or distributed.cp above 1 needs "
                       "device cpu, not '%s'",
                       dev->engine->name);
    if (!(tp_size || cp_size))
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "%s on device '%s' needs a device communicator (distributed.backend nccl)",
                   tp_size ? "distributed.tp" : "distributed.cp", dev->engine->name);
}

int dt_train_state_plan(struct dt_train_state *s, struct dt_model *model,
                        const struct dt_settings *settings, const struct dt_mesh *mesh,
                        struct dt_error *err)
{
    const struct dt_table *t = &model->table;
    const struct dt_sharding sharding = {.buckets = t->buckets,
                                         .count = t->bucket_count,
                                         .first_layer = dt_table_layer_bucket(0),
                                         .layers = t->layers};
    size_t count = (size_t)t->bucket_count;
    *s = (struct dt_train_state){
        .model = model,
        .mesh = mesh,
        .has_ema = settings->training.ema_decay > 0,
        .has_outer =
            settings->distributed.sync >= DT_SYNC_DILOCO && dt_comm_size(mesh->data.all) > 1,
    };
    DT_TRY(dt_data_parallel_init(&s->dp, &mesh->data, model->device, &sharding, settings, err));
    exclude_replicated(s);
    dt_compression_init(&s->compression, &s->dp.staging, t, settings);
    s->shards = dt_alloc(count, sizeof *s->shards);
    s->parameters = dt_alloc(count, sizeof *s->parameters);
    s->reduced = dt_alloc(count, sizeof *s->reduced);
    s->ema_shards = dt_alloc(count, sizeof *s->ema_shards);
    for (int b = 0; b < t->bucket_count; b++) {
        s->shards[b] = clip(dt_data_parallel_shard(&s->dp, b), t->elements);
        s->elements += dt_range_count(s->shards[b]);
    }
    int64_t *blocks = dt_alloc(count, sizeof *blocks);
    for (int b = 0; b < t->bucket_count; b++)
        blocks[b] = dt_sharding_block_size(&sharding, b);
    dt_optimizer_init(&s->optimizer, t, s->shards, blocks, settings);
    free(blocks);
    DT_TRY(check_device(s, err));
    if (is_sharded(s)) {
        dt_model_strip(model);
        dt_parameter_gather_init(&s->gather, model, &s->dp, s->shards, s->parameters);
    }
    s->gradients = (struct dt_flat){DT_DTYPE_F32, s->dp.gradients};
    s->hooks = (struct dt_bucket_hooks){s, enter, leave};
    model->hooks = &s->hooks;
    lay_out(s);
    return 0;
}

int dt_train_state_allocate(struct dt_train_state *s, struct dt_error *err)
{
    DT_TRY(dt_optimizer_map(&s->optimizer, err));
    DT_TRY(dt_arena_allocate(&s->arena, s->model->device, err));
    s->tied_gradients = stages_are_linked(s) ? NULL : dt_alloc(2, tied_bytes(s));
    lay_out(s);
    return 0;
}

void dt_train_state_release(struct dt_train_state *s)
{
    if (s->model) {
        dt_arena_release(&s->arena, s->model->device);
        s->model->hooks = NULL;
    }
    dt_optimizer_release(&s->optimizer);
    dt_parameter_gather_release(&s->gather);
    dt_data_parallel_release(&s->dp);
    free(s->shards);
    free(s->parameters);
    free(s->reduced);
    free(s->ema_shards);
    if (s->mesh && !stages_are_linked(s))
        free(s->tied_gradients);
    *s = (struct dt_train_state){0};
}

/* --- parameters ------------------------------------------------------------------------------- */

void dt_train_state_refresh_weights(struct dt_train_state *s)
{
    if (is_sharded(s))
        dt_parameter_gather_refresh(&s->gather);
    else
        dt_model_refresh(s->model);
}

void dt_train_state_set_parameters(struct dt_train_state *s, const float *parameters)
{
    struct dt_device *dev = s->model->device;
    for (int b = 0; b < s->model->table.bucket_count; b++) {
        size_t bytes = (size_t)dt_range_count(s->shards[b]) * sizeof *parameters;
        if (bytes > 0)
            dev->ops->upload(dev, s->parameters[b], parameters + s->shards[b].first, bytes);
    }
    dt_train_state_refresh_weights(s);
}

void dt_train_state_initialize(struct dt_train_state *s, uint64_t seed)
{
    float *host = dt_alloc((size_t)s->model->table.elements, sizeof *host);
    dt_table_initialize(&s->model->table, seed, host);
    dt_train_state_set_parameters(s, host);
    free(host);
}

/* A bucket's shard as a matrix of one row. */
static struct dt_tensor row_of(const struct dt_train_state *s, float *const *shards, int bucket)
{
    return dt_matrix(shards[bucket], 1, dt_range_count(s->shards[bucket]));
}

/* ema = decay ema + (1 - decay) parameters */
static void update_ema(struct dt_train_state *s, double decay)
{
    struct dt_device *dev = s->model->device;
    for (int b = 0; s->ema && b < s->model->table.bucket_count; b++) {
        struct dt_tensor now = row_of(s, s->parameters, b), average = row_of(s, s->ema_shards, b);
        dev->ops->combine(dev, &average, (float)decay, &now, (float)(1 - decay));
    }
}

void dt_train_state_begin_ema(struct dt_train_state *s)
{
    struct dt_device *dev = s->model->device;
    for (int b = 0; s->ema && b < s->model->table.bucket_count; b++) {
        struct dt_tensor now = row_of(s, s->parameters, b), average = row_of(s, s->ema_shards, b);
        dev->ops->copy(dev, &average, &now);
    }
}

void dt_train_state_swap_ema(struct dt_train_state *s)
{
    float *average = s->ema;
    if (is_sharded(s)) {
        s->ema = s->master;
        s->master = average;
    } else {
        s->ema = dt_model_exchange(s->model, average);
    }
    locate_parameters(s);
    locate(s, s->ema, s->ema_shards);
    dt_train_state_refresh_weights(s);
}

void dt_train_state_update(struct dt_train_state *s, const struct dt_settings *settings, long step,
                           double norm, double factor)
{
    double clip_at = settings->training.grad_clip, decay = settings->training.ema_decay;
    double scale = clip_at > 0 && norm > clip_at ? clip_at / norm : 1;
    for (int b = 0; b < s->model->table.bucket_count; b++)
        s->reduced[b] = dt_data_parallel_reduced(&s->dp, b);
    dt_optimizer_update(&s->optimizer, s->model->device, s->parameters, s->reduced, settings, step,
                        scale / factor);
    /* A lower decay at first, so that the initial parameters are forgotten soon. */
    update_ema(s, fmin(decay, (1 + (double)step) / (10 + (double)step)));
    dt_train_state_refresh_weights(s);
}

/* --- the hash --------------------------------------------------------------------------------- */

/* All-gathers a bucket's parameters into host memory. */
static int gather_bucket(struct dt_train_state *s, int bucket, float *host, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    struct dt_comm *comm = s->dp.dp_group.group;
    const struct dt_range *run = &s->shards[bucket];
    int64_t first = s->model->table.buckets[bucket];
    size_t size = (size_t)dt_comm_size(comm), *bytes = dt_alloc(size + 1, sizeof *bytes);
    for (int r = 0; r < (int)size; r++)
        bytes[r + 1] =
            (size_t)(dt_sharding_owned(&s->dp.sharding, bucket, r).end - first) * sizeof *host;
    if (run->end > run->first)
        dev->ops->download(dev, host + (run->first - first), s->parameters[bucket],
                           (size_t)dt_range_count(*run) * sizeof *host);
    int rc = is_sharded(s) ? dt_comm_wait(comm, dt_comm_all_gather(comm, host, bytes), err) : 0;
    free(bytes);
    return rc;
}

int dt_train_state_hash(struct dt_train_state *s, uint64_t *hash, struct dt_error *err)
{
    const struct dt_table *t = &s->model->table;
    int rc = 0, next = 0;
    *hash = 0;
    for (int b = 0; rc == 0 && b < t->bucket_count && t->buckets[b] < t->elements; b++) {
        float *host = dt_alloc((size_t)(t->buckets[b + 1] - t->buckets[b] + 1), sizeof *host);
        rc = gather_bucket(s, b, host, err);
        for (; rc == 0 && next < t->count && t->params[next].bucket == b; next++)
            *hash = dt_hash_seeded(host + (t->params[next].offset - t->buckets[b]),
                                   (size_t)t->params[next].count * sizeof *host, *hash);
        free(host);
    }
    return rc;
}
