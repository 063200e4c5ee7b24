/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "plan/simulation-internal.h"

/* State of a group: everything that determines its future, with times relative to now. */
struct state {
    double *numbers;
    size_t count, capacity;
};

struct dt_rounds {
    struct dt_actor *actors; /* of the group; the first is the leader */
    long count;
    struct dt_simulation_queue *messages; /* to their model chunks */
    long message_count;
    struct dt_simulation_queue *collectives; /* of their stages; NULL if rounds have none */
    double *free;                            /* when shared devices become free */
    long device_count;
    int64_t next;           /* leader's position of the next check; -1: none */
    struct state now, kept; /* Brent's cycle detection: kept is compared with now */
    double kept_at;
    struct dt_account *kept_accounts;
    int64_t kept_position, checks, limit; /* checks so far, and at which kept is replaced */
};

static struct dt_pipeline_round round_of(const struct dt_simulation *s, long stage)
{
    return dt_pipeline_round(&s->layout->pipeline, (int)stage, s->layout->batches);
}

/* --- states --------------------------------------------------------------------------------- */

static void put(struct state *s, double x)
{
    DT_GROW(s->numbers, s->count, s->capacity);
    s->numbers[s->count++] = x;
}

/* Past times count as now: they no longer affect anything. */
static void put_time(struct state *s, double when, double now)
{
    put(s, when == DT_NOT_YET ? DT_NOT_YET : fmax(when - now, 0));
}

static void put_queue(struct state *s, const struct dt_simulation_queue *l, double now)
{
    put(s, (double)(l->end - l->first));
    for (long i = l->first; i < l->end; i++) {
        const struct dt_simulation_event *h = &l->items[i & (l->capacity - 1)];
        put(s, (double)h->arrived);
        put(s, (double)h->left);
        put_time(s, h->ready, now);
        put_time(s, h->done, now);
    }
}

/* collectives: of its stage, or NULL. */
static void put_actor(struct state *s, const struct dt_actor *a, const struct dt_actor *leader,
                      const struct dt_simulation_queue *collectives)
{
    double now = leader->due;
    put(s, (double)(a->position - leader->position));
    put(s, (double)a->segment);
    put(s, a->now - now);
    put(s, a->queued || a == leader ? a->due - now : DT_NOT_YET);
    put_time(s, a->inside, now);
    put_time(s, a->between, now);
    put_time(s, a->sent, now);
    put(s, a->interference);
    put(s, collectives ? (double)(a->joined - collectives->first) : 0);
    put(s, (double)(a->gathered < 0 ? 0 : a->joined - a->gathered));
    put(s, (double)(a->reduced < 0 ? 0 : a->joined - a->reduced));
    put(s, (double)a->held);
}

/* The event that an actor waits for follows from its position. */
static void describe(struct state *s, const struct dt_simulation *sim, const struct dt_rounds *r)
{
    s->count = 0;
    for (long i = 0; i < r->count; i++)
        put_actor(s, &r->actors[i], r->actors,
                  r->collectives ? &r->collectives[r->actors[i].stage] : NULL);
    for (long i = 0; i < r->message_count; i++)
        put_queue(s, &r->messages[i], r->actors->due);
    for (long i = 0; r->collectives && i < sim->layout->pp; i++)
        put_queue(s, &r->collectives[i], r->actors->due);
    for (long i = 0; i < r->device_count; i++)
        put_time(s, r->free[i], r->actors->due);
}

static bool is_kept(const struct dt_rounds *r)
{
    return r->now.count == r->kept.count &&
           memcmp(r->now.numbers, r->kept.numbers, r->now.count * sizeof *r->now.numbers) == 0;
}

static void keep(struct dt_rounds *r)
{
    struct state old = r->kept;
    r->kept = r->now;
    r->now = old;
    r->kept_at = r->actors->due;
    r->kept_position = r->actors->position;
    for (long i = 0; i < r->count; i++)
        r->kept_accounts[i] = r->actors[i].account;
    r->limit *= 2;
}

/* --- skipping ------------------------------------------------------------------------------- */

/* Whole periods before the first actor of the group leaves its rounds. */
static int64_t periods_left(const struct dt_simulation *s, const struct dt_rounds *r,
                            int64_t actions)
{
    int64_t least = INT64_MAX;
    for (long i = 0; i < r->count; i++) {
        int64_t end = round_of(s, r->actors[i].stage).end;
        int64_t left = (end - r->actors[i].position) / actions;
        least = left < least ? left : least;
    }
    return least;
}

static void add_account(struct dt_account *a, const struct dt_account *before, double times)
{
    a->computing += times * (a->computing - before->computing);
    a->tensor += times * (a->tensor - before->tensor);
    a->pipeline_wait += times * (a->pipeline_wait - before->pipeline_wait);
    a->data_wait += times * (a->data_wait - before->data_wait);
    a->known += times * (a->events - before->events);
    a->events += times * (a->events - before->events);
}

static void shift_queue(struct dt_simulation_queue *l, double by)
{
    for (long i = l->first; i < l->end; i++) {
        struct dt_simulation_event *h = &l->items[i & (l->capacity - 1)];
        h->ready += by;
        h->done += h->done == DT_NOT_YET ? 0 : by;
    }
}

/* The current action keeps its micro-batch index: it is not the last one, before or after. */
static void shift_actor(struct dt_actor *a, double by, int64_t actions)
{
    a->position += actions;
    a->now += by;
    a->due += by;
    a->inside += by;
    a->between += by;
    a->sent += by;
}

static void skip_periods(struct dt_simulation *s, struct dt_rounds *r)
{
    int64_t actions = r->actors->position - r->kept_position, times = periods_left(s, r, actions);
    double by = (double)times * (r->actors->due - r->kept_at);
    for (long i = 0; i < r->count; i++) {
        add_account(&r->actors[i].account, &r->kept_accounts[i], (double)times);
        shift_actor(&r->actors[i], by, times * actions);
    }
    for (long i = 0; i < r->message_count; i++)
        shift_queue(&r->messages[i], by);
    for (long i = 0; r->collectives && i < s->layout->pp; i++)
        shift_queue(&r->collectives[i], by);
    for (long i = 0; i < r->device_count; i++)
        r->free[i] += by;
    r->next = -1;
}

/* While the leader has a round left, no actor is past its rounds, because the last micro-batch has
 * not been sent. The state of an actor before its rounds does not recur: its activations in flight
 * or its messages still grow. */
void dt_rounds_check(struct dt_simulation *s, struct dt_actor *a)
{
    struct dt_rounds *r = s->groups > 0 ? &s->rounds[s->groups > 1 ? a->dp_rank : 0] : NULL;
    if (r == NULL || a != r->actors || r->next < 0 || a->position < r->next)
        return;
    struct dt_pipeline_round round = round_of(s, a->stage);
    r->next = a->position + round.positions <= round.end ? a->position + round.positions : -1;
    if (r->next < 0)
        return;
    describe(&r->now, s, r);
    if (is_kept(r))
        skip_periods(s, r);
    else if (++r->checks == r->limit)
        keep(r);
}

/* --- set-up --------------------------------------------------------------------------------- */

/* Data-parallel ranks do not communicate before the last micro-batch, unless each micro-batch
 * all-gathers weights or reduces gradients. */
static bool are_independent(const struct dt_simulation *s)
{
    return s->layout->zero_stage < 3 && s->costs->reductions <= 1;
}

void dt_rounds_init(struct dt_simulation *s)
{
    bool alone = are_independent(s);
    long dp_size = alone ? 1 : s->dp_size;
    if (s->timeline)
        return; /* a timeline shows every round */
    s->groups = s->dp_size / dp_size;
    s->rounds = dt_alloc((size_t)s->groups, sizeof *s->rounds);
    for (long i = 0; i < s->groups; i++) {
        struct dt_rounds *r = &s->rounds[i];
        *r = (struct dt_rounds){
            .actors = &s->actors[i * s->layout->pp],
            .count = dp_size * s->layout->pp,
            .messages = &s->messages[2 * i * s->chunks],
            .message_count = 2 * dp_size * s->chunks,
            .collectives = alone ? NULL : s->collectives,
            .free = &s->free[i * s->shared],
            .device_count = dp_size * s->shared,
            .next = round_of(s, 0).first + 1,
            .limit = 1,
        };
        r->kept_accounts = dt_alloc((size_t)r->count, sizeof *r->kept_accounts);
    }
}

void dt_rounds_release(struct dt_simulation *s)
{
    for (long i = 0; i < s->groups; i++) {
        free(s->rounds[i].now.numbers);
        free(s->rounds[i].kept.numbers);
        free(s->rounds[i].kept_accounts);
    }
    free(s->rounds);
}
