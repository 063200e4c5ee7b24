/* SPDX-License-Identifier: MIT */
#include "device/attention-bench.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/progress.h"
#include "base/rng.h"
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
        *wide[i] = dt_arena_matrix(&b->arena, rows, s->width);
        *narrow[i] = dt_arena_matrix(&b->arena, rows, kv_width);
    }
    b->lse = dt_arena_matrix(&b->arena, rows, s->heads);
}

static void fill(struct dt_device *dev, struct dt_tensor *x, uint64_t key)
{
    size_t count = (size_t)(x->rows * x->columns);
    float *values = dt_alloc(count, sizeof *values);
    struct dt_rng rng;
    dt_rng_init(&rng, key);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)dt_rng_double(&rng) - 0.5f;
    dev->ops->upload(dev, x->data, values, count * sizeof *values);
    free(values);
}

static int time_both(struct dt_device *dev, struct bench *b, const struct dt_attention *how,
                     double seconds, struct dt_attention_speed *speed, struct dt_error *err)
{
    double begin = dt_now();
    speed->forward = speed->backward = INFINITY;
    for (int i = 0; i < 3 || dt_now() - begin < seconds; i++) {
        double start = dt_now();
        dev->ops->attention_forward(dev, &b->y, &b->lse, &b->q, &b->k, &b->v, how);
        DT_TRY(dev->ops->synchronize(dev, err));
        double middle = dt_now();
        dev->ops->attention_backward(dev, &b->dq, &b->dk, &b->dv, &b->dy, &b->y, &b->lse, &b->q,
                                     &b->k, &b->v, how);
        DT_TRY(dev->ops->synchronize(dev, err));
        speed->forward = fmin(speed->forward, middle - start);
        speed->backward = fmin(speed->backward, dt_now() - middle);
    }
    return 0;
}

int dt_bench_attention(struct dt_device *dev, const struct dt_attention_size *size, double seconds,
                       struct dt_attention_speed *speed, struct dt_error *err)
{
    struct bench b = {.arena = {0}};
    const struct dt_attention how = {.batch = size->batch,
                                     .heads = size->heads,
                                     .kv_heads = size->kv_heads,
                                     .queries = size->length,
                                     .key_stride = size->length,
                                     .bidirectional = size->bidirectional};
    double pairs = (double)size->batch * (double)size->length * (double)size->length;
    double product = 2 * pairs * (double)size->width / (size->bidirectional ? 1 : 2);
    lay_out(&b, size);
    DT_TRY(dt_arena_allocate(&b.arena, dev, err));
    lay_out(&b, size);
    struct dt_tensor *const inputs[] = {&b.q, &b.k, &b.v, &b.dy};
    for (uint64_t i = 0; i < 4; i++)
        fill(dev, inputs[i], i + 1);
    speed->forward_flops = 2 * product;  /* q k' and its product with v */
    speed->backward_flops = 5 * product; /* these scores again, and four gradients */
    speed->bytes =
        sizeof(float) * 2.0 *
        ((double)(b.q.rows * b.q.columns) + (double)(b.k.rows * b.k.columns)); /* q y k v */
    int rc = time_both(dev, &b, &how, seconds, speed, err);
    dt_arena_release(&b.arena, dev);
    return rc;
}
