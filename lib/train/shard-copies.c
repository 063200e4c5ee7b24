/* SPDX-License-Identifier: MIT */
/*
 * Copies of sharded state (ZeRO) in the memory of a neighbour, after each update, so that an
 * elastic run loses at most one step with a rank (Wang et al. 2023, GEMINI).
 *
 * After the update of step N a rank copies its shard, and sends the copy to the next rank while the
 * next step computes: after the first forward pass, which waits for weights on the same connection.
 * Parameters that all ranks have in their weights are not sent: the next rank copies them from its
 * own. The next rank is that of the next data-parallel group, at the same pipeline stage and tensor
 * shard, so that the two are not lost together. All ranks have received theirs before any updates
 * N + 1: they wait for the copies before they exchange flags. Each keeps the last two steps of two
 * shards, its own and that of the rank before. So either all shards of step N exist twice, or no
 * rank has passed that exchange in step N + 1, and all shards of step N - 1 do.
 *
 * Without ZeRO, ranks of pipeline stages and tensor shards copy what they hold, and send nothing:
 * the same is held by every data-parallel group.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "train/training-internal.h"

#define CHANNEL 1 /* of copies of values */

/* The data-parallel group, whose ranks exchange shards. */
static struct dt_comm *ring(const struct dt_training *t)
{
    return t->mesh.data.all;
}

/* The rank of the ring at the same place, a number of groups further; of a single group, whose
 * context-parallel ranks have different shards, that number of ranks further. */
static int neighbour(const struct dt_training *t, int groups)
{
    const int size = dt_comm_size(ring(t)), cp_size = t->mesh.data.cp_size;
    const int distance = size > cp_size ? cp_size : 1;
    return (dt_comm_rank(ring(t)) + size + groups * distance) % size;
}

static void release_values(struct dt_shard_copies *c)
{
    for (int i = 0; i < 2; i++) {
        free(c->own[i].values);
        free(c->other[i].values);
    }
    dt_state_shard_release(&c->own_shard);
    dt_state_shard_release(&c->other_shard);
    dt_bulk_release(&c->messages);
}

void dt_shard_copies_release(struct dt_shard_copies *c)
{
    release_values(c);
    *c = (struct dt_shard_copies){0};
}

/* Sends bytes to the next rank and receives others from the rank before. */
static int pass(struct dt_training *t, void *own, size_t bytes, void *other, size_t other_bytes,
                struct dt_error *err)
{
    const struct dt_shard_copies *c = &t->copies;
    struct dt_message *received = dt_comm_receive(ring(t), c->before, 0, other, other_bytes);
    struct dt_message *sent = dt_comm_send(ring(t), c->next, 0, own, bytes);
    DT_TRY(dt_comm_await(ring(t), sent, err));
    return dt_comm_await(ring(t), received, err);
}

/* Tells the next rank which shard this rank has, and where its values are in the whole state. */
static int pass_runs(struct dt_training *t, struct dt_error *err)
{
    struct dt_state_shard *own = &t->copies.own_shard, *other = &t->copies.other_shard;
    int64_t counts[4] = {own->run_count, own->count, t->copies.numbers.own, own->all_have},
            others[4];
    DT_TRY(pass(t, counts, sizeof counts, others, sizeof others, err));
    other->run_count = others[0];
    other->count = others[1];
    t->copies.numbers.other = (int)others[2];
    other->all_have = others[3];
    other->runs = dt_alloc((size_t)other->run_count + 1, sizeof *other->runs);
    return pass(t, own->runs, (size_t)own->run_count * sizeof *own->runs, other->runs,
                (size_t)other->run_count * sizeof *other->runs, err);
}

void dt_shard_copies_begin(struct dt_training *t)
{
    struct dt_shard_copies *c = &t->copies;
    const long step = t->progress.step;
    struct dt_shard_copy *own = &c->own[step % 2], *other = &c->other[step % 2];
    if (c->generation == 0)
        return;
    own->step = step;
    own->progress = t->progress;
    own->report = t->report;
    dt_state_shard_take(&c->own_shard, own->values, &t->state);
    if (c->replicated)
        return;
    other->step = -1;
    c->last = step;
    c->stage = DT_COPIES_TAKEN;
}

static void post(struct dt_training *t, bool sends, int other, const struct dt_state_shard *shard,
                 float *values)
{
    struct dt_bulk *b = &t->copies.messages;
    const size_t bytes = (size_t)(shard->count - shard->all_have) * sizeof *values;
    if (sends)
        dt_bulk_send(b, ring(t), other, CHANNEL, values + shard->all_have, bytes);
    else
        dt_bulk_receive(b, ring(t), other, CHANNEL, values + shard->all_have, bytes);
}

void dt_shard_copies_send(struct dt_training *t)
{
    struct dt_shard_copies *c = &t->copies;
    if (c->stage != DT_COPIES_TAKEN)
        return;
    post(t, false, c->before, &c->other_shard, c->other[c->last % 2].values);
    post(t, true, c->next, &c->own_shard, c->own[c->last % 2].values);
    c->stage = DT_COPIES_SENT;
}

int dt_shard_copies_wait(struct dt_training *t, struct dt_error *err)
{
    struct dt_shard_copies *c = &t->copies;
    struct dt_shard_copy *other = &c->other[c->last % 2];
    if (c->stage == DT_COPIES_EXCHANGED)
        return 0;
    dt_shard_copies_send(t);
    DT_TRY(dt_bulk_await(&c->messages, ring(t), err));
    if (c->other_shard.all_have > 0)
        DT_TRY(dt_parameter_gather_wait(&t->state.gather, err));
    dt_state_shard_take_held(&c->other_shard, other->values, &t->state);
    other->step = c->last;
    c->stage = DT_COPIES_EXCHANGED;
    return 0;
}

static bool has_copies(const struct dt_training *t)
{
    return t->members && dt_elastic_is_sharded(t);
}

static size_t values_of(int64_t count)
{
    return (size_t)count + 1; /* a shard may be empty */
}

int dt_shard_copies_plan(struct dt_training *t, size_t *bytes, struct dt_error *err)
{
    const bool replicated = t->state.dp.zero_stage == 0;
    *bytes = 0;
    if (!has_copies(t))
        return 0;
    int64_t *counts = dt_alloc((size_t)dt_comm_size(ring(t)), sizeof *counts);
    struct dt_state_shard own = dt_state_shard_of(&t->state, replicated);
    counts[dt_comm_rank(ring(t))] = own.count;
    int rc = dt_comm_share(ring(t), counts, sizeof *counts, err);
    const int64_t other = replicated ? 0 : counts[neighbour(t, -1)];
    *bytes = 2 * (values_of(own.count) + values_of(other)) * sizeof(float);
    dt_state_shard_release(&own);
    free(counts);
    return rc;
}

/* With ZeRO each rank has another shard, otherwise each rank of a data-parallel group. */
static struct dt_shard_numbers number_shards(const struct dt_training *t)
{
    const struct dt_model_part *p = &t->mesh.part;
    if (t->state.dp.zero_stage == 0)
        return (struct dt_shard_numbers){p->stage * p->tp_size + p->tp_rank, -1,
                                         p->stages * p->tp_size};
    return (struct dt_shard_numbers){dt_comm_rank(t->comm), -1, dt_comm_size(t->comm)};
}

int dt_shard_copies_open(struct dt_training *t, struct dt_error *err)
{
    struct dt_shard_copies *c = &t->copies;
    dt_shard_copies_release(c);
    if (!has_copies(t))
        return 0;
    c->replicated = t->state.dp.zero_stage == 0;
    c->next = neighbour(t, 1);
    c->before = neighbour(t, -1);
    c->numbers = number_shards(t);
    c->own_shard = dt_state_shard_of(&t->state, c->replicated);
    if (!c->replicated)
        DT_TRY(pass_runs(t, err));
    for (int i = 0; i < 2; i++) {
        c->own[i].step = c->other[i].step = -1;
        c->own[i].values = dt_alloc(values_of(c->own_shard.count), sizeof(float));
        c->other[i].values = dt_alloc(values_of(c->other_shard.count), sizeof(float));
    }
    c->generation = dt_membership_seat(t->members)->generation;
    dt_shard_copies_begin(t);
    DT_TRY(dt_shard_copies_wait(t, err));
    return dt_comm_barrier(t->comm, err);
}

/* --- putting shards together ------------------------------------------------------------------ */

/* The rank that has this shard of that generation and step; -1: none. *other: as a copy of the rank
 * before. */
static int find_holder(const struct dt_shard_standing *all, int size, long generation, int shard,
                       long step, bool *other)
{
    for (int pass_of = 0; pass_of < 2; pass_of++)
        for (int r = 0; r < size; r++) {
            const struct dt_shard_standing *s = &all[r];
            const long *steps = pass_of == 0 ? s->own : s->other;
            const int has = pass_of == 0 ? s->numbers.own : s->numbers.other;
            *other = pass_of == 1;
            if (s->generation == generation && has == shard &&
                (steps[0] == step || steps[1] == step))
                return r;
        }
    return -1;
}

struct dt_shard_standing dt_shard_copies_standing(const struct dt_shard_copies *c)
{
    struct dt_shard_standing s = {.generation = c->generation, .numbers = c->numbers};
    for (int i = 0; i < 2; i++) {
        s.own[i] = c->generation > 0 ? c->own[i].step : -1;
        s.updated[i] = s.own[i] > 0 && c->own[i].report.step == s.own[i];
        s.other[i] = c->generation > 0 ? c->other[i].step : -1;
    }
    return s;
}

/* Whether all shards of a step are here. */
static bool is_whole(const struct dt_shard_standing *all, int size,
                     const struct dt_shard_standing *newest, long step)
{
    bool other, whole = step >= 0;
    for (int shard = 0; whole && shard < newest->numbers.count; shard++)
        whole = find_holder(all, size, newest->generation, shard, step, &other) >= 0;
    return whole;
}

long dt_shard_copies_newest(const struct dt_shard_standing *all, int size, long *generation,
                            int *shards)
{
    const struct dt_shard_standing *newest = &all[0];
    long found = -1;
    for (int r = 1; r < size; r++)
        newest = all[r].generation > newest->generation ? &all[r] : newest;
    *generation = newest->generation;
    *shards = newest->numbers.count;
    for (int r = 0; r < size && newest->generation > 0; r++)
        for (int i = 0; i < 2 && all[r].generation == newest->generation; i++)
            if (all[r].own[i] > found && is_whole(all, size, newest, all[r].own[i]))
                found = all[r].own[i];
    return found;
}

static int broadcast(struct dt_training *t, void *data, size_t bytes, int root,
                     struct dt_error *err)
{
    for (size_t at = 0; at < bytes; at += DT_TRANSFER_MOST) {
        size_t n = bytes - at < DT_TRANSFER_MOST ? bytes - at : DT_TRANSFER_MOST;
        DT_TRY(dt_comm_wait(t->self, dt_comm_broadcast(t->self, (char *)data + at, n, root), err));
    }
    return 0;
}

static int gather_shard(struct dt_training *t, int holder, bool other, long step,
                        struct dt_error *err)
{
    struct dt_shard_copies *c = &t->copies;
    const bool own = dt_comm_rank(t->self) == holder;
    struct dt_state_shard shard =
        own ? (other ? c->other_shard : c->own_shard) : (struct dt_state_shard){0};
    int64_t counts[2] = {shard.run_count, shard.count};
    DT_TRY(broadcast(t, counts, sizeof counts, holder, err));
    float *values = own ? (other ? c->other : c->own)[step % 2].values
                        : dt_alloc((size_t)counts[1] + 1, sizeof *values);
    if (!own)
        shard = (struct dt_state_shard){dt_alloc((size_t)counts[0] + 1, sizeof *shard.runs),
                                        counts[0], counts[1]};
    int rc = broadcast(t, shard.runs, (size_t)counts[0] * sizeof *shard.runs, holder, err);
    rc = rc < 0 ? rc : broadcast(t, values, (size_t)counts[1] * sizeof *values, holder, err);
    if (rc == 0 && !dt_elastic_is_spare(t))
        dt_state_shard_put(&shard, values, &t->copy);
    if (!own) {
        free(shard.runs);
        free(values);
    }
    return rc;
}

int dt_shard_copies_gather(struct dt_training *t, const struct dt_shard_standing *all, long step,
                           struct dt_error *err)
{
    const int size = dt_comm_size(t->self);
    long generation;
    int shards;
    bool other;
    dt_shard_copies_newest(all, size, &generation, &shards);
    if (!dt_elastic_is_spare(t))
        dt_state_copy_allocate(&t->copy, &t->state);
    for (int shard = 0; shard < shards; shard++) {
        int holder = find_holder(all, size, generation, shard, step, &other);
        DT_TRY(gather_shard(t, holder, other, step, err));
    }
    return 0;
}
