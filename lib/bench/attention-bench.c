/* SPDX-License-Identifier: MIT */
#include "bench/attention-bench.h"

#include <math.h>

#include "base/clock.h"
#include "device/arena.h"

struct bench {
    struct dt_arena arena;
    struct dt_tensor q, k, v, y, lse, dy, dq, dk, dv;
};

static void lay_out(struct bench *b, const struct dt_attention_size *s)
{
    int64_t rows = s->batch * s->length, kv_width = s->width / s->heads * s->kv_heads;
    struct dt_tensor *const wide[] = {&b->q, &b->y, &b->dy, &b->dq};
    struct dt_tensor *const narrow[] = {&b->k, &b->v, &b->dk, &b->dv};
    for (int i = 0; i < 4; i++) {
        *wide[i] = dt_arena_matrix_of(&b->arena, s->type, rows, s->width);
        *narrow[i] = dt_arena_matrix_of(&b->arena, s->type, rows, kv_width);
    }
    b->lse = dt_arena_matrix(&b->arena, rows, s->heads);
}

/* Seconds; several faster calls are timed together. */
#define SHORT 0.005

static int time_both(struct dt_device *dev, struct bench *b, const struct dt_attention *how,
                     double seconds, struct dt_attention_speed *speed, struct dt_error *err)
{
    double begin = dt_clock_now();
    int passes = 1;
    speed->forward = speed->backward = INFINITY;
    for (int i = 0; i < 3 || dt_clock_now() - begin < seconds; i++) {
        double start = dt_clock_now();
        for (int pass = 0; pass < passes; pass++)
            dev->ops->attention_forward(dev, &b->y, &b->lse, &b->q, &b->k, &b->v, how);
        DT_TRY(dev->ops->synchronize(dev, err));
        double middle = dt_clock_now();
        for (int pass = 0; pass < passes; pass++)
            dev->ops->attention_backward(dev, &b->dq, &b->dk, &b->dv, &b->dy, &b->y, &b->lse, &b->q,
                                         &b->k, &b->v, how);
        DT_TRY(dev->ops->synchronize(dev, err));
        speed->forward = fmin(speed->forward, (middle - start) / passes);
        speed->backward = fmin(speed->backward, (dt_clock_now() - middle) / passes);
        passes = 1 + (int)(SHORT / speed->forward);
    }
    return 0;
}

int dt_attention_bench(struct dt_device *dev, const struct dt_attention_size *size, double seconds,
                       struct dt_attention_speed *speed, struct dt_error *err)
{
    struct bench b = {.arena = {0}};
    int rc = 0;
    const struct dt_attention how = {.batch = size->batch,
                                     .heads = size->heads,
                                     .kv_heads = size->kv_heads,
                                     .queries = size->length,
                                     .key_stride = size->length,
                                     .bidirectional = size->bidirectional,
                                     .window = size->window,
                                     .scale = size->scale,
                                     .softcap = size->softcap};
    double pairs = (double)size->batch * (double)size->length * size->keys;
    double product = 2 * pairs * (double)size->width;
    lay_out(&b, size);
    DT_TRY(dt_arena_allocate(&b.arena, dev, err));
    lay_out(&b, size);
    struct dt_tensor *const inputs[] = {&b.q, &b.k, &b.v, &b.dy};
    for (uint64_t i = 0; i < 4 && rc == 0; i++)
        rc = dt_device_fill(dev, inputs[i], i + 1, err);
    speed->forward_flops = 2 * product;  /* q k', and its product with v */
    speed->backward_flops = 5 * product; /* recomputed scores, and four gradients */
    speed->bytes =
        (double)dt_dtype_size(size->type) * 2 *
        ((double)(b.q.rows * b.q.columns) + (double)(b.k.rows * b.k.columns)); /* q y k v */
    rc = rc < 0 ? rc : time_both(dev, &b, &how, seconds, speed, err);
    dt_arena_release(&b.arena, dev);
    return rc;
}
