/* SPDX-License-Identifier: MIT */
#include "parallel/parameter-gather.h"

#include <stdlib.h>

#include "base/buffer.h"

struct dt_bucket_gather {
    size_t *bytes; /* ranks + 1: where each rank's blocks begin, in the compute type */
    char *host;    /* staged: the gathered bucket in host memory */
    char *weights; /* staged: its destination on the device */
    dt_comm_request request;
    bool pending;
    bool current; /* gathered since the last update, or in flight */
};

static int64_t bucket_size(const struct dt_parameter_gather *g, int bucket)
{
    const int64_t *buckets = g->dp->sharding.buckets;
    return buckets[bucket] < g->model->table.elements ? buckets[bucket + 1] - buckets[bucket] : 0;
}

void dt_parameter_gather_init(struct dt_parameter_gather *g, struct dt_model *model,
                              const struct dt_data_parallel *parallel, const struct dt_range *kept,
                              float **parameters)
{
    const struct dt_sharding *s = &parallel->sharding;
    *g = (struct dt_parameter_gather){
        .model = model, .dp = parallel, .shards = kept, .parameters = parameters};
    g->buckets = dt_alloc((size_t)s->count, sizeof *g->buckets);
    if (parallel->zero_stage == 3)
        dt_bucket_slots_init(&g->slots, s);
}

/* Arrays that grow with the number of ranks, which a plan does not need. */
static void allocate_group_arrays(struct dt_parameter_gather *g)
{
    const struct dt_sharding *s = &g->dp->sharding;
    size_t element = dt_dtype_size(g->model->compute), owners = (size_t)s->owners;
    for (int b = 0; b < s->count; b++) {
        g->buckets[b].bytes = dt_alloc(owners + 1, sizeof *g->buckets[b].bytes);
        for (int r = 0; r < s->owners; r++)
            g->buckets[b].bytes[r + 1] =
                (size_t)(dt_sharding_owned(s, b, r).end - s->buckets[b]) * element;
    }
}

void dt_parameter_gather_layout(struct dt_parameter_gather *g, struct dt_arena *arena)
{
    struct dt_model *m = g->model;
    size_t element = dt_dtype_size(m->compute);
    if (arena->memory)
        allocate_group_arrays(g);
    if (g->dp->zero_stage == 3) {
        dt_bucket_slots_layout(&g->slots, element, arena);
    } else {
        g->weights = dt_arena_take(arena, (size_t)m->table.elements * element);
        dt_flat_set(&m->weights, &m->table, m->compute, g->weights);
    }
}

void dt_parameter_gather_release(struct dt_parameter_gather *g)
{
    for (int b = 0; g->buckets && b < g->dp->sharding.count; b++) {
        free(g->buckets[b].bytes);
        free(g->buckets[b].host);
    }
    free(g->buckets);
    dt_bucket_slots_release(&g->slots);
    *g = (struct dt_parameter_gather){0};
}

/* Copies the other ranks' blocks, before and after this rank's, to the device. */
static void upload_received(const struct dt_parameter_gather *g, int bucket)
{
    const struct dt_bucket_gather *b = &g->buckets[bucket];
    struct dt_device *dev = g->model->device;
    int rank = dt_comm_rank(g->dp->dp_group.group), size = dt_comm_size(g->dp->dp_group.group);
    size_t end = b->bytes[rank + 1];
    if (b->bytes[rank] > 0)
        dev->ops->upload(dev, b->weights, b->host, b->bytes[rank]);
    if (b->bytes[size] > end)
        dev->ops->upload(dev, b->weights + end, b->host + end, b->bytes[size] - end);
}

static void finish(struct dt_parameter_gather *g, int bucket)
{
    struct dt_bucket_gather *b = &g->buckets[bucket];
    struct dt_error err;
    if (!b->pending)
        return;
    b->pending = false;
    int rc = dt_comm_wait(g->dp->device_group.group, b->request, &err);
    if (rc < 0 && g->failed == 0) {
        g->failed = rc;
        g->error = err;
    }
    if (g->dp->staged && rc == 0)
        upload_received(g, bucket);
}

static char *copy_to_host(struct dt_parameter_gather *g, int bucket, char *weights)
{
    struct dt_bucket_gather *b = &g->buckets[bucket];
    struct dt_device *dev = g->model->device;
    int rank = dt_comm_rank(g->dp->dp_group.group), size = dt_comm_size(g->dp->dp_group.group);
    size_t first = b->bytes[rank];
    if (b->host == NULL)
        b->host = dt_alloc(b->bytes[size], 1);
    b->weights = weights;
    dev->ops->download(dev, b->host + first, weights + first, b->bytes[rank + 1] - first);
    return b->host;
}

/* Casts this rank's blocks to the compute type in place, and starts the all-gather. */
static void gather(struct dt_parameter_gather *g, int bucket)
{
    struct dt_bucket_gather *b = &g->buckets[bucket];
    struct dt_model *m = g->model;
    const struct dt_range *run = &g->shards[bucket];
    char *weights = m->weights.buckets[bucket];
    char *own = weights + b->bytes[dt_comm_rank(g->dp->dp_group.group)];
    struct dt_tensor from = dt_matrix(g->parameters[bucket], 1, dt_range_count(*run));
    struct dt_tensor to = dt_matrix_of(m->compute, own, 1, dt_range_count(*run));
    if (own != (char *)g->parameters[bucket])
        m->device->ops->copy(m->device, &to, &from);
    if (dt_comm_finish_ops(g->dp->device_group.group, m->device, &g->error) < 0)
        g->failed = g->error.code;
    if (g->dp->staged)
        weights = copy_to_host(g, bucket, weights);
    b->request = dt_comm_all_gather(g->dp->device_group.group, weights, b->bytes);
    b->pending = b->current = true;
    if (!g->dp->overlap)
        finish(g, bucket);
}

void dt_parameter_gather_refresh(struct dt_parameter_gather *g)
{
    for (int b = 0; b < g->dp->sharding.count; b++) {
        finish(g, b);
        g->buckets[b].current = false;
        if (g->dp->zero_stage < 3 && bucket_size(g, b) > 0)
            gather(g, b);
    }
}

/* zero_stage 3: starts to gather a bucket into its slot, unless it is there. */
static void gather_into_slot(struct dt_parameter_gather *g, int bucket)
{
    int holder = dt_bucket_slots_holder(&g->slots, bucket);
    if (holder == bucket && g->buckets[bucket].current)
        return;
    if (holder >= 0)
        finish(g, holder);
    g->model->weights.buckets[bucket] = dt_bucket_slots_take(&g->slots, bucket);
    gather(g, bucket);
}

/* The next layer of this stage, in the direction of forward or backward; -1: none. */
static int next_layer(const struct dt_parameter_gather *g, int bucket, bool backward)
{
    const struct dt_sharding *s = &g->dp->sharding;
    int step = backward ? -1 : 1;
    if (bucket < s->first_layer || bucket >= s->first_layer + s->layers)
        return -1;
    for (int b = bucket + step; b >= s->first_layer && b < s->first_layer + s->layers; b += step)
        if (bucket_size(g, b) > 0)
            return b;
    return -1;
}

void dt_parameter_gather_enter(struct dt_parameter_gather *g, int bucket, bool backward)
{
    if (bucket_size(g, bucket) == 0)
        return;
    if (g->dp->zero_stage == 3) {
        gather_into_slot(g, bucket);
        int next = next_layer(g, bucket, backward);
        if (next >= 0 && g->dp->overlap)
            gather_into_slot(g, next);
    }
    finish(g, bucket);
}

int dt_parameter_gather_wait(struct dt_parameter_gather *g, struct dt_error *err)
{
    for (int b = 0; g->buckets && b < g->dp->sharding.count; b++)
        finish(g, b);
    if (g->failed == 0)
        return 0;
    *err = g->error;
    return g->failed;
}
