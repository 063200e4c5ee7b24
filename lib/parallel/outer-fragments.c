/* SPDX-License-Identifier: MIT */
#include "parallel/outer-fragments.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define CHANNEL 1
#define CHUNK   DT_CHUNK_CODES_SIZE
#define MIXING  0.5f /* weight of what ranks have trained while a fragment was in flight */

void dt_outer_fragments_init(struct dt_outer_fragments *f, struct dt_train_state *state,
                             const struct dt_settings *s)
{
    *f = (struct dt_outer_fragments){
        .state = state,
        .count = (int)s->distributed.fragments,
        .every = s->distributed.local_steps,
        .delay = s->distributed.outer_delay,
        .type = (enum dt_outer_precision)s->distributed.outer_precision,
        .rate = (float)s->distributed.outer_learning_rate,
        .momentum = (float)s->distributed.outer_momentum,
        .pending = -1,
    };
}

void dt_outer_fragments_release(struct dt_outer_fragments *f)
{
    free(f->values);
    free(f->start);
    free(f->velocity);
    free(f->own);
    free(f->received);
    free(f->means);
    dt_bulk_release(&f->messages);
    *f = (struct dt_outer_fragments){.pending = -1};
}

static struct dt_comm *group_of(const struct dt_outer_fragments *f)
{
    return f->state->dp.dp_group.all;
}

/* --- elements ----------------------------------------------------------------------------------
 */

static int64_t elements_of(const struct dt_outer_fragments *f, int fragment)
{
    int64_t elements = 0;
    for (int b = fragment; b < f->state->model->table.bucket_count; b += f->count)
        elements += dt_range_count(f->state->shards[b]);
    return elements;
}

/* The pieces of ranks are runs of chunks. */
static struct dt_range piece_of(const struct dt_outer_fragments *f, int rank)
{
    return dt_range_part(f->chunks, rank, dt_comm_size(group_of(f)));
}

static void allocate(struct dt_outer_fragments *f)
{
    int64_t most = 0;
    for (int i = 0; i < f->count; i++)
        most = elements_of(f, i) > most ? elements_of(f, i) : most;
    const size_t chunks = (size_t)(most + CHUNK - 1) / CHUNK,
                 ranks = (size_t)dt_comm_size(group_of(f));
    const size_t bytes = dt_chunk_codes_bytes(f->type);
    f->values = dt_alloc(chunks * CHUNK, sizeof *f->values);
    f->start = dt_alloc(chunks * CHUNK, sizeof *f->start);
    f->velocity = dt_alloc(chunks * CHUNK, sizeof *f->velocity);
    f->own = dt_alloc(chunks, bytes);
    f->means = dt_alloc(chunks, bytes);
    f->received = dt_alloc((chunks / ranks + 1) * ranks, bytes);
}

/* Copies the fragment's elements from an array of the state to host memory, or back. */
static void copy(const struct dt_outer_fragments *f, float *array, float *host, bool back)
{
    struct dt_device *dev = f->state->model->device;
    for (int b = f->pending; b < f->state->model->table.bucket_count; b += f->count) {
        const struct dt_range r = f->state->shards[b];
        const size_t bytes = (size_t)dt_range_count(r) * sizeof *host;
        if (bytes > 0 && back)
            dev->ops->upload(dev, array + r.first, host, bytes);
        else if (bytes > 0)
            dev->ops->download(dev, host, array + r.first, bytes);
        host += dt_range_count(r);
    }
}

/* --- messages ----------------------------------------------------------------------------------
 */

static unsigned char *slot_of(const struct dt_outer_fragments *f, int rank)
{
    const struct dt_range own = piece_of(f, dt_comm_rank(group_of(f)));
    return f->received + (size_t)rank * (size_t)dt_range_count(own) * dt_chunk_codes_bytes(f->type);
}

static int64_t count_in(const struct dt_outer_fragments *f, int64_t chunk)
{
    const int64_t left = f->elements - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void begin(struct dt_outer_fragments *f, int fragment, long step)
{
    const size_t bytes = dt_chunk_codes_bytes(f->type);
    const int own = dt_comm_rank(group_of(f));
    if (f->values == NULL)
        allocate(f);
    f->pending = fragment;
    f->gathers = false;
    f->sent = step;
    f->elements = elements_of(f, fragment);
    f->chunks = (f->elements + CHUNK - 1) / CHUNK;
    copy(f, f->state->model->parameters, f->values, false);
    copy(f, f->state->outer_start, f->start, false);
    for (int64_t i = 0; i < f->elements; i++)
        f->values[i] = f->start[i] - f->values[i];
    for (int64_t c = 0; c < f->chunks; c++)
        dt_chunk_codes_encode(f->type, f->values + c * CHUNK, count_in(f, c),
                              f->own + (size_t)c * bytes);
    const size_t mine = (size_t)dt_range_count(piece_of(f, own)) * bytes;
    for (int r = 0; r < dt_comm_size(group_of(f)); r++) {
        const struct dt_range piece = piece_of(f, r);
        if (r == own)
            continue;
        dt_bulk_receive(&f->messages, group_of(f), r, CHANNEL, slot_of(f, r), mine);
        dt_bulk_send(&f->messages, group_of(f), r, CHANNEL, f->own + (size_t)piece.first * bytes,
                     (size_t)dt_range_count(piece) * bytes);
    }
}

/* The mean of this rank's piece, summed in the order of ranks, goes to all. */
static int gather(struct dt_outer_fragments *f, struct dt_error *err)
{
    const size_t bytes = dt_chunk_codes_bytes(f->type);
    const int own = dt_comm_rank(group_of(f)), size = dt_comm_size(group_of(f));
    const struct dt_range mine = piece_of(f, own);
    DT_TRY(dt_bulk_await(&f->messages, group_of(f), err));
    memcpy(slot_of(f, own), f->own + (size_t)mine.first * bytes,
           (size_t)dt_range_count(mine) * bytes);
    for (int64_t c = mine.first; c < mine.end; c++) {
        float sum[CHUNK] = {0};
        for (int r = 0; r < size; r++)
            dt_chunk_codes_add(f->type, slot_of(f, r) + (size_t)(c - mine.first) * bytes,
                               count_in(f, c), 1 / (float)size, sum);
        dt_chunk_codes_encode(f->type, sum, count_in(f, c), f->means + (size_t)c * bytes);
    }
    for (int r = 0; r < size; r++) {
        const struct dt_range piece = piece_of(f, r);
        if (r == own)
            continue;
        dt_bulk_receive(&f->messages, group_of(f), r, CHANNEL,
                        f->means + (size_t)piece.first * bytes,
                        (size_t)dt_range_count(piece) * bytes);
        dt_bulk_send(&f->messages, group_of(f), r, CHANNEL, f->means + (size_t)mine.first * bytes,
                     (size_t)dt_range_count(mine) * bytes);
    }
    f->gathers = true;
    return 0;
}

/* Nesterov, as in local-sgd.c. mixing: the weight of the present parameters. */
static int apply(struct dt_outer_fragments *f, float mixing, struct dt_error *err)
{
    const size_t bytes = dt_chunk_codes_bytes(f->type);
    DT_TRY(dt_bulk_await(&f->messages, group_of(f), err));
    memset(f->values, 0, (size_t)f->elements * sizeof *f->values);
    for (int64_t c = 0; c < f->chunks; c++)
        dt_chunk_codes_add(f->type, f->means + (size_t)c * bytes, count_in(f, c), 1,
                           f->values + c * CHUNK);
    copy(f, f->state->outer_start, f->start, false);
    copy(f, f->state->outer_momentum, f->velocity, false);
    for (int64_t i = 0; i < f->elements; i++) {
        f->velocity[i] = f->momentum * f->velocity[i] + f->values[i];
        f->start[i] -= f->rate * (f->values[i] + f->momentum * f->velocity[i]);
    }
    copy(f, f->state->outer_start, f->start, true);
    copy(f, f->state->outer_momentum, f->velocity, true);
    copy(f, f->state->model->parameters, f->values, false);
    for (int64_t i = 0; i < f->elements; i++)
        f->values[i] = mixing * f->values[i] + (1 - mixing) * f->start[i];
    copy(f, f->state->model->parameters, f->values, true);
    f->pending = -1;
    return 0;
}

static int finish(struct dt_outer_fragments *f, float mixing, struct dt_error *err)
{
    if (f->pending < 0)
        return 0;
    if (!f->gathers)
        DT_TRY(gather(f, err));
    return apply(f, mixing, err);
}

/* --- steps -------------------------------------------------------------------------------------
 */

/* The fragment that is sent after a step; -1: none. */
static int due_at(const struct dt_outer_fragments *f, long step)
{
    for (int i = 0; i < f->count; i++)
        if (step % f->every == (i + 1) * f->every / f->count % f->every)
            return i;
    return -1;
}

int dt_outer_fragments_step(struct dt_outer_fragments *f, long step, struct dt_error *err)
{
    const int due = due_at(f, step);
    if (f->pending >= 0 && !f->gathers && step - f->sent >= (f->delay + 1) / 2)
        DT_TRY(gather(f, err));
    if (f->pending >= 0 && step - f->sent >= f->delay)
        DT_TRY(finish(f, MIXING, err));
    if (due < 0)
        return 0;
    begin(f, due, step);
    return f->delay == 0 ? finish(f, 0, err) : 0;
}

int dt_outer_fragments_flush(struct dt_outer_fragments *f, struct dt_error *err)
{
    DT_TRY(finish(f, MIXING, err));
    for (int i = 0; i < f->count; i++) {
        begin(f, i, 0);
        DT_TRY(finish(f, 0, err));
    }
    return 0;
}
