/* SPDX-License-Identifier: MIT */
#include "eval/likelihood.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "eval/rank-batches.h"
#include "model/finite.h"
#include "model/forward-backward.h"

struct request {
    size_t item, first; /* offset of its ids in the queue */
    size_t number;      /* index of its first id in the item, from 1; 0: the prefix */
    uint32_t count, from;
};

struct dt_likelihoods {
    const struct dt_model *model;
    struct dt_comm *ranks;
    const struct dt_item_names *names;
    struct dt_progress *progress;
    struct dt_workspace *work; /* NULL until the first batch */
    int64_t work_length;
    struct dt_batch batch;
    int64_t most; /* largest batch */
    float *losses, *hits;
    struct dt_ids queue;
    struct request *requests;
    size_t request_count, request_capacity;
    struct dt_likelihood *items;
    size_t item_count, item_capacity;
    double begun, done; /* start of scoring; tokens scored since */
};

struct dt_likelihoods *dt_likelihoods_new(const struct dt_model *model, struct dt_comm *ranks,
                                          int64_t batch, const struct dt_item_names *names,
                                          struct dt_progress *progress)
{
    struct dt_likelihoods *l = dt_alloc(1, sizeof *l);
    l->model = model;
    l->ranks = ranks;
    l->names = names;
    l->progress = progress;
    l->most = batch;
    return l;
}

void dt_likelihoods_free(struct dt_likelihoods *l)
{
    if (l == NULL)
        return;
    dt_workspace_free(l->work);
    dt_batch_release(&l->batch);
    dt_ids_release(&l->queue);
    free(l->losses);
    free(l->hits);
    free(l->requests);
    free(l->items);
    free(l);
}

size_t dt_likelihoods_item(struct dt_likelihoods *l)
{
    DT_GROW(l->items, l->item_count, l->item_capacity);
    l->items[l->item_count] = (struct dt_likelihood){.greedy = true};
    return l->item_count++;
}

const struct dt_likelihood *dt_likelihoods_of(const struct dt_likelihoods *l, size_t item)
{
    return &l->items[item];
}

size_t dt_likelihoods_waiting(const struct dt_likelihoods *l)
{
    return l->queue.count;
}

/* number: index of the first id in the item. */
static void add_numbered(struct dt_likelihoods *l, size_t item, const uint32_t *ids, size_t count,
                         size_t from, size_t number)
{
    size_t most = (size_t)l->model->config.max_seq_len + 1, cut = count > most ? count - most : 0;
    size_t first = from > cut + 1 ? from - cut : 1;
    if (count - cut <= first)
        return;
    DT_GROW(l->requests, l->request_count, l->request_capacity);
    l->requests[l->request_count++] = (struct request){.item = item,
                                                       .first = l->queue.count,
                                                       .number = number + cut,
                                                       .count = (uint32_t)(count - cut),
                                                       .from = (uint32_t)first};
    dt_ids_append(&l->queue, ids + cut, count - cut);
}

void dt_likelihoods_add(struct dt_likelihoods *l, size_t item, const uint32_t *ids, size_t count,
                        size_t from)
{
    add_numbered(l, item, ids, count, from, 1);
}

static struct dt_ids with_prefix(uint32_t prefix, const uint32_t *ids, size_t count)
{
    struct dt_ids all = DT_IDS_EMPTY;
    if (prefix != UINT32_MAX)
        dt_ids_add(&all, prefix);
    if (count > 0)
        dt_ids_append(&all, ids, count);
    return all;
}

void dt_likelihoods_add_rolling(struct dt_likelihoods *l, size_t item, uint32_t prefix,
                                const uint32_t *ids, size_t count)
{
    size_t length = (size_t)l->model->config.max_seq_len;
    struct dt_ids all = with_prefix(prefix, ids, count);
    for (size_t from = 1, to; from < all.count; from = to) {
        to = all.count - from < length ? all.count : from + length;
        size_t context = to > length + 1 ? to - length - 1 : 0;
        add_numbered(l, item, all.data + context, to - context, from - context,
                     context + (prefix == UINT32_MAX));
    }
    dt_ids_release(&all);
}

void dt_likelihoods_add_overlapping(struct dt_likelihoods *l, size_t item, uint32_t prefix,
                                    const uint32_t *ids, size_t count, size_t length, size_t stride)
{
    struct dt_ids all = with_prefix(prefix, ids, count);
    size_t predicted = 1;
    for (size_t first = 0; predicted < all.count; first += stride) {
        size_t end = all.count - first < length ? all.count : first + length;
        add_numbered(l, item, all.data + first, end - first, predicted - first,
                     first + (prefix == UINT32_MAX));
        predicted = end;
    }
    dt_ids_release(&all);
}

/* --- scoring ----------------------------------------------------------------------------------*/

/* Longest first, so that memory peaks at the first batch; ties in queue order. */
static int compare_requests(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static int make_room(struct dt_likelihoods *l, int64_t length, struct dt_error *err)
{
    if (l->work && length <= l->work_length)
        return 0;
    dt_workspace_free(l->work);
    l->work = NULL;
    DT_TRY(
        dt_workspace_new(&l->work, l->model, &(struct dt_workspace_shape){l->most, length}, err));
    dt_batch_release(&l->batch);
    dt_batch_init(&l->batch, l->most, length);
    l->losses = dt_realloc(l->losses, (size_t)(l->most * length), sizeof *l->losses);
    l->hits = dt_realloc(l->hits, (size_t)(l->most * length), sizeof *l->hits);
    l->work_length = length;
    return 0;
}

/* Shorter sequences are padded at the end, which causal attention does not see. */
static void pack(struct dt_likelihoods *l, const struct request *requests, int64_t count,
                 int64_t length)
{
    l->batch.count = count;
    l->batch.length = length;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t *ids = l->queue.data + requests[i].first;
        int64_t given = (int64_t)requests[i].count - 1;
        for (int64_t t = 0; t < length; t++) {
            bool predicted = t < given && t + 1 >= (int64_t)requests[i].from;
            l->batch.inputs[i * length + t] = t < given ? (int32_t)ids[t] : 0;
            l->batch.targets[i * length + t] = predicted ? (int32_t)ids[t + 1] : DT_NO_TARGET;
        }
    }
}

static int fail_at(const struct dt_likelihoods *l, const struct request *r, uint32_t t, float loss,
                   struct dt_error *err)
{
    char *name = l->names->name(l->names->context, r->item);
    dt_fail(err, DT_EFORMAT, "%s: token %zu: the loss is %s: the model overflows", name,
            r->number + t + 1, dt_finite_name((double)loss));
    free(name);
    return err->code;
}

static int sum_up(const struct dt_likelihoods *l, const struct request *r, const float *losses,
                  const float *hits, struct dt_likelihood *sum, struct dt_error *err)
{
    *sum = (struct dt_likelihood){.greedy = true};
    for (uint32_t t = r->from - 1; t + 1 < r->count; t++) {
        if (!isfinite(losses[t]))
            return fail_at(l, r, t, losses[t], err);
        sum->nats += (double)losses[t];
        sum->greedy = sum->greedy && hits[t] > 0;
        sum->tokens++;
    }
    return 0;
}

/* Scores requests as one batch; scores: [count]. */
static int score_batch(struct dt_likelihoods *l, const struct request *requests, int64_t count,
                       struct dt_likelihood *scores, struct dt_error *err)
{
    int64_t length = (int64_t)requests[0].count - 1;
    DT_TRY(make_room(l, length, err));
    pack(l, requests, count, length);
    dt_model_score(l->model, l->work, &l->batch, l->losses, l->hits);
    for (int64_t i = 0; i < count; i++)
        DT_TRY(
            sum_up(l, &requests[i], l->losses + i * length, l->hits + i * length, &scores[i], err));
    return 0;
}

/* expected: total tokens to score; 0: unknown. */
static void show_progress(struct dt_likelihoods *l, double expected)
{
    char left[DT_CLOCK_DURATION];
    double seconds = dt_clock_now() - l->begun;
    if (!dt_progress_due(l->progress))
        return;
    if (expected > 0)
        dt_progress_show(l->progress, "%.0f%%, %.0f tokens/s, %s left", 100 * l->done / expected,
                         l->done / seconds,
                         dt_clock_duration(seconds * (expected - l->done) / l->done, left));
    else
        dt_progress_show(l->progress, "%.0f tokens, %.0f tokens/s", l->done, l->done / seconds);
}

/* Scores the batches of this rank and gathers all; batches have l->most entries. */
static int score_queue(struct dt_likelihoods *l, struct dt_likelihood *scores, size_t batches,
                       double expected, struct dt_error *err)
{
    for (size_t b = 0; b < batches; b++) {
        size_t at = b * (size_t)l->most, left = l->request_count - at;
        size_t count = left < (size_t)l->most ? left : (size_t)l->most;
        if (dt_rank_batches_is_ours(l->ranks, b))
            DT_TRY(score_batch(l, l->requests + at, (int64_t)count, scores + at, err));
        for (size_t i = 0; i < count; i++)
            l->done += l->requests[at + i].count;
        show_progress(l, expected);
    }
    return dt_rank_batches_gather(l->ranks, scores, batches, (size_t)l->most * sizeof *scores, err);
}

static void collect(struct dt_likelihoods *l, const struct dt_likelihood *scores)
{
    for (size_t i = 0; i < l->request_count; i++) {
        struct dt_likelihood *item = &l->items[l->requests[i].item];
        item->nats += scores[i].nats;
        item->tokens += scores[i].tokens;
        item->greedy = item->greedy && scores[i].greedy;
    }
    l->queue.count = l->request_count = 0;
}

int dt_likelihoods_run(struct dt_likelihoods *l, double share, struct dt_error *err)
{
    double expected = share > 0 ? (l->done + (double)l->queue.count) / share : 0;
    size_t batches = (l->request_count + (size_t)l->most - 1) / (size_t)l->most;
    if (l->begun == 0)
        l->begun = dt_clock_now();
    if (l->request_count > 1)
        qsort(l->requests, l->request_count, sizeof *l->requests, compare_requests);
    struct dt_likelihood *scores = dt_alloc(batches * (size_t)l->most, sizeof *scores);
    int rc = score_queue(l, scores, batches, expected, err);
    if (rc == 0)
        collect(l, scores);
    free(scores);
    return rc;
}
