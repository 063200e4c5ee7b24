/* SPDX-License-Identifier: MIT */
#include "plan/simulation.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/rng.h"

#define NOT_YET (-1.0)

/* What the replicas of a stage do together. */
struct collective {
    long arrived;
    double ready, done; /* when the last came, and when it is through */
};

struct actor {
    long stage, replica;
    struct dt_action_list list; /* shared by the replicas */
    size_t next;                /* action */
    long segment;               /* of it: a layer, or all of it */
    double now, slow;
    double due;             /* when it is asked again: its place in the queue */
    double inside, between; /* when its links are through with collectives */
    double sent;            /* and with its messages */
    double debt;            /* seconds of computing that transfers have taken */
    long collectives;       /* joined so far */
    struct collective *gathered, *reduced;
    const double *awaited; /* what it is blocked on, or NULL */
    bool updated;
    double computing, tensor, update, pipeline_wait, data_wait;
    long held, most_held;
};

struct simulation {
    const struct dt_costs *costs;
    const struct dt_layout *layout;
    const struct dt_cluster *cluster;
    struct dt_timeline *timeline;
    long replicas, runs;
    struct actor *actors; /* replica by replica */
    double *sent[2];      /* when activations and gradients arrive */
    struct collective **collectives;
    struct actor **heap;
    long waiting, events;
};

/* --- the queue: actors in the order of their time ------------------------------------------- */

static bool earlier(const struct actor *a, const struct actor *b)
{
    return a->due < b->due || (a->due == b->due && a < b);
}

static void push(struct simulation *s, struct actor *a, double due)
{
    long i = s->waiting++;
    a->due = due;
    for (; i > 0 && earlier(a, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = a;
}

static struct actor *pop(struct simulation *s)
{
    struct actor *first = s->heap[0], *last = s->heap[--s->waiting];
    long i = 0;
    for (long child = 1; child < s->waiting; child = 2 * i + 1) {
        if (child + 1 < s->waiting && earlier(s->heap[child + 1], s->heap[child]))
            child++;
        if (!earlier(s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return first;
}

/* Whether the time of something is known; if so the actor has waited for it. */
static bool await(struct actor *a, const double *when, double *waited)
{
    a->awaited = *when == NOT_YET ? when : NULL;
    if (a->awaited)
        return false;
    if (*when > a->now) {
        *waited += *when - a->now;
        a->now = *when;
    }
    return true;
}

static void wake(struct simulation *s, struct actor *a, const double *when)
{
    if (a->awaited == when) {
        a->awaited = NULL;
        push(s, a, fmax(a->now, *when));
    }
}

/* --- transfers ------------------------------------------------------------------------------ */

/* Puts a transfer at the end of an actor's links; when it will be through. */
static double transfer(const struct simulation *s, struct actor *a, const struct dt_transfer *t,
                       double ready)
{
    const struct dt_transfer inside = {.inside = t->inside}, between = {.between = t->between};
    if (t->inside > 0)
        a->inside = fmax(a->inside, ready) + dt_transfer_seconds(&inside, s->cluster);
    if (t->between > 0)
        a->between = fmax(a->between, ready) + dt_transfer_seconds(&between, s->cluster);
    double through = fmax(t->inside > 0 ? a->inside : ready, t->between > 0 ? a->between : ready);
    return through + t->latency;
}

/* A message goes beside the collectives, of which each gets half of the link while both run. */
static double deliver(const struct simulation *s, struct actor *a, const struct dt_transfer *t)
{
    double *link = t->inside > 0 ? &a->inside : &a->between;
    double seconds = dt_transfer_seconds(t, s->cluster) - t->latency;
    double start = fmax(a->sent, a->now), shared = fmin(fmax(*link - start, 0), seconds);
    if (*link > start)
        *link += shared;
    a->sent = start + seconds + shared;
    return a->sent + t->latency;
}

static struct actor *actor_of(const struct simulation *s, long replica, long stage)
{
    return &s->actors[replica * s->layout->pp + stage];
}

/* The replicas' links are busy until all of them are through. */
static void run_collective(struct simulation *s, struct collective *c, long stage,
                           const struct dt_transfer *t, const char *name)
{
    double done = 0;
    for (long r = 0; r < s->replicas; r++)
        done = fmax(done, transfer(s, actor_of(s, r, stage), t, c->ready));
    c->done = done;
    for (long r = 0; r < s->replicas; r++) {
        struct actor *a = actor_of(s, r, stage);
        if (t->inside > 0)
            a->inside = done;
        if (t->between > 0)
            a->between = done;
        a->debt += s->cluster->link.interference * dt_transfer_seconds(t, s->cluster);
        wake(s, a, &c->done);
    }
    const struct dt_span span = {
        name, (int)stage, DT_LANE_DATA, -1, stage, done - dt_transfer_seconds(t, s->cluster), done};
    dt_timeline_add(s->timeline, &span);
}

/* The actor's next collective: it runs when all replicas have come to it. */
static struct collective *join(struct simulation *s, struct actor *a, const struct dt_transfer *t,
                               const char *name)
{
    struct collective *c = &s->collectives[a->stage][a->collectives++];
    c->ready = fmax(c->ready, a->now);
    if (++c->arrived == s->replicas)
        run_collective(s, c, a->stage, t, name);
    return c;
}

static double *message(const struct simulation *s, long replica, bool backward, long chunk,
                       long batch)
{
    return &s->sent[backward][(replica * s->runs + chunk) * s->layout->batches + batch];
}

static long node_of(const struct simulation *s, long replica, long stage)
{
    const struct dt_layout *l = s->layout;
    return ((stage * l->dp + replica) * l->tp) / s->cluster->devices;
}

/* To the run before or behind. */
static void send(struct simulation *s, struct actor *a, const struct dt_action *action)
{
    bool backward = action->kind == DT_SEND_GRADIENT;
    long to = action->run + (backward ? -1 : 1);
    double *when = message(s, a->replica, backward, to, action->batch);
    struct actor *receiver = actor_of(s, a->replica, to % s->layout->pp);
    bool inside = node_of(s, a->replica, a->stage) == node_of(s, a->replica, receiver->stage);
    const struct dt_transfer t = {
        .inside = inside ? s->costs->send : 0,
        .between = inside ? 0 : s->costs->send,
        .latency =
            (inside ? s->cluster->link.inside_latency : s->cluster->link.between_latency) * 1e-6};
    *when = deliver(s, a, &t);
    wake(s, receiver, when);
    const struct dt_span span = {backward ? "send gradients" : "send activations",
                                 (int)a->stage,
                                 DT_LANE_PIPELINE,
                                 action->batch,
                                 action->run,
                                 a->now,
                                 *when};
    if (a->replica == 0)
        dt_timeline_add(s->timeline, &span);
    a->next++;
}

static bool receive(struct simulation *s, struct actor *a, const struct dt_action *action)
{
    bool backward = action->kind == DT_RECEIVE_GRADIENT;
    if (!await(a, message(s, a->replica, backward, action->run, action->batch), &a->pipeline_wait))
        return false;
    a->next++;
    return true;
}

/* --- actions: each returns whether the actor goes on, and is asked again if it was blocked -- */

static bool gathers(const struct simulation *s)
{
    return s->layout->zero_stage == 3 && dt_layout_owners(s->layout) > 1;
}

/* What of a layer's gradients is reduced behind the action; NULL: nothing. */
static const struct dt_transfer *reduction(const struct simulation *s,
                                           const struct dt_action *action)
{
    const struct dt_chunk_costs *k = &s->costs->chunks[action->run];
    if (action->kind != DT_BACKWARD || s->layout->dp == 1)
        return NULL;
    if (action->batch == s->layout->batches - 1)
        return &k->reduce;
    return s->costs->reductions > 1 ? &k->round : NULL;
}

/* Whether no pass comes behind the action at hand. */
static bool is_last_pass(const struct actor *a)
{
    for (size_t i = a->next + 1; i < a->list.count; i++)
        if (a->list.actions[i].kind == DT_BACKWARD)
            return false;
    return true;
}

/* Weights of the layer at work are there, and those of the next are on their way. */
static bool gather(struct simulation *s, struct actor *a, const struct dt_chunk_costs *k)
{
    if (!gathers(s))
        return true;
    if (a->gathered == NULL)
        a->gathered = join(s, a, &k->gather, "gather");
    if (!await(a, &a->gathered->done, &a->data_wait))
        return false;
    bool last = a->segment == k->layers - 1 && is_last_pass(a);
    a->gathered = last ? NULL : join(s, a, &k->gather, "gather");
    return true;
}

static void hold(struct actor *a, bool backward)
{
    a->held += backward ? -1 : 1;
    a->most_held = a->held > a->most_held ? a->held : a->most_held;
}

/* One layer of a pass, or all of them where nothing happens between. */
static bool compute(struct simulation *s, struct actor *a, const struct dt_action *action)
{
    const struct dt_chunk_costs *k = &s->costs->chunks[action->run];
    bool backward = action->kind == DT_BACKWARD;
    const struct dt_transfer *reduced = reduction(s, action);
    long segments = gathers(s) || reduced ? k->layers : 1;
    if (!gather(s, a, k))
        return false;
    double computing = (backward ? k->backward : k->forward) / (double)segments * a->slow;
    double tensor = (backward ? k->backward_tensor : k->forward_tensor) / (double)segments;
    double start = a->now;
    a->now += computing + tensor + a->debt;
    a->computing += computing + a->debt;
    a->tensor += tensor;
    a->debt = 0;
    const struct dt_span span = {backward ? "backward" : "forward",
                                 (int)a->stage,
                                 DT_LANE_COMPUTE,
                                 action->batch,
                                 action->run,
                                 start,
                                 a->now};
    if (a->replica == 0)
        dt_timeline_add(s->timeline, &span);
    if (reduced)
        a->reduced = join(s, a, reduced, "reduce");
    if (++a->segment < segments)
        return true;
    hold(a, backward);
    a->segment = 0;
    a->next++;
    return true;
}

/* The optimizer, when all gradients are there; its ranks then share what they updated. */
static bool update(struct simulation *s, struct actor *a)
{
    bool shares = s->costs->share.inside + s->costs->share.between > 0;
    if (a->reduced && !await(a, &a->reduced->done, &a->data_wait))
        return false;
    if (a->updated) {
        a->next++;
        return true;
    }
    const struct dt_span span = {"update",
                                 (int)a->stage,
                                 DT_LANE_COMPUTE,
                                 -1,
                                 a->stage,
                                 a->now,
                                 a->now + s->costs->update * a->slow};
    a->update = s->costs->update * a->slow;
    a->now += a->update;
    a->updated = true;
    if (a->replica == 0)
        dt_timeline_add(s->timeline, &span);
    if (shares)
        a->reduced = join(s, a, &s->costs->share, "share");
    return true;
}

static bool act(struct simulation *s, struct actor *a)
{
    const struct dt_action *action = &a->list.actions[a->next];
    if (a->next == a->list.count)
        return update(s, a);
    if (action->kind == DT_FORWARD || action->kind == DT_BACKWARD)
        return compute(s, a, action);
    if (action->kind == DT_RECEIVE_INPUT || action->kind == DT_RECEIVE_GRADIENT)
        return receive(s, a, action);
    send(s, a, action);
    return true;
}

static void run(struct simulation *s)
{
    while (s->waiting > 0) {
        struct actor *a = pop(s);
        s->events++;
        if (act(s, a) && a->next <= a->list.count)
            push(s, a, a->now);
    }
}

/* --- set-up and result ---------------------------------------------------------------------- */

/* The slowest of an actor's devices, over one of full speed. */
static double slowness(const struct simulation *s, const struct dt_simulation_options *o,
                       const struct actor *a)
{
    double worst = 0;
    long first = (a->stage * s->layout->dp + a->replica) * s->layout->tp;
    for (long i = 0; i < s->layout->tp && o->spread > 0; i++) {
        double pair[2];
        uint64_t device = (uint64_t)(first + i);
        dt_normal_pair(dt_random(dt_random_key(o->seed, 'S', device), 0, 0), pair);
        worst = fmax(worst, fabs(pair[0]));
    }
    return 1 + o->spread * worst;
}

/* Collectives that a stage may come to: gathers and reductions of each layer, and sharing. */
static size_t most_collectives(const struct simulation *s, long stage)
{
    long layers = 0;
    for (long chunk = stage; chunk < s->runs; chunk += s->layout->pp)
        layers += s->costs->chunks[chunk].layers;
    return (size_t)(layers * s->layout->batches * 3 + 2);
}

static double *unsent(size_t count)
{
    double *when = dt_alloc(count, sizeof *when);
    for (size_t i = 0; i < count; i++)
        when[i] = NOT_YET;
    return when;
}

static void init(struct simulation *s, const struct dt_simulation_options *o)
{
    const struct dt_layout *l = s->layout;
    s->replicas = o->spread > 0 ? l->dp : 1;
    s->runs = dt_layout_runs(l);
    s->actors = dt_alloc((size_t)(s->replicas * l->pp), sizeof *s->actors);
    s->heap = dt_alloc((size_t)(s->replicas * l->pp), sizeof *s->heap);
    s->collectives = dt_alloc((size_t)l->pp, sizeof *s->collectives);
    for (int i = 0; i < 2; i++)
        s->sent[i] = unsent((size_t)(s->replicas * s->runs * l->batches));
    for (long stage = 0; stage < l->pp; stage++) {
        size_t count = l->dp > 1 ? most_collectives(s, stage) : 0;
        struct dt_action_list list = {0};
        dt_pipeline_actions(&l->pipeline, (int)stage, l->batches, &list);
        s->collectives[stage] = dt_alloc(count, sizeof **s->collectives);
        for (size_t i = 0; i < count; i++)
            s->collectives[stage][i].done = NOT_YET;
        for (long r = 0; r < s->replicas; r++) {
            struct actor *a = actor_of(s, r, stage);
            *a = (struct actor){.stage = stage, .replica = r, .list = list};
            a->slow = slowness(s, o, a);
            push(s, a, 0);
        }
    }
}

static void release(struct simulation *s)
{
    for (long stage = 0; stage < s->layout->pp; stage++) {
        free(s->actors[stage].list.actions);
        free(s->collectives[stage]);
    }
    free(s->collectives);
    free(s->actors);
    free(s->heap);
    free(s->sent[0]);
    free(s->sent[1]);
}

static void summarize(struct dt_step_simulation *r, const struct simulation *s)
{
    long count = s->replicas * s->layout->pp;
    double each = 1 / (double)count;
    *r = (struct dt_step_simulation){.events = s->events};
    for (long i = 0; i < count; i++) {
        const struct actor *a = &s->actors[i];
        assert(a->next > a->list.count); /* none is blocked for ever */
        r->seconds = fmax(r->seconds, a->now);
        r->computing += a->computing * each;
        r->tensor += a->tensor * each;
        r->update += a->update * each;
        r->pipeline_wait += a->pipeline_wait * each;
        r->data_wait += a->data_wait * each;
        r->in_flight = a->most_held > r->in_flight ? a->most_held : r->in_flight;
    }
    for (long i = 0; i < count; i++) /* stages that are done wait for the others */
        r->pipeline_wait += (r->seconds - s->actors[i].now) * each;
    r->bubble = r->pipeline_wait / (r->computing + r->tensor);
}

void dt_simulate(struct dt_step_simulation *result, const struct dt_costs *costs,
                 const struct dt_layout *layout, const struct dt_cluster *cluster,
                 const struct dt_simulation_options *options)
{
    struct simulation s = {
        .costs = costs, .layout = layout, .cluster = cluster, .timeline = options->timeline};
    init(&s, options);
    run(&s);
    summarize(result, &s);
    release(&s);
}
