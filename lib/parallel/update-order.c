/* SPDX-License-Identifier: MIT */
#include "parallel/update-order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

void dt_update_order_init(struct dt_update_order *o, long step, long bound)
{
    *o = (struct dt_update_order){.bound = bound, .version = step, .begun = step};
}

void dt_update_order_release(struct dt_update_order *o)
{
    free(o->pending);
    *o = (struct dt_update_order){0};
}

void dt_update_order_follow(struct dt_update_order *o, const struct dt_ordered_update *recorded,
                            size_t count)
{
    size_t done = 0;
    while (done < count && recorded[done].step <= o->version)
        done++;
    o->recorded = recorded + done;
    o->recorded_count = count - done;
}

static bool has_begun(const struct dt_update_order *o, long batch)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->pending[i].batch == batch)
            return true;
    return false;
}

/* Recorded updates of the present version are among the next bound + 1. */
static long next_recorded(const struct dt_update_order *o)
{
    for (size_t i = 0; i < o->recorded_count && (long)i <= o->bound; i++)
        if (o->recorded[i].version == o->version && !has_begun(o, o->recorded[i].batch))
            return o->recorded[i].batch;
    return 0;
}

long dt_update_order_next_batch(const struct dt_update_order *o)
{
    if (o->recorded)
        return next_recorded(o);
    return (long)o->count <= o->bound ? o->begun + 1 : 0;
}

struct dt_pending_update *dt_update_order_begin(struct dt_update_order *o, int worker)
{
    const long batch = dt_update_order_next_batch(o);
    assert(batch > 0);
    DT_GROW(o->pending, o->count, o->capacity);
    struct dt_pending_update *p = &o->pending[o->count++];
    *p = (struct dt_pending_update){.batch = batch, .version = o->version, .worker = worker};
    o->begun = batch > o->begun ? batch : o->begun;
    return p;
}

void dt_update_order_arrive(struct dt_update_order *o, int worker)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->pending[i].worker == worker && o->pending[i].arrival == 0)
            o->pending[i].arrival = ++o->arrivals;
}

bool dt_update_order_has_pending(const struct dt_update_order *o, int worker)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->pending[i].worker == worker)
            return true;
    return false;
}

/* Whether those that began before can still be applied in time, one after the other. */
static bool leaves_time(const struct dt_update_order *o, size_t which)
{
    for (size_t i = 0; i < which; i++)
        if (o->version + 1 + (long)i - o->pending[i].version > o->bound)
            return false;
    return true;
}

static bool may_follow(const struct dt_update_order *o, size_t which)
{
    if (o->recorded == NULL)
        return leaves_time(o, which);
    return o->recorded_count > 0 && o->pending[which].batch == o->recorded->batch &&
           next_recorded(o) == 0;
}

const struct dt_pending_update *dt_update_order_next(const struct dt_update_order *o)
{
    const struct dt_pending_update *first = NULL;
    for (size_t i = 0; i < o->count; i++) {
        const struct dt_pending_update *p = &o->pending[i];
        if (p->arrival > 0 && (first == NULL || p->arrival < first->arrival) && may_follow(o, i))
            first = p;
    }
    return first;
}

struct dt_ordered_update dt_update_order_apply(struct dt_update_order *o,
                                               const struct dt_pending_update *p)
{
    const struct dt_ordered_update u = {++o->version, p->batch, p->version};
    const size_t which = (size_t)(p - o->pending);
    memmove(o->pending + which, o->pending + which + 1, (--o->count - which) * sizeof *o->pending);
    if (o->recorded) {
        o->recorded++;
        o->recorded_count--;
    }
    return u;
}
