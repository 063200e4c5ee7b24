/* SPDX-License-Identifier: MIT */
/* A transport between threads of one process, to test communicators with many ranks and without a
 * launcher; sends are delivered at once.
 *
 * With a seed (post.shaken or $DT_SHAKE) it randomizes what a transport may do: a send completes at
 * once, or after its receive, for which both sides must make progress; test reports completion some
 * calls late; receive buffers contain garbage until then; ranks sleep in between. Only messages of
 * one tag between two ranks keep their order. */
#ifndef TESTS_COMM_THREADS_H
#define TESTS_COMM_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "comm/comm.h"
#include "math/rng.h"

#define MOST_RANKS 8
#define UNHURRIED  3600.0 /* seconds of patience: ranks may wait long for a processor */

struct message {
    struct message *next;
    int from, tag;
    size_t bytes;
    const char *data;               /* the copy, or the sender's buffer */
    bool asked_for, granted, taken; /* matched by a receive; seen by the sender; received */
    char copy[];
};

struct threads_request {
    struct threads_request *next;
    int from, tag; /* from -1: a send */
    void *data;
    size_t bytes;
    struct message *message; /* of a send: the message, unless copied; of a receive: its match */
    bool over;
    int late; /* remaining tests that return 0 */
};

static struct {
    pthread_mutex_t lock;
    struct message *boxes[MOST_RANKS];            /* of each rank, oldest first */
    struct threads_request *receives[MOST_RANKS]; /* likewise */
    int size, opened;
    long tests[MOST_RANKS]; /* calls of test */
    uint64_t shaken;        /* seed; 0: not randomized */
    uint64_t drawn;         /* random numbers so far */
} post = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A random number below count. Call it with the lock. */
static int draw(int count)
{
    return (int)(dt_random_key(post.shaken, 0, post.drawn++) % (uint64_t)count);
}

static int lateness(void)
{
    return post.shaken ? draw(6) : 0;
}

/* The link to the oldest message from that rank with that tag (-1: any); NULL: none. */
static struct message **find(int rank, int from, int tag)
{
    for (struct message **m = &post.boxes[rank]; *m; m = &(*m)->next)
        if ((*m)->from == from && (tag < 0 || (*m)->tag == tag) && !(*m)->asked_for)
            return m;
    return NULL;
}

/* Completes a receive that has a match. Call it with the lock. */
static void take(int rank, struct threads_request *r)
{
    struct message *m = r->message, **place = &post.boxes[rank];
    memcpy(r->data, m->data, m->bytes < r->bytes ? m->bytes : r->bytes);
    r->bytes = m->bytes;
    r->over = m->taken = true;
    while (*place != m)
        place = &(*place)->next;
    *place = m->next;
    if (m->data == m->copy)
        free(m);
}

/* Makes progress on all transfers of a rank. Call it with the lock. */
static void progress(int rank)
{
    for (int to = 0; to < post.size; to++)
        for (struct message *m = post.boxes[to]; m; m = m->next)
            m->granted |= m->from == rank && m->asked_for;
    for (struct threads_request **place = &post.receives[rank], *r; (r = *place);) {
        struct message **match = r->message ? NULL : find(rank, r->from, r->tag);
        if (match) {
            r->message = *match;
            r->message->asked_for = true;
        }
        if (r->message && r->message->granted) {
            take(rank, r);
            *place = r->next;
        } else {
            place = &r->next;
        }
    }
}

static void enter(int rank)
{
    pthread_mutex_lock(&post.lock);
    bool pauses = post.shaken && draw(16) == 0;
    const struct timespec pause = {.tv_nsec = pauses ? draw(100000) : 0};
    if (pauses) {
        pthread_mutex_unlock(&post.lock);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&post.lock);
    }
    progress(rank);
}

static int threads_open(void **state, const struct dt_opening *how, int *rank, int *size,
                        struct dt_error *err)
{
    int *self = dt_alloc(1, sizeof *self);
    (void)how, (void)err;
    pthread_mutex_lock(&post.lock);
    *self = post.opened++;
    pthread_mutex_unlock(&post.lock);
    *rank = *self;
    *size = post.size;
    *state = self;
    return 0;
}

static void threads_close(void *state)
{
    free(state);
}

static struct message *new_message(int from, int tag, const void *data, size_t bytes, bool copied)
{
    struct message *m = dt_alloc(1, sizeof *m + (copied ? bytes : 0));
    *m = (struct message){.from = from, .tag = tag, .bytes = bytes, .data = data};
    m->granted = copied;
    if (copied)
        m->data = memcpy(m->copy, data, bytes);
    return m;
}

static int threads_send(void *state, int to, int tag, const void *data, size_t bytes,
                        void **request, struct dt_error *err)
{
    struct threads_request *r = dt_alloc(1, sizeof *r);
    struct message **end = &post.boxes[to];
    int self = *(int *)state;
    (void)err;
    if (tag >> DT_TAG_BITS != 0 || bytes > DT_TRANSFER_MOST)
        abort();
    enter(self);
    bool copied = !post.shaken || draw(2);
    struct message *m = new_message(self, tag, data, bytes, copied);
    while (*end)
        end = &(*end)->next;
    *end = m;
    *r = (struct threads_request){
        .from = -1, .over = copied, .message = copied ? NULL : m, .late = lateness()};
    pthread_mutex_unlock(&post.lock);
    *request = r;
    return 0;
}

static int threads_receive(void *state, int from, int tag, void *data, size_t bytes, void **request,
                           struct dt_error *err)
{
    struct threads_request *r = dt_alloc(1, sizeof *r), **end;
    (void)err;
    enter(*(int *)state);
    *r = (struct threads_request){.from = from, .tag = tag, .data = data, .bytes = bytes};
    r->late = lateness();
    for (end = &post.receives[*(int *)state]; *end; end = &(*end)->next)
        ;
    *end = r;
    if (post.shaken)
        memset(data, 0xa5, bytes);
    pthread_mutex_unlock(&post.lock);
    *request = r;
    return 0;
}

static int threads_test(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    struct threads_request *r = *request;
    int self = *(int *)state;
    (void)err;
    enter(self);
    post.tests[self] += r->from >= 0;
    bool over = r->late == 0 && (r->over || (r->from < 0 && r->message->taken));
    r->late -= r->late > 0;
    pthread_mutex_unlock(&post.lock);
    if (!over) {
        sched_yield(); /* to a rank with something to do: there are more ranks than processors */
        return 0;
    }
    if (r->from >= 0)
        *bytes = r->bytes;
    else
        free(r->message);
    free(r);
    *request = NULL;
    return 1;
}

static bool threads_waiting(void *state, int from, int *tag, size_t *bytes)
{
    pthread_mutex_lock(&post.lock);
    struct message **m = find(*(int *)state, from, -1);
    if (m) {
        *tag = (*m)->tag;
        *bytes = (*m)->bytes;
    }
    pthread_mutex_unlock(&post.lock);
    return m != NULL;
}

static void threads_abort(void *state, int status)
{
    (void)state;
    exit(status);
}

static const struct dt_transport threads_transport = {
    DT_TRANSPORT_ABI, "threads",    false,           threads_open, threads_close, threads_send,
    threads_receive,  threads_test, threads_waiting, NULL,         threads_abort};

/* The function of every rank; the job returns the result of the first rank that failed. */
typedef void rank_work(struct dt_comm *world, void *context);

struct rank_start {
    const struct dt_transport *transport;
    rank_work *work;
    void *context;
};

static void *run_rank(void *argument)
{
    const struct dt_opening how = {.patience = UNHURRIED};
    struct rank_start *start = argument;
    struct dt_comm *world;
    struct dt_error err;
    if (dt_comm_open_on(&world, start->transport, &how, &err) < 0)
        abort();
    start->work(world, start->context);
    dt_comm_close(world);
    return NULL;
}

/* Frees messages without a receive. */
static void empty_boxes(int rank)
{
    for (struct message *m; (m = post.boxes[rank]);) {
        post.boxes[rank] = m->next;
        free(m);
    }
    for (struct threads_request *r; (r = post.receives[rank]);) {
        post.receives[rank] = r->next;
        free(r);
    }
}

static void run_ranks_over(const struct dt_transport *transport, int size, rank_work *work,
                           void *context)
{
    struct rank_start start = {transport, work, context};
    const char *seed = getenv("DT_SHAKE");
    pthread_t threads[MOST_RANKS];
    post.size = size;
    post.opened = 0;
    post.shaken = seed ? strtoull(seed, NULL, 10) : post.shaken;
    for (int i = 0; i < size; i++)
        pthread_create(&threads[i], NULL, run_rank, &start);
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < size; i++)
        empty_boxes(i);
}

static void run_ranks(int size, rank_work *work, void *context)
{
    run_ranks_over(&threads_transport, size, work, context);
}

#endif
