/* SPDX-License-Identifier: MIT */
/* A transport between the threads of one program, so that communicators can be
 * tested with many ranks and without a launcher; sends are delivered at once. */
#ifndef TESTS_COMM_THREADS_H
#define TESTS_COMM_THREADS_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "comm/comm.h"

#define MOST_RANKS 8
#define UNHURRIED  3600.0 /* seconds of patience: ranks may wait long for a processor */

struct message {
    struct message *next;
    int from, tag;
    size_t bytes;
    char data[];
};

static struct {
    pthread_mutex_t lock;
    struct message *boxes[MOST_RANKS]; /* of each rank, oldest first */
    int size, opened;
    long tests[MOST_RANKS]; /* whether something came */
} post = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct threads_request {
    int from, tag; /* from -1: a send, which is over */
    void *data;
    size_t bytes;
};

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

static int threads_send(void *state, int to, int tag, const void *data, size_t bytes,
                        void **request, struct dt_error *err)
{
    struct message *m = dt_alloc(1, sizeof *m + bytes), **end;
    struct threads_request *r = dt_alloc(1, sizeof *r);
    (void)err;
    m->from = *(int *)state;
    m->tag = tag;
    m->bytes = bytes;
    memcpy(m->data, data, bytes);
    pthread_mutex_lock(&post.lock);
    for (end = &post.boxes[to]; *end; end = &(*end)->next)
        ;
    *end = m;
    pthread_mutex_unlock(&post.lock);
    r->from = -1;
    *request = r;
    return 0;
}

static int threads_receive(void *state, int from, int tag, void *data, size_t bytes, void **request,
                           struct dt_error *err)
{
    struct threads_request *r = dt_alloc(1, sizeof *r);
    (void)state, (void)err;
    *r = (struct threads_request){from, tag, data, bytes};
    *request = r;
    return 0;
}

/* The oldest message from that rank with that tag (-1: any), taken out of the box or left. */
static struct message *find(int rank, int from, int tag, bool take)
{
    for (struct message **m = &post.boxes[rank]; *m; m = &(*m)->next)
        if ((*m)->from == from && (tag < 0 || (*m)->tag == tag)) {
            struct message *found = *m;
            if (take)
                *m = found->next;
            return found;
        }
    return NULL;
}

static int threads_test(void *state, void **request, size_t *bytes, struct dt_error *err)
{
    struct threads_request *r = *request;
    (void)err;
    if (r->from >= 0) {
        pthread_mutex_lock(&post.lock);
        post.tests[*(int *)state]++;
        struct message *m = find(*(int *)state, r->from, r->tag, true);
        pthread_mutex_unlock(&post.lock);
        if (m == NULL)
            return 0;
        memcpy(r->data, m->data, m->bytes < r->bytes ? m->bytes : r->bytes);
        *bytes = m->bytes;
        free(m);
    }
    free(r);
    *request = NULL;
    return 1;
}

static bool threads_waiting(void *state, int from, int *tag, size_t *bytes)
{
    pthread_mutex_lock(&post.lock);
    struct message *m = find(*(int *)state, from, -1, false);
    if (m) {
        *tag = m->tag;
        *bytes = m->bytes;
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
    DT_TRANSPORT_ABI, "threads",       false,        threads_open,    threads_close,
    threads_send,     threads_receive, threads_test, threads_waiting, threads_abort};

/* What every rank runs; the first failed rank's result is the job's. */
typedef void rank_work(struct dt_comm *world, void *context);

struct rank_start {
    rank_work *work;
    void *context;
};

static void *run_rank(void *argument)
{
    const struct dt_opening how = {.patience = UNHURRIED};
    struct rank_start *start = argument;
    struct dt_comm *world;
    struct dt_error err;
    if (dt_comm_open_on(&world, &threads_transport, &how, &err) < 0)
        abort();
    start->work(world, start->context);
    dt_comm_close(world);
    return NULL;
}

static void run_ranks(int size, rank_work *work, void *context)
{
    struct rank_start start = {work, context};
    pthread_t threads[MOST_RANKS];
    post.size = size;
    post.opened = 0;
    for (int i = 0; i < size; i++)
        pthread_create(&threads[i], NULL, run_rank, &start);
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < size; i++)
        while (post.boxes[i]) {
            struct message *m = post.boxes[i];
            post.boxes[i] = m->next;
            free(m);
        }
}

#endif
