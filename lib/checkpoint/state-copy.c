/* SPDX-License-Identifier: MIT */
#include "checkpoint/state-copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* Receives the pieces of a state in order: where a piece begins in the copy, and its values. */
struct visitor {
    void (*visit)(struct visitor *, int64_t first, const struct dt_snapshot_piece *piece);
    const struct dt_train_state *state;
    float *values;
    enum dt_snapshot_part part; /* of the piece */
    struct dt_state_shard *shard;
    size_t run_capacity, piece_capacity;
};

/* Where each tensor of a part begins, and as the last entry where the part ends; the caller frees
 * it. */
static int64_t *offsets_of(const struct dt_train_state *s, enum dt_snapshot_part part,
                           int64_t first, int *count)
{
    struct dt_named_tensor *tensors = dt_snapshot_tensors(s, part, 1, count);
    int64_t *offsets = dt_alloc((size_t)*count + 1, sizeof *offsets);
    offsets[0] = first;
    for (int i = 0; i < *count; i++)
        offsets[i + 1] =
            offsets[i] + tensors[i].shape[0] * (tensors[i].rank == 2 ? tensors[i].shape[1] : 1);
    free(tensors);
    return offsets;
}

/* Visits the pieces that this rank holds, or only those that it owns. Returns the number of values
 * of the whole state. v NULL: visits none. */
static int64_t visit_pieces(const struct dt_train_state *s, bool held, struct visitor *v)
{
    int64_t end = 0;
    for (int part = 0; part < DT_SNAPSHOT_PARTS; part++) {
        int tensors;
        size_t count = 0;
        if (!dt_snapshot_has(s, (enum dt_snapshot_part)part))
            continue;
        int64_t *offsets = offsets_of(s, (enum dt_snapshot_part)part, end, &tensors);
        struct dt_snapshot_piece *pieces =
            v ? dt_snapshot_pieces(s, (enum dt_snapshot_part)part, held, 1, &count) : NULL;
        if (v)
            v->part = (enum dt_snapshot_part)part;
        for (size_t i = 0; i < count; i++)
            v->visit(v, offsets[pieces[i].tensor] + pieces[i].first, &pieces[i]);
        end = offsets[tensors];
        free(pieces);
        free(offsets);
    }
    return end;
}

void dt_state_copy_allocate(struct dt_state_copy *c, const struct dt_train_state *s)
{
    if (c->values)
        return;
    c->count = visit_pieces(s, true, NULL);
    c->values = dt_alloc((size_t)c->count, sizeof *c->values);
}

static void download(struct visitor *v, int64_t first, const struct dt_snapshot_piece *p)
{
    dt_snapshot_download(v->state, p, v->values + first);
}

static void upload(struct visitor *v, int64_t first, const struct dt_snapshot_piece *p)
{
    dt_snapshot_upload(v->state, p, v->values + first);
}

size_t dt_state_copy_bytes(const struct dt_train_state *s)
{
    return (size_t)visit_pieces(s, true, NULL) * sizeof(float);
}

void dt_state_copy_take(struct dt_state_copy *c, const struct dt_train_state *s)
{
    dt_state_copy_allocate(c, s);
    visit_pieces(s, true, &(struct visitor){.visit = download, .state = s, .values = c->values});
}

void dt_state_copy_restore(const struct dt_state_copy *c, struct dt_train_state *s)
{
    visit_pieces(s, true, &(struct visitor){.visit = upload, .state = s, .values = c->values});
    dt_train_state_refresh_weights(s);
}

void dt_state_copy_release(struct dt_state_copy *c)
{
    free(c->values);
    *c = (struct dt_state_copy){0};
}

/* --- shards ----------------------------------------------------------------------------------- */

/* With zero_stage 1 and 2 in fp32 the weights are the parameters of all ranks. */
static int64_t place_in_weights(const struct visitor *v, const struct dt_snapshot_piece *p)
{
    const float *weights = v->state->master ? NULL : v->state->gather.weights;
    return v->part == DT_SNAPSHOT_PARAMETERS && weights && p->device ? p->device - weights : -1;
}

static void add_run(struct visitor *v, int64_t first, const struct dt_snapshot_piece *p)
{
    struct dt_state_shard *s = v->shard;
    const size_t count = (size_t)s->run_count++;
    const int64_t held = place_in_weights(v, p);
    DT_GROW(s->runs, count, v->run_capacity);
    DT_GROW(s->pieces, count, v->piece_capacity);
    s->runs[count] = (struct dt_state_run){first, p->count, held};
    s->pieces[count] = *p;
    s->count += p->count;
    s->all_have += held < 0 ? 0 : p->count;
}

struct dt_state_shard dt_state_shard_of(const struct dt_train_state *s, bool held)
{
    struct dt_state_shard shard = {0};
    visit_pieces(s, held, &(struct visitor){.visit = add_run, .state = s, .shard = &shard});
    return shard;
}

void dt_state_shard_release(struct dt_state_shard *shard)
{
    free(shard->runs);
    free(shard->pieces);
    *shard = (struct dt_state_shard){0};
}

void dt_state_shard_take(const struct dt_state_shard *shard, float *values,
                         const struct dt_train_state *s)
{
    for (int64_t i = 0; i < shard->run_count; values += shard->runs[i++].count)
        dt_snapshot_download(s, &shard->pieces[i], values);
}

void dt_state_shard_take_held(const struct dt_state_shard *shard, float *values,
                              const struct dt_train_state *s)
{
    struct dt_device *dev = s->model->device;
    const float *weights = s->gather.weights;
    for (int64_t i = 0, taken = 0; taken < shard->all_have; taken += shard->runs[i++].count)
        dev->ops->download(dev, values + taken, weights + shard->runs[i].held,
                           (size_t)shard->runs[i].count * sizeof *values);
}

void dt_state_shard_put(const struct dt_state_shard *shard, const float *values,
                        struct dt_state_copy *c)
{
    for (int64_t i = 0; i < shard->run_count; i++) {
        memcpy(c->values + shard->runs[i].first, values,
               (size_t)shard->runs[i].count * sizeof *values);
        values += shard->runs[i].count;
    }
}
