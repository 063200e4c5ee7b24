/* SPDX-License-Identifier: MIT */
#include "checkpoint/state-hash.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define CHUNK ((int64_t)1 << 20) /* elements that are downloaded at once */

void dt_state_hash_init(struct dt_state_hash *h, const struct dt_train_state *state,
                        enum dt_snapshot_part part)
{
    const struct dt_table *t = &state->model->table;
    long dp_size = dt_comm_size(state->dp.dp_group.all);
    *h = (struct dt_state_hash){.state = state, .part = part};
    h->tensors = dt_snapshot_tensors(state, part, dp_size, &h->count);
    h->pieces = dt_snapshot_pieces(state, part, false, dp_size, &h->piece_count);
    h->hashes = dt_alloc((size_t)h->count, sizeof *h->hashes);
    h->seeds = dt_alloc((size_t)h->count, sizeof *h->seeds);
    for (int i = 0; i < h->count; i++)
        h->seeds[i] = dt_sum_hash_seed(h->tensors[i].name);
    if (state->model->device->engine->own_memory)
        h->chunk = dt_alloc((size_t)CHUNK, sizeof *h->chunk);
    if (part != DT_SNAPSHOT_PARAMETERS)
        return;
    h->buckets = dt_alloc((size_t)h->count, sizeof *h->buckets);
    for (int i = 0; i < t->count; i++)
        if (!t->params[i].copy)
            h->buckets[t->params[i].number] = t->params[i].bucket;
}

void dt_state_hash_release(struct dt_state_hash *h)
{
    free(h->pieces);
    free(h->tensors);
    free(h->hashes);
    free(h->seeds);
    free(h->buckets);
    free(h->chunk);
    *h = (struct dt_state_hash){0};
}

/* The gradients of a parameter's elements: buckets have the same layout in both arrays. */
static const float *gradients_of(const struct dt_state_hash *h, const struct dt_snapshot_piece *p)
{
    int bucket = h->buckets[p->tensor];
    return dt_data_parallel_reduced(&h->state->dp, bucket) +
           (p->device - h->state->parameters[bucket]);
}

static void add_piece(struct dt_state_hash *h, const struct dt_snapshot_piece *p,
                      const float *values)
{
    struct dt_device *dev = h->state->model->device;
    int64_t most = h->chunk ? CHUNK : p->count;
    for (int64_t done = 0, n; done < p->count; done += n) {
        n = p->count - done < most ? p->count - done : most;
        const void *host = h->chunk ? (const void *)h->chunk : values + done;
        if (h->chunk)
            dev->ops->download(dev, h->chunk, values + done, (size_t)n * sizeof *values);
        dt_sum_hash_add(&h->hashes[p->tensor], h->seeds[p->tensor], (uint64_t)(p->first + done),
                        host, (size_t)n);
    }
}

/* Hashes what this rank owns of each tensor. */
static int hash_own(struct dt_state_hash *h, bool gradients, struct dt_error *err)
{
    struct dt_device *dev = h->state->model->device;
    DT_TRY(dev->ops->synchronize(dev, err));
    memset(h->hashes, 0, (size_t)h->count * sizeof *h->hashes);
    for (size_t i = 0; i < h->piece_count; i++)
        add_piece(h, &h->pieces[i],
                  gradients ? gradients_of(h, &h->pieces[i]) : h->pieces[i].device);
    return 0;
}

int dt_state_hash_sum(struct dt_comm *comm, struct dt_sum_hash *hashes, size_t count,
                      struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(comm), bytes = count * sizeof *hashes;
    if (size == 1)
        return 0;
    struct dt_sum_hash *all = dt_alloc(size * count, sizeof *all);
    memcpy(all + (size_t)dt_comm_rank(comm) * count, hashes, bytes);
    int rc = dt_comm_share(comm, all, bytes, err);
    memset(hashes, 0, bytes);
    for (size_t i = 0; rc == 0 && i < size * count; i++)
        dt_sum_hash_merge(&hashes[i % count], &all[i]);
    free(all);
    return rc;
}

int dt_state_hash_total(struct dt_state_hash *h, struct dt_comm *comm, struct dt_sum_hash *total,
                        struct dt_error *err)
{
    *total = (struct dt_sum_hash){{0}};
    DT_TRY(hash_own(h, false, err));
    for (int i = 0; i < h->count; i++)
        dt_sum_hash_merge(total, &h->hashes[i]);
    return dt_state_hash_sum(comm, total, 1, err);
}

int dt_state_hash_tensors(struct dt_state_hash *h, struct dt_comm *comm, bool gradients,
                          struct dt_error *err)
{
    DT_TRY(hash_own(h, gradients, err));
    return dt_state_hash_sum(comm, h->hashes, (size_t)h->count, err);
}
