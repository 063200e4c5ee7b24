/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "plot/curves.h"

/* Sliding-window sums without subtraction, which would cancel small values after a huge one: a
 * window is the sum of two parts, split at middle.
 *
 *     first        middle        end
 *       |<- before ->|<- after ->|
 */
struct window {
    const struct dt_curve *curve;
    double *before; /* [i]: sum of points [i, middle) */
    size_t middle, end;
    double after; /* sum of points [middle, end) */
};

static double sum_of(struct window *w, size_t first, size_t end)
{
    const struct dt_metric *items = w->curve->items;
    for (; w->end < end; w->end++)
        w->after += items[w->end].loss;
    if (first >= w->middle) {
        double sum = 0;
        for (size_t i = w->middle = end; i-- > first;)
            w->before[i] = sum += items[i].loss;
        w->after = 0;
    }
    return w->before[first] + w->after;
}

size_t dt_curve_reach(size_t count)
{
    return count / 100;
}

struct dt_curve dt_curve_smooth(const struct dt_curve *curve)
{
    size_t count = curve->count, reach = dt_curve_reach(count);
    struct dt_curve smooth = {dt_alloc(count + 1, sizeof *smooth.items), count, count};
    struct window w = {.curve = curve, .before = dt_alloc(count, sizeof *w.before)};
    for (size_t i = 0; i < count; i++) {
        size_t nearer = i < count - 1 - i ? i : count - 1 - i,
               half = nearer < reach ? nearer : reach;
        smooth.items[i] = curve->items[i];
        smooth.items[i].loss = sum_of(&w, i - half, i + half + 1) / (double)(2 * half + 1);
    }
    free(w.before);
    return smooth;
}

static void add(struct dt_curve *curve, struct dt_metric point)
{
    DT_GROW(curve->items, curve->count, curve->capacity);
    curve->items[curve->count++] = point;
}

struct dt_curve dt_curve_thin(const struct dt_curve *curve, size_t limit)
{
    struct dt_curve thin = {NULL, 0, 0};
    size_t interval = curve->count > limit ? 2 * curve->count / limit + 1 : 1;
    for (size_t start = 0; start < curve->count; start += interval) {
        size_t low = start, high = start;
        for (size_t i = start; i < start + interval && i < curve->count; i++) {
            if (curve->items[i].loss < curve->items[low].loss)
                low = i;
            if (curve->items[i].loss > curve->items[high].loss)
                high = i;
        }
        add(&thin, curve->items[low < high ? low : high]);
        if (low != high)
            add(&thin, curve->items[low < high ? high : low]);
    }
    return thin;
}
