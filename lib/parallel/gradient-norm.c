/* SPDX-License-Identifier: MIT */
#include "parallel/gradient-norm.h"

#include <stdlib.h>

void dt_gradient_norm_layout(struct dt_gradient_norm *s, struct dt_arena *arena)
{
    s->sum = dt_arena_take(arena, sizeof *s->sum);
}

void dt_gradient_norm_release(struct dt_gradient_norm *s)
{
    free(s->excluded);
    *s = (struct dt_gradient_norm){0};
}

void dt_gradient_norm_begin(const struct dt_gradient_norm *s, struct dt_device *dev)
{
    struct dt_tensor words = dt_matrix(s->sum, 1, (int64_t)(sizeof *s->sum / sizeof(float)));
    dev->ops->zero(dev, &words);
}

void dt_gradient_norm_add(const struct dt_gradient_norm *s, struct dt_device *dev,
                          struct dt_range run, const float *x)
{
    int64_t at = run.first;
    for (int i = 0; i < s->excluded_count && at < run.end; i++) {
        const struct dt_range *excluded = &s->excluded[i];
        int64_t end = excluded->first < run.end ? excluded->first : run.end;
        if (excluded->end <= at)
            continue;
        if (end > at)
            dev->ops->exact_sum(dev, s->sum, x + (at - run.first), end - at, true);
        at = excluded->end;
    }
    if (at < run.end)
        dev->ops->exact_sum(dev, s->sum, x + (at - run.first), run.end - at, true);
}

void dt_gradient_norm_end(const struct dt_gradient_norm *s, struct dt_device *dev,
                          struct dt_exact_sum *sum)
{
    dev->ops->download(dev, sum, s->sum, sizeof *sum);
}
