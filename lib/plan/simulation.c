/* SPDX-License-Identifier: MIT */
#include "plan/simulation-internal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "math/rng.h"

#define PROGRESS_EVENTS 65536 /* events between checks of the clock */

/* --- the heap: actors in order of time ------------------------------------------------------ */

static bool earlier(struct dt_queue_entry a, struct dt_queue_entry b)
{
    return a.due < b.due || (a.due == b.due && a.actor < b.actor);
}

static void push(struct dt_simulation *s, struct dt_actor *a, double due)
{
    const struct dt_queue_entry entry = {due, a};
    long i = s->waiting++;
    a->due = due;
    a->queued = true;
    for (; i > 0 && earlier(entry, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = entry;
}

/* Replaces the root of the heap by entry, and restores the heap. */
static void sink(struct dt_simulation *s, struct dt_queue_entry entry)
{
    long i = 0;
    for (long child = 1; child < s->waiting; child = 2 * i + 1) {
        if (child + 1 < s->waiting && earlier(s->heap[child + 1], s->heap[child]))
            child++;
        if (!earlier(s->heap[child], entry))
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = entry;
}

static struct dt_actor *pop(struct dt_simulation *s)
{
    struct dt_actor *first = s->heap->actor;
    for (; s->heap->due < first->due; first = s->heap->actor) /* stale: it was postponed */
        sink(s, (struct dt_queue_entry){first->due, first});
    sink(s, s->heap[--s->waiting]);
    first->queued = false;
    return first;
}

/* --- event queues --------------------------------------------------------------------------- */

static struct dt_simulation_event *item(const struct dt_simulation_queue *l, long number)
{
    return &l->items[number & (l->capacity - 1)];
}

static void grow(struct dt_simulation_queue *l)
{
    struct dt_simulation_queue larger = {.first = l->first, .end = l->end};
    larger.capacity = l->capacity > 0 ? 2 * l->capacity : 4;
    larger.items = dt_alloc((size_t)larger.capacity, sizeof *larger.items);
    for (long i = l->first; i < l->end; i++)
        *item(&larger, i) = *item(l, i);
    free(l->items);
    *l = larger;
}

static struct dt_simulation_event *append(struct dt_simulation_queue *l, long waiters)
{
    if (l->end - l->first == l->capacity)
        grow(l);
    struct dt_simulation_event *h = item(l, l->end++);
    *h = (struct dt_simulation_event){.done = DT_NOT_YET, .left = waiters};
    return h;
}

/* An actor has waited for the event; events without waiters leave the queue. */
static void release_event(struct dt_simulation_queue *l, long number)
{
    item(l, number)->left--;
    while (l->first < l->end && item(l, l->first)->left == 0)
        l->first++;
}

/* True if the event's completion time is known: the actor's clock advances to it. Otherwise the
 * actor blocks. */
static bool await(struct dt_actor *a, const struct dt_simulation_queue *l, long number,
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

static void wake(struct dt_simulation *s, struct dt_actor *a, const struct dt_simulation_queue *l,
                 long number)
{
    if (a->awaited == l && a->number == number) {
        a->awaited = NULL;
        push(s, a, fmax(a->now, item(l, number)->done));
    }
}

/* --- transfers ------------------------------------------------------------------------------ */

/* Rounds to the quantum. */
static double quantize(const struct dt_simulation *s, double seconds)
{
    return rint(seconds / s->quantum) * s->quantum;
}

static double transfer_seconds(const struct dt_simulation *s, const struct dt_transfer_cost *t)
{
    return quantize(s, dt_transfer_cost_seconds(t, s->cluster));
}

/* Queues a transfer on an actor's links; returns its completion time. */
static double transfer(const struct dt_simulation *s, struct dt_actor *a,
                       const struct dt_transfer_cost *t, double ready)
{
    const struct dt_transfer_cost inside = {.inside = t->inside}, between = {.between = t->between};
    if (t->inside > 0)
        a->inside = fmax(a->inside, ready) + transfer_seconds(s, &inside);
    if (t->between > 0)
        a->between = fmax(a->between, ready) + transfer_seconds(s, &between);
    double through = fmax(t->inside > 0 ? a->inside : ready, t->between > 0 ? a->between : ready);
    return through + quantize(s, t->latency);
}

/* Sends a message. It shares a link with collectives: each gets half of it while both run. */
static double deliver(const struct dt_simulation *s, struct dt_actor *a,
                      const struct dt_transfer_cost *t)
{
    double *link = t->inside > 0 ? &a->inside : &a->between;
    double latency = quantize(s, t->latency), seconds = transfer_seconds(s, t) - latency;
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

/* The links of all data-parallel ranks are busy until the slowest completes. */
static void run_collective(struct dt_simulation *s, long number, long stage,
                           const struct dt_transfer_cost *t, const char *name)
{
    struct dt_simulation_queue *queue = &s->collectives[stage];
    struct dt_simulation_event *h = item(queue, number);
    double seconds = transfer_seconds(s, t);
    for (long r = 0; r < s->dp_size; r++)
        h->done = fmax(h->done, transfer(s, actor_of(s, r, stage), t, h->ready));
    for (long r = 0; r < s->dp_size; r++) {
        struct dt_actor *a = actor_of(s, r, stage);
        if (t->inside > 0)
            a->inside = h->done;
        if (t->between > 0)
            a->between = h->done;
        a->interference += quantize(s, s->cluster->link.interference * seconds);
        wake(s, a, queue, number);
    }
    const struct dt_timeline_span span = {name,  (int)stage,        DT_LANE_DATA, -1,
                                          stage, h->done - seconds, h->done};
    dt_timeline_add(s->timeline, &span);
}

/* Joins the stage's next collective, and returns its sequence number. It runs once all
 * data-parallel ranks have joined. */
static long join(struct dt_simulation *s, struct dt_actor *a, const struct dt_transfer_cost *t,
                 const char *name)
{
    struct dt_simulation_queue *queue = &s->collectives[a->stage];
    long number = a->joined++;
    struct dt_simulation_event *h =
        number < queue->end ? item(queue, number) : append(queue, s->dp_size);
    h->ready = fmax(h->ready, a->now);
    if (++h->arrived == s->dp_size)
        run_collective(s, number, a->stage, t, name);
    return number;
}

/* Waits for a joined collective, and resets *number to -1. True at once if *number is -1. */
static bool await_joined(struct dt_simulation *s, struct dt_actor *a, long *number)
{
    struct dt_simulation_queue *queue = &s->collectives[a->stage];
    if (*number < 0)
        return true;
    if (!await(a, queue, *number, &a->account.data_wait))
        return false;
    release_event(queue, *number);
    *number = -1;
    return true;
}

/* Joins a collective in place of an earlier one of its kind: only the last is awaited. */
static void join_last(struct dt_simulation *s, struct dt_actor *a, const struct dt_transfer_cost *t,
                      const char *name)
{
    long before = a->reduced;
    a->reduced = join(s, a, t, name);
    if (before >= 0)
        release_event(&s->collectives[a->stage], before);
}

/* The queue of activations, or of gradients, to a model chunk. */
static struct dt_simulation_queue *messages_to(const struct dt_simulation *s, long dp_rank,
                                               bool backward, long chunk)
{
    return &s->messages[2 * (dp_rank * s->chunks + chunk) + backward];
}

static long node_of(const struct dt_simulation *s, long dp_rank, long stage)
{
    const struct dt_plan_layout *l = s->layout;
    return ((stage * l->dp + dp_rank) * l->cp * l->tp) / dt_cluster_node_ranks(s->cluster);
}

static void advance(const struct dt_simulation *s, struct dt_actor *a)
{
    const struct dt_plan_layout *l = s->layout;
    a->acts = dt_pipeline_next(&l->pipeline, (int)a->stage, l->batches, &a->position, &a->action);
}

/* Sends activations to the next model chunk, or gradients to the previous one. */
static void send(struct dt_simulation *s, struct dt_actor *a, const struct dt_action *action)
{
    bool backward = action->kind == DT_ACTION_SEND_GRADIENT;
    long to = action->virtual_stage + (backward ? -1 : 1);
    struct dt_simulation_queue *queue = messages_to(s, a->dp_rank, backward, to);
    struct dt_simulation_event *message = append(queue, 1);
    struct dt_actor *receiver = actor_of(s, a->dp_rank, to % s->layout->pp);
    bool inside = node_of(s, a->dp_rank, a->stage) == node_of(s, a->dp_rank, receiver->stage);
    const struct dt_transfer_cost t = {
        .inside = inside ? s->costs->send : 0,
        .between = inside ? 0 : s->costs->send,
        .latency =
            (inside ? s->cluster->link.inside_latency : s->cluster->link.between_latency) * 1e-6};
    message->done = deliver(s, a, &t);
    wake(s, receiver, queue, queue->end - 1);
    const struct dt_timeline_span span = {backward ? "send gradients" : "send activations",
                                          (int)a->stage,
                                          DT_LANE_PIPELINE,
                                          action->batch,
                                          action->virtual_stage,
                                          a->now,
                                          message->done};
    if (a->dp_rank == 0)
        dt_timeline_add(s->timeline, &span);
    advance(s, a);
}

static bool receive(struct dt_simulation *s, struct dt_actor *a, const struct dt_action *action)
{
    bool backward = action->kind == DT_ACTION_RECEIVE_GRADIENT;
    struct dt_simulation_queue *queue = messages_to(s, a->dp_rank, backward, action->virtual_stage);
    if (!await(a, queue, queue->first, &a->account.pipeline_wait))
        return false;
    release_event(queue, queue->first);
    advance(s, a);
    return true;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Of the devices that a data-parallel rank's stages share, the first to become free. */
static double *first_free(const struct dt_simulation *s, long dp_rank)
{
    double *devices = &s->free[dp_rank * s->shared], *first = devices;
    for (long i = 1; i < s->shared; i++)
        first = devices[i] < *first ? &devices[i] : first;
    return first;
}

/* Computes for seconds, on the actor's device or the first free one. */
static void compute_for(const struct dt_simulation *s, struct dt_actor *a, double seconds)
{
    double *device = s->shared > 0 ? first_free(s, a->dp_rank) : &a->now;
    a->account.pipeline_wait += fmax(*device - a->now, 0);
    a->now = fmax(*device, a->now) + seconds;
    *device = a->now;
}

/* --- actions: each returns false if the actor is blocked, and is then called again ---------- */

static bool gathers_weights(const struct dt_simulation *s)
{
    return s->layout->zero_stage == 3 && dt_layout_shard_size(s->layout) > 1;
}

/* The reduction of a layer's gradients after the action, or NULL. */
static const struct dt_transfer_cost *reduction(const struct dt_simulation *s,
                                                const struct dt_action *action)
{
    const struct dt_chunk_costs *k = &s->costs->chunks[action->virtual_stage];
    if (action->kind != DT_ACTION_BACKWARD || dt_layout_dp_cp_size(s->layout) == 1)
        return NULL;
    if (action->batch == s->layout->batches - 1)
        return &k->reduce;
    return s->costs->reductions > 1 ? &k->reduce_earlier : NULL;
}

/* Whether the action is the step's last backward. */
static bool is_last_pass(const struct dt_simulation *s, const struct dt_action *action)
{
    return action->kind == DT_ACTION_BACKWARD && action->virtual_stage < s->layout->pp &&
           action->batch == s->layout->batches - 1;
}

/* Waits for the all-gather of this layer's weights, and prefetches the next layer's. */
static bool gather(struct dt_simulation *s, struct dt_actor *a, const struct dt_chunk_costs *k)
{
    if (!gathers_weights(s))
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

/* Computes one layer, or the whole chunk if no collective happens between layers. */
static bool compute(struct dt_simulation *s, struct dt_actor *a, const struct dt_action *action)
{
    const struct dt_chunk_costs *k = &s->costs->chunks[action->virtual_stage];
    bool backward = action->kind == DT_ACTION_BACKWARD;
    const struct dt_transfer_cost *reduced = reduction(s, action);
    long segments = gathers_weights(s) || reduced ? k->layers : 1;
    if (!gather(s, a, k))
        return false;
    double part = (double)segments;
    double computing = quantize(s, (backward ? k->backward : k->forward) / part * a->slow);
    double tensor = quantize(s, (backward ? k->backward_tensor : k->forward_tensor) / part);
    compute_for(s, a, computing + tensor + a->interference);
    const struct dt_timeline_span span = {backward ? "backward" : "forward",
                                          (int)a->stage,
                                          DT_LANE_COMPUTE,
                                          action->batch,
                                          action->virtual_stage,
                                          a->now - (computing + tensor + a->interference),
                                          a->now};
    a->account.computing += computing + a->interference;
    a->account.tensor += tensor;
    a->interference = 0;
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

/* The optimizer's update after the last reduction, then with ZeRO-1 and 2 the weights' all-gather.
 */
static bool update(struct dt_simulation *s, struct dt_actor *a)
{
    bool gathers = s->costs->weight_gather.inside + s->costs->weight_gather.between > 0;
    double seconds = quantize(s, s->costs->update * a->slow);
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
    if (gathers)
        join_last(s, a, &s->costs->weight_gather, "share");
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

/* Shows the progress of the first stage. */
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
        dt_rounds_check(s, a);
        a->account.events++;
        if (act(s, a) && !a->ended)
            push(s, a, a->now);
        if (s->progress && i % PROGRESS_EVENTS == 0 && dt_progress_due(s->progress))
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

/* Upper bound of the step's seconds: without any overlap. */
static double upper_bound(const struct dt_simulation *s, double slow)
{
    const struct dt_transfer_cost sent = {s->costs->send, s->costs->send, 0};
    const struct dt_cluster *c = s->cluster;
    double latency = (c->link.inside_latency + c->link.between_latency) * 1e-6, sum = 0;
    for (long i = 0; i < s->chunks; i++) {
        const struct dt_chunk_costs *k = &s->costs->chunks[i];
        double collectives = dt_transfer_cost_seconds(&k->gather, c) +
                             dt_transfer_cost_seconds(&k->reduce_earlier, c) +
                             dt_transfer_cost_seconds(&k->reduce, c);
        sum += (k->forward + k->backward) * slow + k->forward_tensor + k->backward_tensor +
               (2 + c->link.interference) * 2 * (double)k->layers * collectives +
               4 * (dt_transfer_cost_seconds(&sent, c) + latency);
    }
    return sum * (double)s->layout->batches + s->costs->update * slow +
           dt_transfer_cost_seconds(&s->costs->weight_gather, c);
}

static double quantum_for(const struct dt_simulation *s, double slow)
{
    int exponent;
    frexp(upper_bound(s, slow), &exponent);
    return ldexp(1, exponent - DBL_MANT_DIG + 1);
}

/* The ranks of a device are spread evenly over the stages. Returns a stage's slowdown from sharing
 * devices with other data-parallel ranks: at least 1. */
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
    s->chunks = dt_layout_chunks(l);
    s->actors = dt_alloc((size_t)(s->dp_size * l->pp), sizeof *s->actors);
    s->heap = dt_alloc((size_t)(s->dp_size * l->pp), sizeof *s->heap);
    s->free = dt_alloc((size_t)(s->dp_size * s->shared), sizeof *s->free);
    s->messages = dt_alloc((size_t)(2 * s->dp_size * s->chunks), sizeof *s->messages);
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

static void release_queues(struct dt_simulation_queue *queues, long count)
{
    for (long i = 0; i < count; i++)
        free(queues[i].items);
    free(queues);
}

static void release(struct dt_simulation *s)
{
    dt_rounds_release(s);
    release_queues(s->messages, 2 * s->dp_size * s->chunks);
    release_queues(s->collectives, s->layout->pp);
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
        assert(a->ended); /* no deadlock */
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
    for (long i = 0; i < count; i++) /* finished stages wait for the others */
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
