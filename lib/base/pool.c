/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"

struct slot {
    void *job;
    bool done;
};

/* A ring of slots: jobs [taken, started) run or are done, [started, submitted) wait. */
struct dt_pool {
    dt_pool_work *work;
    void *context;
    int threads, capacity;
    pthread_t *thread;
    pthread_mutex_t lock;
    pthread_cond_t submitted_one, finished_one;
    struct slot *slots;
    uint64_t taken, started, submitted;
    bool closing;
};

static void *worker(void *argument)
{
    struct dt_pool *p = argument;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->started == p->submitted && !p->closing)
            pthread_cond_wait(&p->submitted_one, &p->lock);
        if (p->started == p->submitted)
            break;
        struct slot *s = &p->slots[p->started++ % (uint64_t)p->capacity];
        pthread_mutex_unlock(&p->lock);
        p->work(s->job, p->context);
        pthread_mutex_lock(&p->lock);
        s->done = true;
        pthread_cond_signal(&p->finished_one);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct dt_pool *dt_pool_new(int threads, dt_pool_work *work, void *context)
{
    struct dt_pool *p = dt_alloc(1, sizeof *p);
    p->work = work;
    p->context = context;
    p->threads = threads > 1 ? threads : 0; /* the caller is one of the threads */
    p->capacity = threads > 1 ? 4 * threads : 1;
    p->slots = dt_alloc((size_t)p->capacity, sizeof *p->slots);
    p->thread = dt_alloc((size_t)p->threads, sizeof *p->thread);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->submitted_one, NULL);
    pthread_cond_init(&p->finished_one, NULL);
    for (int i = 0; i < p->threads; i++) {
        if (pthread_create(&p->thread[i], NULL, worker, p) != 0) {
            p->threads = i; /* run with fewer threads */
            break;
        }
    }
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
    if (p->threads == 0) {
        p->work(job, p->context);
        s->done = true;
        p->submitted++;
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->submitted++;
    pthread_cond_signal(&p->submitted_one);
    pthread_mutex_unlock(&p->lock);
}

void *dt_pool_next(struct dt_pool *p)
{
    if (p->taken == p->submitted)
        return NULL;
    struct slot *s = &p->slots[p->taken % (uint64_t)p->capacity];
    pthread_mutex_lock(&p->lock);
    while (!s->done)
        pthread_cond_wait(&p->finished_one, &p->lock);
    p->taken++;
    pthread_mutex_unlock(&p->lock);
    return s->job;
}

void dt_pool_free(struct dt_pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->submitted_one);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->threads; i++)
        pthread_join(p->thread[i], NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->submitted_one);
    pthread_cond_destroy(&p->finished_one);
    free(p->thread);
    free(p->slots);
    free(p);
}

int dt_pool_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t has bits */
    return n > 0 ? (int)n : 1;
}
