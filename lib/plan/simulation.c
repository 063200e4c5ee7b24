/* SPDX-License-Identifier: MIT */
#include "plan/simulation-internal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/rng.h"

#define LOOK_EVERY 65536 /* events between looks at the clock */

/* --- the queue: actors in the order of their time ------------------------------------------- */

static bool earlier(struct dt_rank_batches a, struct dt_rank_batches b)
{
    return a.due < b.due || (a.due == b.due && a.actor < b.actor);
}

static void push(struct dt_simulation *s, struct dt_actor *a, double due)
{
    const struct dt_rank_batches turn = {due, a};
    long i = s->waiting++;
    a->due = due;
    a->queued = true;
    for (; i > 0 && earlier(turn, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = turn;
}

/* Puts a turn in the place of the first, or behind those that are earlier. */
static void sink(struct dt_simulation *s, struct dt_rank_batches turn)
{
    long i = 0;
    for (long child = 1; child < s->waiting; child = 2 * i + 1) {
        if (child + 1 < s->waiting && earlier(s->heap[child + 1], s->heap[child]))
            child++;
        if (!earlier(s->heap[child], turn))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = turn;
}

static struct dt_actor *pop(struct dt_simulation *s)
{
    struct dt_actor *first = s->heap->actor;
    for (; s->heap->due < first->due; first = s->heap->actor) /* it was put off meanwhile */
        sink(s, (struct dt_rank_batches){first->due, first});
    sink(s, s->heap[--s->waiting]);
    first->queued = false;
    return first;
}

/* --- lines ---------------------------------------------------------------------------------- */

static struct dt_happening *item(const struct dt_simulation_line *l, long number)
{
    return &l->items[number & (l->capacity - 1)];
}

static void grow(struct dt_simulation_line *l)
{
    struct dt_simulation_line larger = {.first = l->first, .end = l->end};
    larger.capacity = l->capacity > 0 ? 2 * l->capacity : 4;
    larger.items = dt_alloc((size_t)larger.capacity, sizeof *larger.items);
    for (long i = l->first; i < l->end; i++)
        *item(&larger, i) = *item(l, i);
    free(l->items);
    *l = larger;
}

static struct dt_happening *append(struct dt_simulation_line *l, long waiters)
{
    if (l->end - l->first == l->capacity)
        grow(l);
    struct dt_happening *h = item(l, l->end++);
    *h = (struct dt_happening){.done = DT_NOT_YET, .left = waiters};
    return h;
}

/* One actor less will wait for it. */
static void leave(struct dt_simulation_line *l, long number)
{
    item(l, number)->left--;
    while (l->first < l->end && item(l, l->first)->left == 0)
        l->first++;
}

/* Whether it is known when that is done; if so the actor has waited for it. */
static bool await(struct dt_actor *a, const struct dt_simulation_line *l, long number,
                  double *waited)
{
    double when = number < l->end ? item(l, number)->done : DT_NOT_YET;
    a->awaited = when == DT_NOT_YET ? l : NULL;
    a->number = number;
    if (a->awaited)
        return false;
    if (when > a->now) {
        *waited += when - a->now;
        a->now = when;
    }
    return true;
}

static void wake(struct dt_simulation *s, struct dt_actor *a, const struct dt_simulation_line *l,
                 long number)
{
    if (a->awaited == l && a->number == number) {
        a->awaited = NULL;
        push(s, a, fmax(a->now, item(l, number)->done));
    }
}

/* --- transfers ------------------------------------------------------------------------------ */

/* In whole quanta. */
static double whole(const struct dt_simulation *s, double seconds)
{
    return rint(seconds / s->quantum) * s->quantum;
}

static double transfer_seconds(const struct dt_simulation *s, const struct dt_transfer_cost *t)
{
    return whole(s, dt_transfer_cost_seconds(t, s->cluster));
}

/* Puts a transfer at the end of an actor's links; when it will be through. */
static double transfer(const struct dt_simulation *s, struct dt_actor *a,
                       const struct dt_transfer_cost *t, double ready)
{
    const struct dt_transfer_cost inside = {.inside = t->inside}, between = {.between = t->between};
    if (t->inside > 0)
        a->inside = fmax(a->inside, ready) + transfer_seconds(s, &inside);
    if (t->between > 0)
        a->between = fmax(a->between, ready) + transfer_seconds(s, &between);
    double through = fmax(t->inside > 0 ? a->inside : ready, t->between > 0 ? a->between : ready);
    return through + whole(s, t->latency);
}

/* A message goes beside the collectives, of which each gets half of the link while both run. */
static double deliver(const struct dt_simulation *s, struct dt_actor *a,
                      const struct dt_transfer_cost *t)
{
    double *link = t->inside > 0 ? &a->inside : &a->between;
    double latency = whole(s, t->latency), seconds = transfer_seconds(s, t) - latency;
    double start = fmax(a->sent, a->now), shared = fmin(fmax(*link - start, 0), seconds);
    if (*link > start)
        *link += shared;
    a->sent = start + seconds + shared;
    return a->sent + latency;
}

static struct dt_actor *actor_of(const struct dt_simulation *s, long dp_rank, long stage)
{
    return &s->actors[dp_rank * s->layout->pp + stage];
}

/* The replicas' links are busy until all of them are through. */
static void run_collective(struct dt_simulation *s, long number, long stage,
                           const struct dt_transfer_cost *t, const char *name)
{
    struct dt_simulation_line *line = &s->collectives[stage];
    struct dt_happening *h = item(line, number);
    double seconds = transfer_seconds(s, t);
    for (long r = 0; r < s->dp_size; r++)
        h->done = fmax(h->done, transfer(s, actor_of(s, r, stage), t, h->ready));
    for (long r = 0; r < s->dp_size; r++) {
        struct dt_actor *a = actor_of(s, r, stage);
        if (t->inside > 0)
            a->inside = h->done;
        if (t->between > 0)
            a->between = h->done;
        a->debt += whole(s, s->cluster->link.interference * seconds);
        wake(s, a, line, number);
    }
    const struct dt_timeline_span span = {name,  (int)stage,        DT_LANE_DATA, -1,
                                          stage, h->done - seconds, h->done};
    dt_timeline_add(s->timeline, &span);
}

/* The actor's next collective, its number: it runs when all replicas have come to it. */
static long join(struct dt_simulation *s, struct dt_actor *a, const struct dt_transfer_cost *t,
                 const char *name)
{
    struct dt_simulation_line *line = &s->collectives[a->stage];
    long number = a->joined++;
    struct dt_happening *h = number < line->end ? item(line, number) : append(line, s->dp_size);
    h->ready = fmax(h->ready, a->now);
    if (++h->arrived == s->dp_size)
        run_collective(s, number, a->stage, t, name);
    return number;
}

/* Waits for a collective that the actor has joined, or for none; then has forgotten it. */
static bool await_joined(struct dt_simulation *s, struct dt_actor *a, long *number)
{
    struct dt_simulation_line *line = &s->collectives[a->stage];
    if (*number < 0)
        return true;
    if (!await(a, line, *number, &a->account.data_wait))
        return false;
    leave(line, *number);
    *number = -1;
    return true;
}

/* Of an actor's collectives of one kind only the last is waited for. */
static void join_last(struct dt_simulation *s, struct dt_actor *a, const struct dt_transfer_cost *t,
                      const char *name)
{
    long before = a->reduced;
    a->reduced = join(s, a, t, name);
    if (before >= 0)
        leave(&s->collectives[a->stage], before);
}

/* Activations, or gradients, to a run. */
static struct dt_simulation_line *messages_to(const struct dt_simulation *s, long dp_rank,
                                              bool backward, long run)
{
    return &s->messages[2 * (dp_rank * s->runs + run) + backward];
}

static long node_of(const struct dt_simulation *s, long dp_rank, long stage)
{
    const struct dt_plan_layout *l = s->layout;
    return ((stage * l->dp + dp_rank) * l->cp * l->tp) / dt_cluster_node_ranks(s->cluster);
}

static void advance(const struct dt_simulation *s, struct dt_actor *a)
{
    const struct dt_plan_layout *l = s->layout;
    a->acts = dt_pipeline_next(&l->pipeline, (int)a->stage, l->batches, &a->place, &a->action);
}

/* To the run before or behind. */
static void send(struct dt_simulation *s, struct dt_actor *a, const struct dt_action *action)
{
    bool backward = action->kind == DT_ACTION_SEND_GRADIENT;
    long to = action->run + (backward ? -1 : 1);
    struct dt_simulation_line *line = messages_to(s, a->dp_rank, backward, to);
    struct dt_happening *message = append(line, 1);
    struct dt_actor *receiver = actor_of(s, a->dp_rank, to % s->layout->pp);
    bool inside = node_of(s, a->dp_rank, a->stage) == node_of(s, a->dp_rank, receiver->stage);
    const struct dt_transfer_cost t = {
        .inside = inside ? s->costs->send : 0,
        .between = inside ? 0 : s->costs->send,
        .latency =
            (inside ? s->cluster->link.inside_latency : s->cluster->link.between_latency) * 1e-6};
    message->done = deliver(s, a, &t);
    wake(s, receiver, line, line->end - 1);
    const struct dt_timeline_span span = {backward ? "send gradients" : "send activations",
                                          (int)a->stage,
                                          DT_LANE_PIPELINE,
                                          action->batch,
                                          action->run,
                                          a->now,
                                          message->done};
    if (a->dp_rank == 0)
        dt_timeline_add(s->timeline, &span);
    advance(s, a);
}

static bool receive(struct dt_simulation *s, struct dt_actor *a, const struct dt_action *action)
{
    bool backward = action->kind == DT_ACTION_RECEIVE_GRADIENT;
    struct dt_simulation_line *line = messages_to(s, a->dp_rank, backward, action->run);
    if (!await(a, line, line->first, &a->account.pipeline_wait))
        return false;
    leave(line, line->first);
    advance(s, a);
    return true;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Of those that a replica's stages share, the one that is free first. */
static double *first_free(const struct dt_simulation *s, long dp_rank)
{
    double *devices = &s->free[dp_rank * s->shared], *first = devices;
    for (long i = 1; i < s->shared; i++)
        first = devices[i] < *first ? &devices[i] : first;
    return first;
}

/* Computes so many seconds, on the actor's own device or when one is free. */
static void compute_for(const struct dt_simulation *s, struct dt_actor *a, double seconds)
{
    double *device = s->shared > 0 ? first_free(s, a->dp_rank) : &a->now;
    a->account.pipeline_wait += fmax(*device - a->now, 0);
    a->now = fmax(*device, a->now) + seconds;
    *device = a->now;
}

/* --- actions: each returns whether the actor goes on, and is asked again if it was blocked -- */

static bool gathers(const struct dt_simulation *s)
{
    return s->layout->zero_stage == 3 && dt_layout_owners(s->layout) > 1;
}

/* What of a layer's gradients is reduced behind the action; NULL: nothing. */
static const struct dt_transfer_cost *reduction(const struct dt_simulation *s,
                                                const struct dt_action *action)
{
    const struct dt_chunk_costs *k = &s->costs->chunks[action->run];
    if (action->kind != DT_ACTION_BACKWARD || dt_layout_copies(s->layout) == 1)
        return NULL;
    if (action->batch == s->layout->batches - 1)
        return &k->reduce;
    return s->costs->reductions > 1 ? &k->round : NULL;
}

/* Whether no pass comes behind the one at hand. */
static bool is_last_pass(const struct dt_simulation *s, const struct dt_action *action)
{
    return action->kind == DT_ACTION_BACKWARD && action->run < s->layout->pp &&
           action->batch == s->layout->batches - 1;
}

/* Weights of the layer at work are there, and those of the next are on their way. */
static bool gather(struct dt_simulation *s, struct dt_actor *a, const struct dt_chunk_costs *k)
{
    if (!gathers(s))
        return true;
    if (a->gathered < 0)
        a->gathered = join(s, a, &k->gather, "gather");
    if (!await_joined(s, a, &a->gathered))
        return false;
    if (a->segment < k->layers - 1 || !is_last_pass(s, &a->action))
        a->gathered = join(s, a, &k->gather, "gather");
    return true;
}

static void hold(struct dt_actor *a, bool backward)
{
    a->held += backward ? -1 : 1;
    a->most_held = a->held > a->most_held ? a->held : a->most_held;
}

/* One layer of a pass, or all of them where nothing happens between. */
static bool compute(struct dt_simulation *s, struct dt_actor *a, const struct dt_action *action)
{
    const struct dt_chunk_costs *k = &s->costs->chunks[action->run];
    bool backward = action->kind == DT_ACTION_BACKWARD;
    const struct dt_transfer_cost *reduced = reduction(s, action);
    long segments = gathers(s) || reduced ? k->layers : 1;
    if (!gather(s, a, k))
        return false;
    double part = (double)segments;
    double computing = whole(s, (backward ? k->backward : k->forward) / part * a->slow);
    double tensor = whole(s, (backward ? k->backward_tensor : k->forward_tensor) / part);
    compute_for(s, a, computing + tensor + a->debt);
    const struct dt_timeline_span span = {backward ? "backward" : "forward",
                                          (int)a->stage,
                                          DT_LANE_COMPUTE,
                                          action->batch,
                                          action->run,
                                          a->now - (computing + tensor + a->debt),
                                          a->now};
    a->account.computing += computing + a->debt;
    a->account.tensor += tensor;
    a->debt = 0;
    if (a->dp_rank == 0)
        dt_timeline_add(s->timeline, &span);
    if (reduced)
        join_last(s, a, reduced, "reduce");
    if (++a->segment < segments)
        return true;
    hold(a, backward);
    a->segment = 0;
    advance(s, a);
    return true;
}

/* The optimizer, when all gradients are there; its ranks then share what they updated. */
static bool update(struct dt_simulation *s, struct dt_actor *a)
{
    bool shares = s->costs->share.inside + s->costs->share.between > 0;
    double seconds = whole(s, s->costs->update * a->slow);
    if (!await_joined(s, a, &a->reduced))
        return false;
    a->ended = a->updated;
    if (a->ended)
        return true;
    compute_for(s, a, seconds);
    const struct dt_timeline_span span = {"update", (int)a->stage,    DT_LANE_COMPUTE, -1,
                                          a->stage, a->now - seconds, a->now};
    a->account.update = seconds;
    a->updated = true;
    if (a->dp_rank == 0)
        dt_timeline_add(s->timeline, &span);
    if (shares)
        join_last(s, a, &s->costs->share, "share");
    return true;
}

static bool act(struct dt_simulation *s, struct dt_actor *a)
{
    const struct dt_action *action = &a->action;
    if (!a->acts)
        return update(s, a);
    if (action->kind == DT_ACTION_FORWARD || action->kind == DT_ACTION_BACKWARD)
        return compute(s, a, action);
    if (action->kind == DT_ACTION_RECEIVE_INPUT || action->kind == DT_ACTION_RECEIVE_GRADIENT)
        return receive(s, a, action);
    send(s, a, action);
    return true;
}

/* What the first stage has done of its step. */
static void show(struct dt_simulation *s)
{
    const struct dt_actor *a = s->actors;
    double batches = (double)s->layout->batches;
    dt_progress_show(s->progress, "simulating a step: micro-batch %lld of %.0f",
                     (long long)a->action.batch, batches);
}

static void run(struct dt_simulation *s)
{
    for (uint64_t i = 1; s->waiting > 0; i++) {
        struct dt_actor *a = pop(s);
        dt_rounds_look(s, a);
        a->account.events++;
        if (act(s, a) && !a->ended)
            push(s, a, a->now);
        if (s->progress && i % LOOK_EVERY == 0 && dt_progress_due(s->progress))
            show(s);
    }
}

/* --- set-up and result ---------------------------------------------------------------------- */

double dt_simulation_slowness(const struct dt_simulation_options *o, long first, long devices)
{
    double worst = 0;
    for (long i = first; i < first + devices && o->spread > 0; i++) {
        double pair[2];
        dt_rng_normal_pair(dt_random(dt_random_key(o->seed, 'S', (uint64_t)i), 0, 0), pair);
        worst = fmax(worst, fabs(pair[0]));
    }
    return 1 + o->spread * worst;
}

static double slowness_of(const struct dt_simulation *s, const struct dt_simulation_options *o,
                          const struct dt_actor *a)
{
    long devices = s->layout->cp * s->layout->tp;
    return dt_simulation_slowness(o, (a->stage * s->layout->dp + a->dp_rank) * devices, devices);
}

/* Seconds that no step takes: as if everything were done one after the other. */
static double longest(const struct dt_simulation *s, double slow)
{
    const struct dt_transfer_cost sent = {s->costs->send, s->costs->send, 0};
    const struct dt_cluster *c = s->cluster;
    double latency = (c->link.inside_latency + c->link.between_latency) * 1e-6, sum = 0;
    for (long i = 0; i < s->runs; i++) {
        const struct dt_chunk_costs *k = &s->costs->chunks[i];
        double collectives = dt_transfer_cost_seconds(&k->gather, c) +
                             dt_transfer_cost_seconds(&k->round, c) +
                             dt_transfer_cost_seconds(&k->reduce, c);
        sum += (k->forward + k->backward) * slow + k->forward_tensor + k->backward_tensor +
               (2 + c->link.interference) * 2 * (double)k->layers * collectives +
               4 * (dt_transfer_cost_seconds(&sent, c) + latency);
    }
    return sum * (double)s->layout->batches + s->costs->update * slow +
           dt_transfer_cost_seconds(&s->costs->share, c);
}

static double quantum_for(const struct dt_simulation *s, double slow)
{
    int exponent;
    frexp(longest(s, slow), &exponent);
    return ldexp(1, exponent - DBL_MANT_DIG + 1);
}

/* A device's ranks are of all stages alike. Returns by how much slower one is that computes alone:
 * more than 1 where a stage shares its devices with other replicas. */
static double share_devices(struct dt_simulation *s)
{
    long pp = s->layout->pp, ranks = s->cluster->device.ranks;
    long devices = (pp + ranks - 1) / ranks;
    s->shared = ranks > 1 ? devices : 0;
    return (double)(devices * ranks) / (double)pp;
}

static void init(struct dt_simulation *s, const struct dt_simulation_options *o)
{
    const struct dt_plan_layout *l = s->layout;
    double slowest = 1;
    double alone = share_devices(s);
    s->dp_size = o->spread > 0 ? l->dp : 1;
    s->runs = dt_layout_runs(l);
    s->actors = dt_alloc((size_t)(s->dp_size * l->pp), sizeof *s->actors);
    s->heap = dt_alloc((size_t)(s->dp_size * l->pp), sizeof *s->heap);
    s->free = dt_alloc((size_t)(s->dp_size * s->shared), sizeof *s->free);
    s->messages = dt_alloc((size_t)(2 * s->dp_size * s->runs), sizeof *s->messages);
    s->collectives = dt_alloc((size_t)l->pp, sizeof *s->collectives);
    for (long r = 0; r < s->dp_size; r++)
        for (long stage = 0; stage < l->pp; stage++) {
            struct dt_actor *a = actor_of(s, r, stage);
            *a = (struct dt_actor){.stage = stage, .dp_rank = r, .gathered = -1, .reduced = -1};
            a->slow = slowness_of(s, o, a) * alone;
            slowest = fmax(slowest, a->slow);
            advance(s, a);
            push(s, a, 0);
        }
    s->quantum = quantum_for(s, slowest);
    dt_rounds_init(s);
}

static void release_lines(struct dt_simulation_line *lines, long count)
{
    for (long i = 0; i < count; i++)
        free(lines[i].items);
    free(lines);
}

static void release(struct dt_simulation *s)
{
    dt_rounds_release(s);
    release_lines(s->messages, 2 * s->dp_size * s->runs);
    release_lines(s->collectives, s->layout->pp);
    free(s->actors);
    free(s->free);
    free(s->heap);
}

static void summarize(struct dt_step_simulation *r, const struct dt_simulation *s)
{
    long count = s->dp_size * s->layout->pp;
    double each = 1 / (double)count;
    *r = (struct dt_step_simulation){0};
    for (long i = 0; i < count; i++) {
        const struct dt_actor *a = &s->actors[i];
        assert(a->ended); /* none is blocked for ever */
        r->seconds = fmax(r->seconds, a->now);
        r->computing += a->account.computing * each;
        r->tensor += a->account.tensor * each;
        r->update += a->account.update * each;
        r->pipeline_wait += a->account.pipeline_wait * each;
        r->data_wait += a->account.data_wait * each;
        r->events += a->account.events;
        r->known += a->account.known;
        r->in_flight = a->most_held > r->in_flight ? a->most_held : r->in_flight;
    }
    for (long i = 0; i < count; i++) /* stages that are done wait for the others */
        r->pipeline_wait += (r->seconds - s->actors[i].now) * each;
    r->bubble = r->pipeline_wait / (r->computing + r->tensor);
}

void dt_simulation_run(struct dt_step_simulation *result, const struct dt_costs *costs,
                       const struct dt_plan_layout *layout, const struct dt_cluster *cluster,
                       const struct dt_simulation_options *options)
{
    struct dt_simulation s = {.costs = costs,
                              .layout = layout,
                              .cluster = cluster,
                              .timeline = options->timeline,
                              .progress = options->progress};
    init(&s, options);
    run(&s);
    summarize(result, &s);
    release(&s);
}
