/* SPDX-License-Identifier: MIT */
#include "checkpoint/state-hash.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* Whether a piece is the next row of the block, whose second row defines the distances. */
static bool continues(const struct dt_hashed_block *b, const struct dt_snapshot_piece *p)
{
    int64_t rows = b->rows;
    if (b->tensor != p->tensor || b->columns != p->count || p->segment)
        return false;
    return rows == 1 ||
           (p->first == b->first + rows * b->step && p->device == b->device + rows * b->pitch);
}

static void make_blocks(struct dt_state_hash *h, const struct dt_snapshot_piece *pieces,
                        size_t count)
{
    h->blocks = dt_alloc(count + 1, sizeof *h->blocks);
    for (size_t i = 0; i < count; i++) {
        const struct dt_snapshot_piece *p = &pieces[i];
        struct dt_hashed_block *last = h->blocks + (h->block_count > 0 ? h->block_count - 1 : 0);
        if (h->block_count == 0 || !continues(last, p)) {
            h->blocks[h->block_count++] = (struct dt_hashed_block){
                p->tensor, 1, p->count, p->first, 0, p->device, p->count, *p};
            continue;
        }
        last->step = p->first - last->first - (last->rows - 1) * last->step;
        last->pitch = p->device - last->device - (last->rows - 1) * last->pitch;
        last->rows++;
    }
}

void dt_state_hash_init(struct dt_state_hash *h, const struct dt_train_state *state,
                        enum dt_snapshot_part part)
{
    const struct dt_table *t = &state->model->table;
    long dp_size = dt_comm_size(state->dp.dp_group.all);
    size_t count;
    *h = (struct dt_state_hash){.state = state, .part = part};
    h->tensors = dt_snapshot_tensors(state, part, dp_size, &h->count);
    struct dt_snapshot_piece *pieces = dt_snapshot_pieces(state, part, false, dp_size, &count);
    make_blocks(h, pieces, count);
    free(pieces);
    h->hashes = dt_alloc((size_t)h->count, sizeof *h->hashes);
    h->seeds = dt_alloc((size_t)h->count, sizeof *h->seeds);
    for (int i = 0; i < h->count; i++)
        h->seeds[i] = dt_sum_hash_seed(h->tensors[i].name);
    if (part != DT_SNAPSHOT_PARAMETERS)
        return;
    h->buckets = dt_alloc((size_t)h->count, sizeof *h->buckets);
    for (int i = 0; i < t->count; i++)
        if (!t->params[i].copy)
            h->buckets[t->params[i].number] = t->params[i].bucket;
}

void dt_state_hash_release(struct dt_state_hash *h)
{
    free(h->blocks);
    free(h->tensors);
    free(h->hashes);
    free(h->seeds);
    free(h->buckets);
    *h = (struct dt_state_hash){0};
}

/* Buckets have the same layout in the arrays of parameters and of gradients. */
const float *dt_state_hash_gradients(const struct dt_state_hash *h, const struct dt_hashed_block *b)
{
    int bucket = h->buckets[b->tensor];
    return dt_data_parallel_reduced(&h->state->dp, bucket) +
           (b->device - h->state->parameters[bucket]);
}

/* Hashes what this rank owns of each tensor. */
static int hash_own(struct dt_state_hash *h, bool gradients, struct dt_error *err)
{
    struct dt_device *dev = h->state->model->device;
    memset(h->hashes, 0, (size_t)h->count * sizeof *h->hashes);
    for (size_t i = 0; i < h->block_count; i++) {
        const struct dt_hashed_block *b = &h->blocks[i];
        float *decoded = b->coded.segment ? dt_alloc((size_t)b->columns, sizeof *decoded) : NULL;
        const float *values = gradients ? dt_state_hash_gradients(h, b) : b->device;
        if (decoded)
            dt_snapshot_download(h->state, &b->coded, decoded);
        values = decoded ? decoded : values;
        struct dt_tensor x = dt_matrix((float *)values, b->rows, b->columns);
        x.stride = b->pitch;
        dev->ops->hash(dev, &h->hashes[b->tensor], &x, h->seeds[b->tensor], (uint64_t)b->first,
                       (uint64_t)b->step);
        free(decoded);
    }
    return dev->ops->synchronize(dev, err);
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
