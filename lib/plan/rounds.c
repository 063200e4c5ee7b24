/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "plan/simulation-internal.h"

/* A group's state: all numbers that decide what will happen, times counted from now. */
struct state {
    double *numbers;
    size_t count, capacity;
};

struct dt_rounds {
    struct dt_actor *actors; /* of the group; the first one leads */
    long count;
    struct dt_simulation_line *messages; /* to their runs */
    long message_count;
    struct dt_simulation_line *collectives; /* of their stages; NULL where no round has one */
    double *free;                           /* when devices are that they share */
    long device_count;
    int64_t next;           /* place of the leader at which it is looked at again; -1: never */
    struct state now, kept; /* of Brent's search for a cycle: compared, then replaced */
    double kept_at;
    struct dt_account *kept_accounts;
    int64_t kept_place, looks, limit; /* so far, and that with which it is replaced next */
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

/* What lies behind us counts as now: whoever asks for it later takes the later time. */
static void put_time(struct state *s, double when, double now)
{
    put(s, when == DT_NOT_YET ? DT_NOT_YET : fmax(when - now, 0));
}

static void put_line(struct state *s, const struct dt_simulation_line *l, double now)
{
    put(s, (double)(l->end - l->first));
    for (long i = l->first; i < l->end; i++) {
        const struct dt_happening *h = &l->items[i & (l->capacity - 1)];
        put(s, (double)h->arrived);
        put(s, (double)h->left);
        put_time(s, h->ready, now);
        put_time(s, h->done, now);
    }
}

/* collectives: of its stage, or NULL. */
static void put_actor(struct state *s, const struct dt_actor *a, const struct dt_actor *leader,
                      const struct dt_simulation_line *collectives)
{
    double now = leader->due;
    put(s, (double)(a->place - leader->place));
    put(s, (double)a->segment);
    put(s, a->now - now);
    put(s, a->queued || a == leader ? a->due - now : DT_NOT_YET);
    put_time(s, a->inside, now);
    put_time(s, a->between, now);
    put_time(s, a->sent, now);
    put(s, a->debt);
    put(s, collectives ? (double)(a->joined - collectives->first) : 0);
    put(s, (double)(a->gathered < 0 ? 0 : a->joined - a->gathered));
    put(s, (double)(a->reduced < 0 ? 0 : a->joined - a->reduced));
    put(s, (double)a->held);
}

/* What an actor waits for follows from its place. */
static void describe(struct state *s, const struct dt_simulation *sim, const struct dt_rounds *r)
{
    s->count = 0;
    for (long i = 0; i < r->count; i++)
        put_actor(s, &r->actors[i], r->actors,
                  r->collectives ? &r->collectives[r->actors[i].stage] : NULL);
    for (long i = 0; i < r->message_count; i++)
        put_line(s, &r->messages[i], r->actors->due);
    for (long i = 0; r->collectives && i < sim->layout->pp; i++)
        put_line(s, &r->collectives[i], r->actors->due);
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
    r->kept_place = r->actors->place;
    for (long i = 0; i < r->count; i++)
        r->kept_accounts[i] = r->actors[i].account;
    r->limit *= 2;
}

/* --- passing over --------------------------------------------------------------------------- */

/* Periods that every actor of the group has before it, within its rounds. */
static int64_t periods_left(const struct dt_simulation *s, const struct dt_rounds *r,
                            int64_t places)
{
    int64_t least = INT64_MAX;
    for (long i = 0; i < r->count; i++) {
        int64_t end = round_of(s, r->actors[i].stage).end;
        int64_t left = (end - r->actors[i].place) / places;
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

static void shift_line(struct dt_simulation_line *l, double by)
{
    for (long i = l->first; i < l->end; i++) {
        struct dt_happening *h = &l->items[i & (l->capacity - 1)];
        h->ready += by;
        h->done += h->done == DT_NOT_YET ? 0 : by;
    }
}

/* The action at hand keeps the number of its micro-batch, which is not the last one either way. */
static void shift_actor(struct dt_actor *a, double by, int64_t places)
{
    a->place += places;
    a->now += by;
    a->due += by;
    a->inside += by;
    a->between += by;
    a->sent += by;
}

static void pass_over(struct dt_simulation *s, struct dt_rounds *r)
{
    int64_t places = r->actors->place - r->kept_place, times = periods_left(s, r, places);
    double by = (double)times * (r->actors->due - r->kept_at);
    for (long i = 0; i < r->count; i++) {
        add_account(&r->actors[i].account, &r->kept_accounts[i], (double)times);
        shift_actor(&r->actors[i], by, times * places);
    }
    for (long i = 0; i < r->message_count; i++)
        shift_line(&r->messages[i], by);
    for (long i = 0; r->collectives && i < s->layout->pp; i++)
        shift_line(&r->collectives[i], by);
    for (long i = 0; i < r->device_count; i++)
        r->free[i] += by;
    r->next = -1;
}

/* None is beyond its rounds while the leader has one before it, and so the last micro-batch has yet
 * to be sent. One that is still before them is in no state that comes again: it will hold more, or
 * has sent less than it had when the stage behind it took as many. */
void dt_rounds_look(struct dt_simulation *s, struct dt_actor *a)
{
    struct dt_rounds *r = s->groups > 0 ? &s->rounds[s->groups > 1 ? a->dp_rank : 0] : NULL;
    if (r == NULL || a != r->actors || r->next < 0 || a->place < r->next)
        return;
    struct dt_pipeline_round round = round_of(s, a->stage);
    r->next = a->place + round.places <= round.end ? a->place + round.places : -1;
    if (r->next < 0)
        return;
    describe(&r->now, s, r);
    if (is_kept(r))
        pass_over(s, r);
    else if (++r->looks == r->limit)
        keep(r);
}

/* --- set-up --------------------------------------------------------------------------------- */

/* Replicas are alone with themselves until the last micro-batch, unless they gather weights, or
 * add up gradients, in each. */
static bool are_alone(const struct dt_simulation *s)
{
    return s->layout->zero_stage < 3 && s->costs->reductions <= 1;
}

void dt_rounds_init(struct dt_simulation *s)
{
    bool alone = are_alone(s);
    long dp_size = alone ? 1 : s->dp_size;
    if (s->timeline)
        return; /* which shows every round */
    s->groups = s->dp_size / dp_size;
    s->rounds = dt_alloc((size_t)s->groups, sizeof *s->rounds);
    for (long i = 0; i < s->groups; i++) {
        struct dt_rounds *r = &s->rounds[i];
        *r = (struct dt_rounds){
            .actors = &s->actors[i * s->layout->pp],
            .count = dp_size * s->layout->pp,
            .messages = &s->messages[2 * i * s->runs],
            .message_count = 2 * dp_size * s->runs,
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
