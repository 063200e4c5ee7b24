/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "plot/curves.h"

struct dt_curve dt_curve_smooth(const struct dt_curve *curve)
{
    size_t count = curve->count, reach = count / 100 + 1;
    struct dt_curve smooth = {dt_alloc(count + 1, sizeof *smooth.items), count, count};
    double *sum = dt_alloc(count + 1, sizeof *sum);
    for (size_t i = 0; i < count; i++)
        sum[i + 1] = sum[i] + curve->items[i].loss;
    for (size_t i = 0; i < count; i++) {
        size_t half = i < reach ? i : reach;
        size_t end = i + half < count ? i + half + 1 : count;
        smooth.items[i] = curve->items[i];
        smooth.items[i].loss = (sum[end] - sum[i - half]) / (double)(end - (i - half));
    }
    free(sum);
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
    size_t stretch = curve->count > limit ? 2 * curve->count / limit + 1 : 1;
    for (size_t start = 0; start < curve->count; start += stretch) {
        size_t low = start, high = start;
        for (size_t i = start; i < start + stretch && i < curve->count; i++) {
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
