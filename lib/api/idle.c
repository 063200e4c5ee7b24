/* SPDX-License-Identifier: MIT */
#include "api/api-internal.h"

#define MOST 16

void dt_idle_init(struct dt_idle *idle, void (*free)(struct dt_idle_item *item))
{
    *idle = (struct dt_idle){.forks = dt_fork_count(), .free = free};
    pthread_mutex_init(&idle->lock, NULL);
}

/* The child of fork(2) has one thread, and the lock may have been another's. */
static void lock(struct dt_idle *idle)
{
    if (idle->forks != dt_fork_count())
        dt_idle_init(idle, idle->free);
    pthread_mutex_lock(&idle->lock);
}

struct dt_idle_item *dt_idle_take(struct dt_idle *idle, uint64_t key)
{
    lock(idle);
    struct dt_idle_item **at = &idle->first;
    while (*at && (*at)->key != key)
        at = &(*at)->next;
    struct dt_idle_item *found = *at;
    if (found)
        *at = found->next;
    pthread_mutex_unlock(&idle->lock);
    return found;
}

void dt_idle_put(struct dt_idle *idle, struct dt_idle_item *item, uint64_t key)
{
    lock(idle);
    item->key = key;
    item->next = idle->first;
    idle->first = item;
    struct dt_idle_item **at = &idle->first;
    for (int i = 0; *at && i < MOST; i++)
        at = &(*at)->next;
    struct dt_idle_item *oldest = *at;
    *at = NULL;
    pthread_mutex_unlock(&idle->lock);
    if (oldest)
        idle->free(oldest);
}

void dt_idle_release(struct dt_idle *idle)
{
    lock(idle);
    for (struct dt_idle_item *item = idle->first, *next; item; item = next) {
        next = item->next;
        idle->free(item);
    }
    pthread_mutex_unlock(&idle->lock);
    pthread_mutex_destroy(&idle->lock);
}
