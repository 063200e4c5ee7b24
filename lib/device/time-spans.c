/* SPDX-License-Identifier: MIT */
#include "device/time-spans.h"

#include <stdlib.h>

#include "base/buffer.h"

_Thread_local struct dt_time_spans *dt_time_spans_of_thread;

void dt_time_spans_init(struct dt_time_spans *s)
{
    *s = (struct dt_time_spans){.items = NULL};
    pthread_mutex_init(&s->lock, NULL);
}

void dt_time_spans_release(struct dt_time_spans *s)
{
    free(s->items);
    pthread_mutex_destroy(&s->lock);
}

static void add(struct dt_time_span span)
{
    struct dt_time_spans *s = dt_time_spans_of_thread;
    if (s == NULL || span.begin == 0)
        return;
    span.end = dt_clock_now();
    pthread_mutex_lock(&s->lock);
    DT_GROW(s->items, s->count, s->capacity);
    s->items[s->count++] = span;
    pthread_mutex_unlock(&s->lock);
}

void dt_time_spans_end(enum dt_time_lane lane, const char *name, long number, double begin)
{
    add((struct dt_time_span){.lane = lane, .name = name, .number = number, .begin = begin});
}

void dt_time_spans_end_work(enum dt_time_lane lane, const char *name, double begin, double flops,
                            double bytes)
{
    add((struct dt_time_span){
        .lane = lane, .name = name, .number = -1, .begin = begin, .flops = flops, .bytes = bytes});
}
