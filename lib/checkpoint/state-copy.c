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
    struct dt_state_shard *shard;
    size_t capacity;
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

static void add_run(struct visitor *v, int64_t first, const struct dt_snapshot_piece *p)
{
    struct dt_state_shard *s = v->shard;
    size_t count = (size_t)s->run_count;
    DT_GROW(s->runs, count, v->capacity);
    s->runs[s->run_count++] = (struct dt_state_run){first, p->count};
    s->count += p->count;
}

struct dt_state_shard dt_state_shard_of(const struct dt_train_state *s, bool held)
{
    struct dt_state_shard shard = {0};
    visit_pieces(s, held, &(struct visitor){.visit = add_run, .shard = &shard});
    return shard;
}

/* Every step of an elastic run needs this: names and places of tensors are not looked up. */
void dt_state_shard_take(float *values, const struct dt_train_state *s, bool held)
{
    for (int part = 0; part < DT_SNAPSHOT_PARTS; part++) {
        size_t count;
        struct dt_snapshot_piece *pieces =
            dt_snapshot_pieces(s, (enum dt_snapshot_part)part, held, 1, &count);
        for (size_t i = 0; i < count; values += pieces[i++].count)
            dt_snapshot_download(s, &pieces[i], values);
        free(pieces);
    }
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
