/* SPDX-License-Identifier: MIT */
#include "parallel/parameter-gather.h"

#include <stdlib.h>

#include "base/buffer.h"

struct dt_bucket_weights {
    size_t *bytes; /* size + 1: each rank's blocks in the compute type, from the beginning */
    char *host;    /* staged: as it is gathered */
    char *place;   /* on the device, which it then goes to */
    dt_ticket ticket;
    bool pending;
    bool fresh; /* gathered since the last update, or about to be */
};

static int64_t bucket_size(const struct dt_parameter_gather *w, int bucket)
{
    const int64_t *buckets = w->parallel->sharding.buckets;
    return buckets[bucket] < w->model->table.elements ? buckets[bucket + 1] - buckets[bucket] : 0;
}

void dt_parameter_gather_init(struct dt_parameter_gather *w, struct dt_model *model,
                              const struct dt_data_parallel *parallel, const struct dt_range *kept,
                              float **parameters)
{
    const struct dt_sharding *s = &parallel->sharding;
    *w = (struct dt_parameter_gather){
        .model = model, .parallel = parallel, .kept = kept, .parameters = parameters};
    w->buckets = dt_alloc((size_t)s->count, sizeof *w->buckets);
    if (parallel->stage == 3)
        dt_bucket_slots_init(&w->slots, s);
}

/* Of all ranks, as no plan needs it. */
static void cut_up(struct dt_parameter_gather *w)
{
    const struct dt_sharding *s = &w->parallel->sharding;
    size_t element = dt_dtype_size(w->model->compute), owners = (size_t)s->owners;
    for (int b = 0; b < s->count; b++) {
        w->buckets[b].bytes = dt_alloc(owners + 1, sizeof *w->buckets[b].bytes);
        for (int r = 0; r < s->owners; r++)
            w->buckets[b].bytes[r + 1] =
                (size_t)(dt_sharding_owned(s, b, r).end - s->buckets[b]) * element;
    }
}

void dt_parameter_gather_layout(struct dt_parameter_gather *w, struct dt_arena *arena)
{
    struct dt_model *m = w->model;
    size_t element = dt_dtype_size(m->compute);
    if (arena->memory)
        cut_up(w);
    if (w->parallel->stage == 3) {
        dt_bucket_slots_layout(&w->slots, element, arena);
    } else {
        w->whole = dt_arena_take(arena, (size_t)m->table.elements * element);
        dt_flat_set(&m->weights, &m->table, m->compute, w->whole);
    }
}

void dt_parameter_gather_release(struct dt_parameter_gather *w)
{
    for (int b = 0; w->buckets && b < w->parallel->sharding.count; b++) {
        free(w->buckets[b].bytes);
        free(w->buckets[b].host);
    }
    free(w->buckets);
    dt_bucket_slots_release(&w->slots);
    *w = (struct dt_parameter_gather){0};
}

/* What the other ranks sent, before and behind this rank's blocks. */
static void bring_to_device(const struct dt_parameter_gather *w, int bucket)
{
    const struct dt_bucket_weights *b = &w->buckets[bucket];
    struct dt_device *dev = w->model->device;
    int rank = dt_comm_rank(w->parallel->dp_group.group),
        size = dt_comm_size(w->parallel->dp_group.group);
    size_t behind = b->bytes[rank + 1];
    if (b->bytes[rank] > 0)
        dev->ops->upload(dev, b->place, b->host, b->bytes[rank]);
    if (b->bytes[size] > behind)
        dev->ops->upload(dev, b->place + behind, b->host + behind, b->bytes[size] - behind);
}

static void await(struct dt_parameter_gather *w, int bucket)
{
    struct dt_bucket_weights *b = &w->buckets[bucket];
    struct dt_error err;
    if (!b->pending)
        return;
    b->pending = false;
    int rc = dt_comm_wait(w->parallel->near.group, b->ticket, &err);
    if (rc < 0 && w->failed == 0) {
        w->failed = rc;
        w->error = err;
    }
    if (w->parallel->staged && rc == 0)
        bring_to_device(w, bucket);
}

static char *copy_to_host(struct dt_parameter_gather *w, int bucket, char *place)
{
    struct dt_bucket_weights *b = &w->buckets[bucket];
    struct dt_device *dev = w->model->device;
    int rank = dt_comm_rank(w->parallel->dp_group.group),
        size = dt_comm_size(w->parallel->dp_group.group);
    size_t first = b->bytes[rank];
    if (b->host == NULL)
        b->host = dt_alloc(b->bytes[size], 1);
    b->place = place;
    dev->ops->download(dev, b->host + first, place + first, b->bytes[rank + 1] - first);
    return b->host;
}

/* This rank's blocks are rounded to where they belong, and all ranks' are gathered. */
static void gather(struct dt_parameter_gather *w, int bucket)
{
    struct dt_bucket_weights *b = &w->buckets[bucket];
    struct dt_model *m = w->model;
    const struct dt_range *run = &w->kept[bucket];
    char *place = m->weights.buckets[bucket];
    char *own = place + b->bytes[dt_comm_rank(w->parallel->dp_group.group)];
    struct dt_tensor from = dt_matrix(w->parameters[bucket], 1, dt_range_count(*run));
    struct dt_tensor to = dt_matrix_of(m->compute, own, 1, dt_range_count(*run));
    if (own != (char *)w->parameters[bucket])
        m->device->ops->copy(m->device, &to, &from);
    if (dt_comm_finish_ops(w->parallel->near.group, m->device, &w->error) < 0)
        w->failed = w->error.code;
    if (w->parallel->staged)
        place = copy_to_host(w, bucket, place);
    b->ticket = dt_comm_all_gather(w->parallel->near.group, place, b->bytes);
    b->pending = b->fresh = true;
    if (!w->parallel->overlap)
        await(w, bucket);
}

void dt_parameter_gather_publish(struct dt_parameter_gather *w)
{
    for (int b = 0; b < w->parallel->sharding.count; b++) {
        await(w, b);
        w->buckets[b].fresh = false;
        if (w->parallel->stage < 3 && bucket_size(w, b) > 0)
            gather(w, b);
    }
}

/* Stage 3: begins to bring a bucket into its slot, unless it is there. */
static void bring(struct dt_parameter_gather *w, int bucket)
{
    int holder = dt_bucket_slots_holder(&w->slots, bucket);
    if (holder == bucket && w->buckets[bucket].fresh)
        return;
    if (holder >= 0)
        await(w, holder);
    w->model->weights.buckets[bucket] = dt_bucket_slots_take(&w->slots, bucket);
    gather(w, bucket);
}

/* The next layer that the arena has, in the direction of the pass; -1: none. */
static int next_layer(const struct dt_parameter_gather *w, int bucket, bool backward)
{
    const struct dt_sharding *s = &w->parallel->sharding;
    int step = backward ? -1 : 1;
    if (bucket < s->first_layer || bucket >= s->first_layer + s->layers)
        return -1;
    for (int b = bucket + step; b >= s->first_layer && b < s->first_layer + s->layers; b += step)
        if (bucket_size(w, b) > 0)
            return b;
    return -1;
}

void dt_parameter_gather_enter(struct dt_parameter_gather *w, int bucket, bool backward)
{
    if (bucket_size(w, bucket) == 0)
        return;
    if (w->parallel->stage == 3) {
        bring(w, bucket);
        int next = next_layer(w, bucket, backward);
        if (next >= 0 && w->parallel->overlap)
            bring(w, next);
    }
    await(w, bucket);
}

int dt_parameter_gather_wait(struct dt_parameter_gather *w, struct dt_error *err)
{
    for (int b = 0; w->buckets && b < w->parallel->sharding.count; b++)
        await(w, b);
    if (w->failed == 0)
        return 0;
    *err = w->error;
    return w->failed;
}
