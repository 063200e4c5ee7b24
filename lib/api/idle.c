/* SPDX-License-Identifier: MIT */
#include "api/api-internal.h"

#define MOST 16

void dt_idle_init(struct dt_idle *idle, void (*free)(struct dt_idle_item *item))
{
    *idle = (struct dt_idle){.forks = dt_fork_count(), .free = free};
    dt_guard_init(&idle->guard);
}

/* In a child of fork(2) the list begins empty. */
static void lock(struct dt_idle *idle)
{
    pthread_mutex_lock(&idle->guard.lock);
    if (idle->forks != dt_fork_count())
        idle->first = NULL;
    idle->forks = dt_fork_count();
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
    pthread_mutex_unlock(&idle->guard.lock);
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
    pthread_mutex_unlock(&idle->guard.lock);
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
    pthread_mutex_unlock(&idle->guard.lock);
    dt_guard_release(&idle->guard);
}
