/* SPDX-License-Identifier: MIT */
/* Workers fill a ring buffer of batches, one worker per batch. All memory for batches is
 * allocated when the loader opens. */
#include "shard/loader.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/buffer.h"

/* A batch in the ring buffer: batch n is in slot n % slot_count. */
struct slot {
    uint32_t *ids;
    int32_t *begins, *ends;
    uint64_t position, targets;
    bool done;
    int failed; /* error code; earlier batches are valid */
    struct dt_error error;
};

struct worker {
    struct dt_loader *loader;
    struct dt_dataset *dataset;
    pthread_t thread;
};

struct dt_loader {
    struct dt_loader_options o;
    uint32_t first_row, rows; /* of each global batch */
    size_t memory;
    struct worker *workers; /* [0] uses the caller's data set */
    int datasets, threads;
    struct slot *slots;
    uint64_t slot_count;
    /* Batches claimed by workers, returned to the user, and released by the user. */
    uint64_t claimed, taken, released;
    bool stopping;
    pthread_mutex_t lock;
    pthread_cond_t batch_ready, batch_released;
};

/* --- one batch -------------------------------------------------------------------------------- */

/* GCC vectorizes loops of fixed length at -O2. */
#define BLOCK 64

static uint32_t count_marks(const uint32_t *ids)
{
    uint32_t marks = 0;
    for (size_t k = 0; k < BLOCK; k++)
        marks += ids[k] >> 31;
    return marks;
}

static uint64_t count_targets(const uint32_t *ids, uint32_t length)
{
    uint64_t none = 0;
    uint32_t t = 1;
    for (; t + BLOCK <= length + 1; t += BLOCK)
        none += count_marks(ids + t);
    for (; t <= length; t++)
        none += ids[t] >> 31;
    return length - none;
}

/* The first position of batch `number`, the next one. */
static uint64_t position_of(struct dt_loader *l, uint64_t number)
{
    return l->o.next_position ? l->o.next_position(l->o.context) : l->o.first + number * l->o.batch;
}

static int fill_batch(struct dt_loader *l, struct dt_dataset *d, struct slot *s)
{
    uint64_t position = s->position + l->first_row;
    s->targets = 0;
    for (uint32_t row = 0; row < l->rows; row++, position++) {
        uint32_t *ids = s->ids + (size_t)row * (l->o.length + 1);
        uint64_t k = dt_dataset_order(d, l->o.length, &l->o.order, position);
        DT_TRY(dt_dataset_sample(d, l->o.length, k, ids, &s->error));
        s->targets += count_targets(ids, l->o.length);
        size_t from = (size_t)row * l->o.length;
        if (s->begins)
            dt_attention_spans(l->o.scope, dt_dataset_info(d), ids, l->o.length, s->begins + from,
                               s->ends + from);
    }
    return 0;
}

/* --- workers ---------------------------------------------------------------------------------- */

static void *run(void *argument)
{
    struct worker *w = argument;
    struct dt_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        while (l->claimed - l->released >= l->slot_count && !l->stopping)
            pthread_cond_wait(&l->batch_released, &l->lock);
        if (l->stopping)
            break;
        uint64_t number = l->claimed++;
        struct slot *s = &l->slots[number % l->slot_count];
        s->position = position_of(l, number);
        pthread_mutex_unlock(&l->lock);
        int rc = fill_batch(l, w->dataset, s);
        pthread_mutex_lock(&l->lock);
        s->failed = rc;
        s->done = true;
        l->stopping |= rc < 0;
        pthread_cond_broadcast(rc < 0 ? &l->batch_released : &l->batch_ready);
        if (rc < 0)
            pthread_cond_broadcast(&l->batch_ready);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int start_workers(struct dt_loader *l, struct dt_error *err)
{
    for (; l->threads < l->o.workers; l->threads++)
        if (pthread_create(&l->workers[l->threads].thread, NULL, run, &l->workers[l->threads]) != 0)
            return dt_fail(err, DT_ENOMEM, "cannot start the prefetch threads");
    return 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int check_options(const struct dt_loader_options *o, struct dt_error *err)
{
    if (o->length == 0 || o->batch == 0)
        return dt_fail(err, DT_EINVALID,
                       "a batch needs samples and tokens, not %u samples of %u tokens", o->batch,
                       o->length);
    if (o->ranks > o->batch || o->rank >= o->ranks)
        return dt_fail(
            err, DT_EINVALID,
            "rank %u of %u gets no sample of a batch of %u: use at most one rank per sample",
            o->rank, o->ranks, o->batch);
    return 0;
}

static int check_order(const struct dt_sample_order *order, const struct dt_dataset *dataset,
                       struct dt_error *err)
{
    if (order->block == 0)
        return 0;
    if (!order->shuffle || order->window == 0)
        return dt_fail(err, DT_EINVALID,
                       "an order in blocks needs shuffling and a window of at least one block");
    if (!dt_dataset_has_tokens(dataset))
        return dt_fail(err, DT_EINVALID,
                       "only shards can be read in blocks: text that is tokenized while it is read "
                       "needs data.shuffle_block 0");
    return 0;
}

/* Each worker has a separate data set with an equal part of the memory. */
static int open_datasets(struct dt_loader *l, struct dt_dataset *dataset, struct dt_error *err)
{
    int count = l->o.workers > 1 ? l->o.workers : 1;
    size_t memory = (l->o.memory ? l->o.memory : DT_DATASET_MEMORY) / (size_t)count;
    l->workers = dt_alloc((size_t)count, sizeof *l->workers);
    for (; l->datasets < count; l->datasets++) {
        struct worker *w = &l->workers[l->datasets];
        w->loader = l;
        w->dataset = dataset;
        if (l->datasets > 0)
            DT_TRY(dt_dataset_clone(&w->dataset, dataset, err));
        dt_dataset_limit_memory(w->dataset, memory);
        l->memory += dt_dataset_memory(w->dataset);
    }
    return 0;
}

static void make_arrays(const struct dt_loader *l, struct slot *s)
{
    s->ids = dt_alloc(l->rows, ((size_t)l->o.length + 1) * sizeof(uint32_t));
    if (l->o.scope == DT_SCOPE_ROW)
        return;
    s->begins = dt_alloc(l->rows, (size_t)l->o.length * sizeof(int32_t));
    s->ends = dt_alloc(l->rows, (size_t)l->o.length * sizeof(int32_t));
}

static void make_slots(struct dt_loader *l)
{
    size_t row = ((size_t)l->o.length * (l->o.scope ? 3 : 1) + 1) * sizeof(uint32_t);
    l->slot_count = l->o.workers > 0 ? 2 + 2 * (uint64_t)l->o.workers : 1;
    l->slots = dt_alloc(l->slot_count, sizeof *l->slots);
    for (uint64_t i = 0; i < l->slot_count; i++)
        make_arrays(l, &l->slots[i]);
    l->memory += l->slot_count * (sizeof *l->slots + l->rows * row);
}

int dt_loader_open(struct dt_loader **result, struct dt_dataset *dataset,
                   const struct dt_loader_options *options, struct dt_error *err)
{
    struct dt_loader_options o = *options;
    uint64_t samples;
    *result = NULL;
    o.ranks = o.ranks ? o.ranks : 1;
    DT_TRY(check_options(&o, err));
    DT_TRY(check_order(&o.order, dataset, err));
    DT_TRY(dt_dataset_samples(dataset, o.length, &samples, err));
    if (o.scope == DT_SCOPE_DOCUMENT && dt_dataset_info(dataset)->eot == UINT32_MAX)
        return dt_fail(err, DT_EINVALID,
                       "the data lack an end-of-text token, which document attention masks need");
    struct dt_loader *l = dt_alloc(1, sizeof *l);
    l->o = o;
    l->first_row = (uint32_t)((uint64_t)o.batch * o.rank / o.ranks);
    l->rows = (uint32_t)((uint64_t)o.batch * (o.rank + 1) / o.ranks) - l->first_row;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->batch_ready, NULL);
    pthread_cond_init(&l->batch_released, NULL);
    make_slots(l);
    int rc = open_datasets(l, dataset, err);
    if (rc == 0)
        rc = start_workers(l, err);
    if (rc < 0) {
        dt_loader_free(l);
        return rc;
    }
    *result = l;
    return 0;
}

uint32_t dt_loader_rows(const struct dt_loader *l)
{
    return l->rows;
}

size_t dt_loader_memory(const struct dt_loader *l)
{
    return l->memory;
}

/* --- use -------------------------------------------------------------------------------------- */

/* Releases the user's batch to the workers and waits for the next. */
static struct slot *wait_for_next(struct dt_loader *l)
{
    struct slot *s = &l->slots[l->taken % l->slot_count];
    pthread_mutex_lock(&l->lock);
    if (l->released < l->taken) {
        l->slots[l->released % l->slot_count].done = false;
        l->released++;
        pthread_cond_signal(&l->batch_released);
    }
    while (!s->done)
        pthread_cond_wait(&l->batch_ready, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return s;
}

int dt_loader_next(struct dt_loader *l, struct dt_samples *batch, struct dt_error *err)
{
    struct slot *s = l->slots;
    if (l->threads > 0) {
        s = wait_for_next(l);
    } else {
        s->position = position_of(l, l->taken);
        s->failed = fill_batch(l, l->workers->dataset, s);
    }
    if (s->failed < 0) {
        *err = s->error;
        return s->failed;
    }
    *batch = (struct dt_samples){.ids = s->ids,
                                 .begins = s->begins,
                                 .ends = s->ends,
                                 .targets = s->targets,
                                 .position = s->position};
    l->taken++;
    return 0;
}

void dt_loader_take(struct dt_loader *l)
{
    make_arrays(l, &l->slots[(l->taken - 1) % l->slot_count]);
}

void dt_loader_free(struct dt_loader *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_broadcast(&l->batch_released);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->threads; i++)
        pthread_join(l->workers[i].thread, NULL);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->batch_ready);
    pthread_cond_destroy(&l->batch_released);
    for (int i = 1; i < l->datasets; i++)
        dt_dataset_close(l->workers[i].dataset);
    for (uint64_t i = 0; i < l->slot_count; i++) {
        free(l->slots[i].ids);
        free(l->slots[i].begins);
        free(l->slots[i].ends);
    }
    free(l->slots);
    free(l->workers);
    free(l);
}
