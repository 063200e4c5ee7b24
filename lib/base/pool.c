/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/system.h"

struct slot {
    void *job;
    bool done;
};

/* A ring of slots: jobs [taken, started) run or are done, [started, submitted) wait. */
struct dt_pool {
    dt_pool_work *work;
    void *context;
    struct dt_threads *threads, *own; /* own: to be freed with the pool, or NULL */
    struct dt_pool *older;            /* on the same threads */
    int capacity;
    pthread_cond_t finished_one;
    struct slot *slots;
    uint64_t taken, started, submitted;
};

/* The lock protects all pools on the threads. */
struct dt_threads {
    int given, count; /* count: those started; 0: the caller runs the jobs */
    pthread_t *thread;
    pthread_mutex_t lock;
    pthread_cond_t submitted_one;
    struct dt_pool *newest;
    bool closing;
};

static struct dt_pool *find_waiting(struct dt_threads *t)
{
    struct dt_pool *p = t->newest;
    while (p && p->started == p->submitted)
        p = p->older;
    return p;
}

/* Runs the next job of a pool, without the lock. The pool may be gone afterwards. */
static void run_job(struct dt_threads *t, struct dt_pool *p)
{
    struct slot *s = &p->slots[p->started++ % (uint64_t)p->capacity];
    pthread_mutex_unlock(&t->lock);
    p->work(s->job, p->context);
    pthread_mutex_lock(&t->lock);
    s->done = true;
    pthread_cond_signal(&p->finished_one);
}

static void *worker(void *argument)
{
    struct dt_threads *t = argument;
    struct dt_pool *p;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while ((p = find_waiting(t)) == NULL && !t->closing)
            pthread_cond_wait(&t->submitted_one, &t->lock);
        if (p == NULL)
            break;
        run_job(t, p);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

struct dt_threads *dt_threads_new(int count)
{
    struct dt_threads *t = dt_alloc(1, sizeof *t);
    t->given = count > 1 ? count : 1;
    t->count = count > 1 ? count : 0;
    t->thread = dt_alloc((size_t)t->count, sizeof *t->thread);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->submitted_one, NULL);
    for (int i = 0; i < t->count; i++) {
        if (pthread_create(&t->thread[i], NULL, worker, t) != 0) {
            t->count = i; /* run with fewer threads */
            break;
        }
    }
    return t;
}

int dt_threads_count(const struct dt_threads *t)
{
    return t->given;
}

void dt_threads_free(struct dt_threads *t)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    t->closing = true;
    pthread_cond_broadcast(&t->submitted_one);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->count; i++)
        pthread_join(t->thread[i], NULL);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->submitted_one);
    free(t->thread);
    free(t);
}

struct dt_pool *dt_pool_on(struct dt_threads *threads, dt_pool_work *work, void *context)
{
    struct dt_pool *p = dt_alloc(1, sizeof *p);
    p->work = work;
    p->context = context;
    p->threads = threads;
    p->capacity = threads->count > 0 ? 4 * threads->count : 1;
    p->slots = dt_alloc((size_t)p->capacity, sizeof *p->slots);
    pthread_cond_init(&p->finished_one, NULL);
    pthread_mutex_lock(&threads->lock);
    p->older = threads->newest;
    threads->newest = p;
    pthread_mutex_unlock(&threads->lock);
    return p;
}

struct dt_pool *dt_pool_new(int threads, dt_pool_work *work, void *context)
{
    struct dt_threads *own = dt_threads_new(threads);
    struct dt_pool *p = dt_pool_on(own, work, context);
    p->own = own;
    return p;
}

bool dt_pool_full(const struct dt_pool *p)
{
    return p->submitted - p->taken == (uint64_t)p->capacity;
}

void dt_pool_submit(struct dt_pool *p, void *job)
{
    struct slot *s = &p->slots[p->submitted % (uint64_t)p->capacity];
    *s = (struct slot){.job = job};
    if (p->threads->count == 0) {
        p->work(job, p->context);
        s->done = true;
        p->started++;
        p->submitted++;
        return;
    }
    pthread_mutex_lock(&p->threads->lock);
    p->submitted++;
    pthread_cond_signal(&p->threads->submitted_one);
    pthread_mutex_unlock(&p->threads->lock);
}

void *dt_pool_next(struct dt_pool *p)
{
    if (p->taken == p->submitted)
        return NULL;
    struct slot *s = &p->slots[p->taken % (uint64_t)p->capacity];
    pthread_mutex_lock(&p->threads->lock);
    while (!s->done)
        pthread_cond_wait(&p->finished_one, &p->threads->lock);
    p->taken++;
    pthread_mutex_unlock(&p->threads->lock);
    return s->job;
}

static void remove_from(struct dt_threads *t, struct dt_pool *p)
{
    struct dt_pool **link = &t->newest;
    pthread_mutex_lock(&t->lock);
    while (*link != p)
        link = &(*link)->older;
    *link = p->older;
    pthread_mutex_unlock(&t->lock);
}

void dt_pool_free(struct dt_pool *p)
{
    if (p == NULL)
        return;
    while (dt_pool_next(p) != NULL)
        ;
    remove_from(p->threads, p);
    pthread_cond_destroy(&p->finished_one);
    dt_threads_free(p->own);
    free(p->slots);
    free(p);
}

int dt_pool_processors(void)
{
    long n = dt_system_processors(NULL, 0);
    if (n < 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
