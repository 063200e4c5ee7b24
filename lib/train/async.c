/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous training (distributed.sync=async): a parameter server with bounded staleness.
 *
 *     rank 0, the server     takes a gradient, updates, logs, validates, writes checkpoints
 *     rank 1, 2, ...         receive a batch and parameters, send the gradient
 *
 * The state of the run is that of the server, whose mesh is itself alone: to everything but the
 * source of its gradients it is a run of one rank. update-order.h says which gradient is next.
 * Before a validation or a checkpoint all batches that have begun are applied, so that a checkpoint
 * needs no gradients: after step N it has the first N batches.
 */
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/path.h"
#include "settings/batch-ramp.h"
#include "train/training-internal.h"

#define CHANNEL 2
#define END     0 /* in place of a batch */

/* --- opening ---------------------------------------------------------------------------------- */

void dt_async_plan(struct dt_training *t)
{
    struct dt_async *a = &t->async;
    a->active = t->settings.distributed.sync == DT_SYNC_ASYNC;
    a->serves = a->active && t->leads;
    a->version = -1;
}

/* The parameters of which a worker may have all, and a server sends all. */
static size_t parameter_bytes(const struct dt_training *t)
{
    return (size_t)t->model->table.elements * sizeof *t->async.parameters;
}

static size_t gradient_bytes(const struct dt_training *t)
{
    const struct dt_sharding *s = &t->state.dp.sharding;
    return sizeof(struct dt_async_gradient) + (size_t)s->buckets[s->count] * sizeof(float);
}

size_t dt_async_bytes(const struct dt_training *t)
{
    const struct dt_async *a = &t->async;
    const size_t pending = (size_t)t->settings.distributed.staleness + 1,
                 workers = (size_t)(dt_comm_size(t->comm) - (dt_comm_size(t->comm) > 1));
    const bool replays = *t->settings.distributed.replay;
    size_t gradients = 1;
    if (a->serves)
        gradients = replays || pending < workers ? pending : workers;
    return a->active ? parameter_bytes(t) + gradients * gradient_bytes(t) : 0;
}

static int open_record(struct dt_training *t, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    const struct dt_settings *s = &t->settings;
    if (*s->distributed.replay) {
        DT_TRY(dt_update_record_read(&a->record, s->distributed.replay, s->distributed.staleness,
                                     err));
        DT_TRY(dt_update_record_check(&a->record, t->progress.step,
                                      t->run ? s->training.max_steps : t->progress.step + 1, err));
        dt_update_order_follow(&a->order, a->record.updates, a->record.count);
    }
    if (t->run == NULL)
        return 0;
    char *path = dt_path_join(t->run, "updates.jsonl");
    int rc = dt_metrics_open(&a->file, path, t->progress.step, err);
    free(path);
    return rc;
}

int dt_async_open(struct dt_training *t, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    const int others = dt_comm_size(t->comm) - 1;
    if (!a->active)
        return 0;
    a->parameters = dt_alloc(1, parameter_bytes(t));
    if (!a->serves)
        return 0;
    a->worker_count = others > 0 ? others : 1;
    a->workers = dt_alloc((size_t)a->worker_count, sizeof *a->workers);
    a->arriving = dt_alloc((size_t)a->worker_count, sizeof(struct dt_message *));
    dt_update_order_init(&a->order, t->progress.step, t->settings.distributed.staleness);
    return open_record(t, err);
}

void dt_async_close(struct dt_training *t)
{
    struct dt_async *a = &t->async;
    for (int i = 0; i < a->worker_count; i++) {
        dt_bulk_release(&a->workers[i].sent);
        dt_bulk_release(&a->workers[i].received);
    }
    for (size_t i = 0; i < a->order.count; i++)
        free(a->order.pending[i].gradient);
    for (size_t i = 0; i < a->spare_count; i++)
        free(a->spares[i]);
    dt_update_order_release(&a->order);
    dt_update_record_release(&a->record);
    dt_metrics_close(&a->file);
    free(a->spares);
    free(a->workers);
    free(a->arriving);
    free(a->parameters);
    *a = (struct dt_async){0};
}

/* --- gradients -------------------------------------------------------------------------------- */

/* Copies all buckets' gradients to host memory, or from there. */
static void copy_gradients(struct dt_training *t, float *host, bool to_device)
{
    struct dt_data_parallel *dp = &t->state.dp;
    for (int b = 0; b < dp->sharding.count; b++) {
        const size_t n = (size_t)dt_range_count(dt_data_parallel_shard(dp, b));
        if (n > 0 && to_device)
            t->device->ops->upload(t->device, dt_data_parallel_reduced(dp, b), host,
                                   n * sizeof *host);
        else if (n > 0)
            t->device->ops->download(t->device, host, dt_data_parallel_reduced(dp, b),
                                     n * sizeof *host);
        host += n;
    }
}

/* With the parameters that this rank has. */
static int compute(struct dt_training *t, const struct dt_async_work *work,
                   struct dt_async_gradient *g, struct dt_error *err)
{
    const struct dt_progress_state progress = t->progress;
    t->progress.step = (long)work->batch - 1;
    t->progress.samples = work->samples;
    dt_batch_order_begin(&t->order, &t->settings, &t->state.dp, work->samples);
    dt_step_trace_begin(&t->trace, (long)work->batch, work->samples);
    int rc =
        dt_training_gradients(t, dt_batch_passes(&t->settings, work->samples), 1, &g->sums, err);
    t->progress = progress;
    DT_TRY(rc);
    DT_TRY(dt_data_parallel_wait(&t->state.dp, err));
    copy_gradients(t, g->values, false);
    g->batch = t->trace.batch;
    g->stop = t->stop && *t->stop;
    return 0;
}

/* --- the server ------------------------------------------------------------------------------- */

static struct dt_async_gradient *take_spare(struct dt_training *t)
{
    struct dt_async *a = &t->async;
    return a->spare_count > 0 ? a->spares[--a->spare_count] : dt_alloc(1, gradient_bytes(t));
}

static void put_back(struct dt_async *a, struct dt_async_gradient *g)
{
    DT_GROW(a->spares, a->spare_count, a->spare_capacity);
    a->spares[a->spare_count++] = g;
}

static uint64_t samples_of_batch(const struct dt_training *t)
{
    return (uint64_t)(t->settings.training.gradient_accumulation_steps *
                      t->settings.training.batch_size);
}

/* The batches up to the present step have as many samples as those that have been applied. */
static uint64_t samples_before(const struct dt_training *t, long batch)
{
    return t->progress.samples - (uint64_t)t->progress.step * samples_of_batch(t) +
           (uint64_t)(batch - 1) * samples_of_batch(t);
}

static bool is_due_after(const struct dt_training *t, long batch)
{
    const struct dt_interval_position before = {batch - 1, samples_before(t, batch), 0};
    const struct dt_interval_position after = {batch, samples_before(t, batch + 1), 0};
    return batch >= t->settings.training.max_steps ||
           (dt_training_due(t, false, &before, &after) & (DT_DUE_VALIDATION | DT_DUE_CHECKPOINT));
}

/* The present parameters, in host memory. */
static int take_parameters(struct dt_training *t, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    const struct dt_train_state *s = &t->state;
    if (a->version == a->order.version)
        return 0;
    for (int w = 0; w < a->worker_count; w++)
        DT_TRY(dt_bulk_await(&a->workers[w].sent, t->comm, err));
    for (int b = 0; b < t->model->table.bucket_count; b++)
        if (dt_range_count(s->shards[b]) > 0)
            t->device->ops->download(t->device, a->parameters + s->shards[b].first,
                                     s->parameters[b],
                                     (size_t)dt_range_count(s->shards[b]) * sizeof(float));
    a->version = a->order.version;
    return 0;
}

/* The next batch begins. */
static int employ(struct dt_training *t, int w, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    struct dt_async_worker *worker = &a->workers[w];
    struct dt_async_gradient *g = take_spare(t);
    struct dt_pending_update *p = dt_update_order_begin(&a->order, w);
    p->gradient = g;
    const struct dt_async_work work = {.batch = p->batch, .samples = samples_before(t, p->batch)};
    a->closed |= is_due_after(t, p->batch);
    if (dt_comm_size(t->comm) == 1) {
        DT_TRY(compute(t, &work, g, err));
        dt_update_order_arrive(&a->order, w);
        return 0;
    }
    DT_TRY(dt_bulk_await(&worker->sent, t->comm, err));
    DT_TRY(take_parameters(t, err));
    worker->work = work;
    worker->computes = true;
    worker->gradient = g;
    dt_bulk_receive(&worker->received, t->comm, w + 1, CHANNEL, g, gradient_bytes(t));
    dt_bulk_send(&worker->sent, t->comm, w + 1, CHANNEL, &worker->work, sizeof worker->work);
    dt_bulk_send(&worker->sent, t->comm, w + 1, CHANNEL, a->parameters, parameter_bytes(t));
    return 0;
}

/* Gradients that wait are of one worker each, which bounds their number; those of a replay may be
 * of fewer workers. */
static bool is_idle(const struct dt_async *a, int w)
{
    return !a->workers[w].computes &&
           (a->order.recorded || !dt_update_order_has_pending(&a->order, w));
}

/* Idle workers begin what they may. */
static int employ_all(struct dt_training *t, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    a->stops |= t->stop && *t->stop;
    if (a->order.count == 0)
        a->closed = false;
    for (int w = 0; w < a->worker_count; w++) {
        const bool is_open = a->order.recorded || a->order.count == 0 || !(a->closed || a->stops);
        if (is_open && is_idle(a, w) && dt_update_order_next_batch(&a->order) > 0)
            DT_TRY(employ(t, w, err));
    }
    return 0;
}

static int await_one(struct dt_training *t, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    int w;
    for (int i = 0; i < a->worker_count; i++)
        a->arriving[i] = dt_bulk_last(&a->workers[i].received);
    DT_TRY(dt_comm_await_any(t->comm, a->arriving, a->worker_count, &w, err));
    DT_TRY(dt_bulk_await(&a->workers[w].received, t->comm, err));
    a->workers[w].computes = false;
    dt_update_order_arrive(&a->order, w);
    a->worker_failed = a->workers[w].gradient->failed != 0;
    return a->worker_failed ? dt_fail(err, DT_EINVALID, "rank %d has an error", w + 1) : 0;
}

/* Records the update, or compares it with the record. */
static int record(struct dt_training *t, const struct dt_ordered_update *u, int worker,
                  const struct dt_token_sums *sums, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    const double targets = (double)sums->counts[0];
    const double loss = targets > 0 ? dt_exact_sum_round(&sums->loss) / targets : 0;
    const int rank = dt_comm_size(t->comm) > 1 ? worker + 1 : 0;
    if (a->order.recorded)
        DT_TRY(dt_update_record_compare(&a->record, u->step, loss, err));
    return a->file.file ? dt_update_record_write(&a->file, u, rank, loss, err) : 0;
}

int dt_async_take_gradient(struct dt_training *t, struct dt_token_sums *sums, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    const struct dt_pending_update *next;
    while ((next = dt_update_order_next(&a->order)) == NULL) {
        DT_TRY(employ_all(t, err));
        if (a->order.count == 0)
            return dt_fail(err, DT_EINVALID, "distributed.replay: %s has no update %ld",
                           t->settings.distributed.replay, t->progress.step + 1);
        if (dt_comm_size(t->comm) > 1)
            DT_TRY(await_one(t, err));
    }
    struct dt_async_gradient *g = next->gradient;
    const int worker = next->worker;
    const struct dt_ordered_update update = dt_update_order_apply(&a->order, next);
    copy_gradients(t, g->values, true);
    *sums = g->sums;
    t->trace.batch = g->batch;
    a->stops |= g->stop != 0;
    put_back(a, g);
    return record(t, &update, worker, sums, err);
}

bool dt_async_is_even(const struct dt_training *t)
{
    return t->async.order.count == 0;
}

int dt_async_check_due(const struct dt_training *t, const struct dt_step_report *r,
                       struct dt_error *err)
{
    if (dt_async_is_even(t) || !(r->due & (DT_DUE_VALIDATION | DT_DUE_CHECKPOINT)))
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "distributed.replay: the run of %s did not validate or save after step %ld, "
                   "where this one would: set training.max_steps, training.eval_interval and "
                   "training.save_interval as it had them",
                   t->settings.distributed.replay, t->progress.step + 1);
}

static int end_workers(struct dt_training *t, bool stop, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    for (int w = 0; w < a->worker_count && dt_comm_size(t->comm) > 1; w++) {
        struct dt_async_worker *worker = &a->workers[w];
        DT_TRY(dt_bulk_await(&worker->sent, t->comm, err));
        worker->work = (struct dt_async_work){.batch = END, .stop = stop};
        dt_bulk_send(&worker->sent, t->comm, w + 1, CHANNEL, &worker->work, sizeof worker->work);
    }
    for (int w = 0; w < a->worker_count; w++)
        DT_TRY(dt_bulk_await(&a->workers[w].sent, t->comm, err));
    return 0;
}

int dt_async_end(struct dt_training *t, bool stop, int rc, struct dt_error *err)
{
    struct dt_async *a = &t->async;
    struct dt_error other;
    int suspect;
    if (!a->serves || a->ended || dt_comm_has_failed(t->comm, &suspect))
        return rc;
    a->ended = true;
    if (end_workers(t, stop, rc < 0 ? &other : err) < 0)
        return rc < 0 ? rc : err->code;
    return dt_comm_agree(t->comm, a->worker_failed ? 0 : rc, err);
}

/* --- a worker --------------------------------------------------------------------------------- */

static int receive(struct dt_training *t, void *data, size_t bytes, struct dt_error *err)
{
    struct dt_bulk bulk = {0};
    dt_bulk_receive(&bulk, t->comm, 0, CHANNEL, data, bytes);
    int rc = dt_bulk_await(&bulk, t->comm, err);
    dt_bulk_release(&bulk);
    return rc;
}

/* If the gradient cannot be computed, fills *own, and tells the server. */
static int serve_batch(struct dt_training *t, const struct dt_async_work *work,
                       struct dt_async_gradient *g, struct dt_error *own, struct dt_error *err)
{
    struct dt_bulk bulk = {0};
    DT_TRY(receive(t, t->async.parameters, parameter_bytes(t), err));
    dt_train_state_set_parameters(&t->state, t->async.parameters);
    g->failed = compute(t, work, g, own);
    dt_bulk_send(&bulk, t->comm, 0, CHANNEL, g, gradient_bytes(t));
    int rc = dt_bulk_await(&bulk, t->comm, err);
    dt_bulk_release(&bulk);
    return rc;
}

int dt_async_work(struct dt_training *t, struct dt_step_report *r, struct dt_error *err)
{
    struct dt_async_gradient *g = dt_alloc(1, gradient_bytes(t));
    struct dt_async_work work = {.batch = END};
    struct dt_error own;
    int rc, failed = 0;
    do {
        rc = receive(t, &work, sizeof work, err);
        if (rc == 0 && work.batch != END) {
            rc = serve_batch(t, &work, g, &own, err);
            failed = (int)g->failed;
        }
    } while (rc == 0 && work.batch != END);
    free(g);
    *r = (struct dt_step_report){.step = t->progress.step, .stop = work.stop != 0};
    if (rc < 0)
        return rc;
    if (failed < 0)
        *err = own;
    DT_TRY(dt_comm_agree(t->comm, failed, err));
    return r->stop;
}
