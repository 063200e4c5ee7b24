/* SPDX-License-Identifier: MIT */
#include "parallel/train-state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/fault.h"
#include "base/hash.h"

/* Bytes that the arena has grown by since the last call. */
static size_t taken(const struct dt_arena *arena, size_t *before)
{
    size_t bytes = arena->used - *before;
    *before = arena->used;
    return bytes;
}

static bool shares_out(const struct dt_train_state *s)
{
    return s->parallel.stage > 0;
}

/* Whether parameters lie apart from the weights. */
static bool apart(const struct dt_train_state *s)
{
    return s->parallel.stage == 3 || s->model->compute != DT_DTYPE_F32 || s->averaged;
}

/* Where what is kept of each bucket lies in an arena of it all. */
static void place(const struct dt_train_state *s, float *base, float **places)
{
    for (int b = 0; b < s->model->table.bucket_count; b++) {
        places[b] = base;
        base = base ? base + dt_range_count(s->kept[b]) : NULL;
    }
}

static void place_parameters(struct dt_train_state *s)
{
    float *whole = shares_out(s) ? s->weights.whole : s->model->parameters;
    if (s->own) {
        place(s, s->own, s->parameters);
        return;
    }
    for (int b = 0; b < s->model->table.bucket_count; b++)
        s->parameters[b] = whole ? whole + s->kept[b].first : NULL;
}

/* Of the tied tensor, where this rank's sum of one use or the other lies; -1: nowhere. */
static int tied_bucket(const struct dt_train_state *s)
{
    const struct dt_table *t = &s->model->table;
    const struct dt_model_part *part = &s->model->part;
    if (!s->model->config.tie_word_embeddings || !part->tied_apart)
        return -1;
    if (part->stage == 0)
        return DT_TOKEN_BUCKET;
    return part->stage == part->stages - 1 ? dt_head_bucket(t) : -1;
}

static bool linked_stages(const struct dt_train_state *s)
{
    return s->mesh->part.stages > 1 && dt_comm_is_on_device(dt_comm_on_device(s->mesh->stages));
}

/* Of what two stages exchange. */
static size_t tied_bytes(const struct dt_train_state *s)
{
    int bucket = tied_bucket(s);
    if (bucket < 0 || s->model->part.stages == 1)
        return 0;
    return (size_t)dt_range_count(dt_data_parallel_kept(&s->parallel, bucket)) * sizeof(float);
}

static void lay_out(struct dt_train_state *s)
{
    size_t before = 0, bytes = (size_t)s->elements * sizeof(float);
    if (shares_out(s))
        dt_parameter_gather_layout(&s->weights, &s->arena);
    s->bytes.weights = taken(&s->arena, &before);
    s->own = shares_out(s) && apart(s) ? dt_arena_take(&s->arena, bytes) : NULL;
    s->bytes.parameters = taken(&s->arena, &before);
    if (!apart(s)) { /* weights are parameters */
        s->bytes.parameters = s->bytes.weights;
        s->bytes.weights = 0;
    }
    dt_data_parallel_layout(&s->parallel, &s->arena);
    if (linked_stages(s))
        s->tied = dt_arena_take(&s->arena, tied_bytes(s));
    dt_compression_layout(&s->compression, &s->arena);
    s->bytes.gradients = taken(&s->arena, &before);
    dt_optimizer_layout_state(&s->optimizer, &s->arena);
    s->before = s->outer ? dt_arena_take(&s->arena, bytes) : NULL;
    s->velocity = s->outer ? dt_arena_take(&s->arena, bytes) : NULL;
    s->bytes.moments = taken(&s->arena, &before);
    s->average = s->averaged ? dt_arena_take(&s->arena, bytes) : NULL;
    s->bytes.average = taken(&s->arena, &before);
    dt_optimizer_layout_scratch(&s->optimizer, &s->arena);
    dt_gradient_norm_layout(&s->parallel.squares, &s->arena);
    s->bytes.scratch = taken(&s->arena, &before);
    place_parameters(s);
    place(s, s->average, s->averages);
}

static void enter(void *context, int bucket, bool gradients)
{
    struct dt_train_state *s = context;
    if (shares_out(s))
        dt_parameter_gather_enter(&s->weights, bucket, gradients);
    if (gradients)
        dt_data_parallel_enter_bucket(&s->parallel, bucket);
}

static void leave(void *context, int bucket, bool gradients)
{
    struct dt_train_state *s = context;
    if (gradients)
        dt_data_parallel_leave_bucket(&s->parallel, bucket);
}

/* --- the head that is the token embedding -------------------------------------------------------
 *
 * Its gradient is the sum of both uses, which are kept apart until here: the same bits
 * where one stage has both as where the first and the last have one each.
 */

/* sum += theirs, n floats of the device. */
static void add(const struct dt_train_state *s, float *sum, float *theirs, int64_t n)
{
    struct dt_tensor to = dt_matrix(sum, 1, n), from = dt_matrix(theirs, 1, n);
    s->model->device->ops->combine(s->model->device, &to, 1, &from, 1);
}

/* The other stage's sum comes to theirs, from device to device or from host to host. */
static int swap(const struct dt_train_state *s, float *own, float *theirs, struct dt_error *err)
{
    const struct dt_model_part *part = &s->model->part;
    struct dt_comm *stages = dt_comm_on_device(s->mesh->stages);
    int other = part->stage == 0 ? part->stages - 1 : 0;
    struct dt_piece sent = {own, tied_bytes(s)}, received = {theirs, tied_bytes(s)};
    struct dt_passing both = dt_comm_swap(stages, other, 0, sent, received);
    return dt_comm_end_passing(stages, &both, err);
}

/* Adds the other stage's sum to this one's. */
static int add_across_stages(struct dt_train_state *s, float *sum, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    size_t bytes = tied_bytes(s), n = bytes / sizeof *sum;
    float *own = s->tied, *theirs = s->tied + n;
    if (linked_stages(s)) {
        DT_TRY(swap(s, sum, s->tied, err));
        add(s, sum, s->tied, (int64_t)n);
        return 0;
    }
    dev->ops->download(dev, own, sum, bytes);
    DT_TRY(swap(s, own, theirs, err));
    for (size_t i = 0; i < n; i++)
        own[i] += theirs[i];
    dev->ops->upload(dev, sum, own, bytes);
    return 0;
}

static int add_tied(struct dt_train_state *s, struct dt_error *err)
{
    int bucket = tied_bucket(s), head = dt_head_bucket(&s->model->table);
    if (bucket < 0)
        return 0;
    float *sum = dt_data_parallel_reduced(&s->parallel, bucket);
    if (s->model->part.stages > 1)
        return dt_fault_injected(DT_FAULT_SKIP_TIED, 1) ? 0 : add_across_stages(s, sum, err);
    add(s, sum, dt_data_parallel_reduced(&s->parallel, head),
        dt_range_count(dt_data_parallel_kept(&s->parallel, bucket)));
    return 0;
}

int dt_train_state_reduce_gradients(struct dt_train_state *s, double *norm, struct dt_error *err)
{
    const struct dt_table *t = &s->model->table;
    double squares = 0;
    DT_TRY(dt_data_parallel_wait(&s->parallel, err));
    for (int b = 0; s->compression.kind != DT_COMPRESS_NONE && b < t->bucket_count; b++)
        DT_TRY(
            dt_compression_sum(&s->compression, b, dt_data_parallel_reduced(&s->parallel, b), err));
    DT_TRY(add_tied(s, err));
    DT_TRY(dt_data_parallel_squares(&s->parallel, s->squares, err));
    DT_TRY(dt_mesh_add_up_slices(s->mesh, s->squares, t->bucket_count, err));
    DT_TRY(dt_mesh_share_buckets(s->mesh, t, s->squares, err));
    for (int b = 0; b < dt_head_bucket(t); b++) /* a head apart is counted with the embedding */
        squares += s->squares[b];
    *norm = sqrt(squares);
    return 0;
}

/* --- planning --------------------------------------------------------------------------------- */

/* Elements of parameters: a head apart has gradients alone. */
static struct dt_range clip(struct dt_range run, int64_t elements)
{
    return (struct dt_range){run.first < elements ? run.first : elements,
                             run.end < elements ? run.end : elements};
}

/* What of the gradients another slice counts. */
static void note_elsewhere(struct dt_train_state *s)
{
    const struct dt_table *t = &s->model->table;
    struct dt_gradient_norm *q = &s->parallel.squares;
    q->elsewhere = dt_alloc((size_t)t->count, sizeof *q->elsewhere);
    for (int i = 0; i < t->count; i++)
        if (!t->params[i].leads)
            q->elsewhere[q->elsewhere_count++] =
                (struct dt_range){t->params[i].offset, t->params[i].offset + t->params[i].count};
}

/* What works on memory of the device where it lies. */
static int check_memory(const struct dt_train_state *s, struct dt_error *err)
{
    const struct dt_device *dev = s->model->device;
    const struct dt_model_part *part = &s->model->part;
    if (dev == NULL || !dev->engine->own_memory)
        return 0;
    bool tp_size = part->tp_size > 1 && !dt_comm_is_on_device(part->tp_group);
    bool cp_size = part->cp_size > 1 && !dt_comm_is_on_device(part->ring);
    if (!(tp_size || cp_size))
        return 0;
    return dt_fail(err, DT_EINVALID, "%s cannot reach into the memory of device '%s'",
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
        .averaged = settings->training.ema_decay > 0,
        .outer = settings->distributed.sync == DT_SYNC_DILOCO && dt_comm_size(mesh->data.all) > 1,
    };
    DT_TRY(
        dt_data_parallel_init(&s->parallel, &mesh->data, model->device, &sharding, settings, err));
    DT_TRY(check_memory(s, err));
    note_elsewhere(s);
    dt_compression_init(&s->compression, &s->parallel.staging, t, settings);
    s->kept = dt_alloc(count, sizeof *s->kept);
    s->parameters = dt_alloc(count, sizeof *s->parameters);
    s->sums = dt_alloc(count, sizeof *s->sums);
    s->averages = dt_alloc(count, sizeof *s->averages);
    s->squares = dt_alloc(count, sizeof *s->squares);
    for (int b = 0; b < t->bucket_count; b++) {
        s->kept[b] = clip(dt_data_parallel_kept(&s->parallel, b), t->elements);
        s->elements += dt_range_count(s->kept[b]);
    }
    dt_optimizer_init(&s->optimizer, t, s->kept, settings);
    if (shares_out(s)) {
        dt_model_strip(model);
        dt_parameter_gather_init(&s->weights, model, &s->parallel, s->kept, s->parameters);
    }
    s->gradients = (struct dt_flat){DT_DTYPE_F32, s->parallel.gradients};
    s->hooks = (struct dt_bucket_hooks){s, enter, leave};
    model->hooks = &s->hooks;
    lay_out(s);
    return 0;
}

int dt_train_state_allocate(struct dt_train_state *s, struct dt_error *err)
{
    DT_TRY(dt_arena_allocate(&s->arena, s->model->device, err));
    s->tied = linked_stages(s) ? NULL : dt_alloc(2, tied_bytes(s));
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
    dt_parameter_gather_release(&s->weights);
    dt_data_parallel_release(&s->parallel);
    free(s->kept);
    free(s->parameters);
    free(s->sums);
    free(s->averages);
    free(s->squares);
    if (s->mesh && !linked_stages(s))
        free(s->tied);
    *s = (struct dt_train_state){0};
}

/* --- parameters ------------------------------------------------------------------------------- */

void dt_train_state_publish(struct dt_train_state *s)
{
    if (shares_out(s))
        dt_parameter_gather_publish(&s->weights);
    else
        dt_model_refresh(s->model);
}

void dt_train_state_set_parameters(struct dt_train_state *s, const float *parameters)
{
    struct dt_device *dev = s->model->device;
    for (int b = 0; b < s->model->table.bucket_count; b++) {
        size_t bytes = (size_t)dt_range_count(s->kept[b]) * sizeof *parameters;
        if (bytes > 0)
            dev->ops->upload(dev, s->parameters[b], parameters + s->kept[b].first, bytes);
    }
    dt_train_state_publish(s);
}

void dt_train_state_initialize(struct dt_train_state *s, uint64_t seed)
{
    float *host = dt_alloc((size_t)s->model->table.elements, sizeof *host);
    dt_table_initialize(&s->model->table, seed, host);
    dt_train_state_set_parameters(s, host);
    free(host);
}

/* The kept elements of a bucket, as matrices of one row. */
static struct dt_tensor row_of(const struct dt_train_state *s, float *const *places, int bucket)
{
    return dt_matrix(places[bucket], 1, dt_range_count(s->kept[bucket]));
}

/* average = keep average + (1 - keep) parameters */
static void combine_average(struct dt_train_state *s, double keep)
{
    struct dt_device *dev = s->model->device;
    for (int b = 0; s->average && b < s->model->table.bucket_count; b++) {
        struct dt_tensor now = row_of(s, s->parameters, b), average = row_of(s, s->averages, b);
        dev->ops->combine(dev, &average, (float)keep, &now, (float)(1 - keep));
    }
}

void dt_train_state_begin_average(struct dt_train_state *s)
{
    struct dt_device *dev = s->model->device;
    for (int b = 0; s->average && b < s->model->table.bucket_count; b++) {
        struct dt_tensor now = row_of(s, s->parameters, b), average = row_of(s, s->averages, b);
        dev->ops->copy(dev, &average, &now);
    }
}

void dt_train_state_swap_average(struct dt_train_state *s)
{
    float *average = s->average;
    if (shares_out(s)) {
        s->average = s->own;
        s->own = average;
    } else {
        s->average = dt_model_exchange(s->model, average);
    }
    place_parameters(s);
    place(s, s->average, s->averages);
    dt_train_state_publish(s);
}

void dt_train_state_update(struct dt_train_state *s, const struct dt_settings *settings, long step,
                           double norm, double factor)
{
    double clip_at = settings->training.grad_clip, decay = settings->training.ema_decay;
    double scale = clip_at > 0 && norm > clip_at ? clip_at / norm : 1;
    for (int b = 0; b < s->model->table.bucket_count; b++)
        s->sums[b] = dt_data_parallel_reduced(&s->parallel, b);
    dt_optimizer_update(&s->optimizer, s->model->device, s->parameters, s->sums, settings, step,
                        scale / factor);
    /* The first updates weigh more, so that the initial parameters are soon forgotten. */
    combine_average(s, fmin(decay, (1 + (double)step) / (10 + (double)step)));
    dt_train_state_publish(s);
}

/* --- the hash --------------------------------------------------------------------------------- */

/* A bucket's parameters from all ranks that share them out, in host memory. */
static int gather_bucket(struct dt_train_state *s, int bucket, float *host, struct dt_error *err)
{
    struct dt_device *dev = s->model->device;
    struct dt_comm *comm = s->parallel.dp_group.group;
    const struct dt_range *run = &s->kept[bucket];
    int64_t first = s->model->table.buckets[bucket];
    size_t size = (size_t)dt_comm_size(comm), *bytes = dt_alloc(size + 1, sizeof *bytes);
    for (int r = 0; r < (int)size; r++)
        bytes[r + 1] = (size_t)(dt_sharding_owned(&s->parallel.sharding, bucket, r).end - first) *
                       sizeof *host;
    if (run->end > run->first)
        dev->ops->download(dev, host + (run->first - first), s->parameters[bucket],
                           (size_t)dt_range_count(*run) * sizeof *host);
    int rc = shares_out(s) ? dt_comm_wait(comm, dt_comm_all_gather(comm, host, bytes), err) : 0;
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
