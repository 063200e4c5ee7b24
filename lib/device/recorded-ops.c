/* SPDX-License-Identifier: MIT */
#include "device/recorded-ops.h"

#include <assert.h>

#include "device/time-spans.h"

static const struct dt_ops *engine_ops; /* those that are recorded; NULL: none */
static _Thread_local int depth;         /* an engine's op may call others */

static double enter(void)
{
    return depth++ == 0 ? dt_time_spans_begin() : 0;
}

static void leave(struct dt_device *dev, const char *name, double begin, double flops, double bytes)
{
    struct dt_error ignored; /* the next synchronize of the caller reports it */
    if (--depth > 0 || begin == 0)
        return;
    if (dev->engine->own_memory)
        (void)!engine_ops->synchronize(dev, &ignored);
    dt_time_spans_end_work(DT_TIME_LANE_OPERATION, name, begin, flops, bytes);
}

static double bytes_of(const struct dt_tensor *x)
{
    return x && x->data ? (double)(x->rows * x->columns) * (double)dt_dtype_size(x->dtype) : 0;
}

static double bytes_of_all(const struct dt_tensor *const *list, int count)
{
    double bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += bytes_of(list[i]);
    return bytes;
}

#define BYTES(...)                                                                                 \
    bytes_of_all((const struct dt_tensor *const[]){__VA_ARGS__},                                   \
                 (int)(sizeof((const struct dt_tensor *const[]){__VA_ARGS__}) / sizeof(void *)))

static double elements(const struct dt_tensor *x)
{
    return (double)(x->rows * x->columns);
}

static double product_flops(const struct dt_tensor *c, const struct dt_tensor *a,
                            const struct dt_matmul *how)
{
    double inner = (double)(how->transpose_a ? a->rows : a->columns);
    return 2 * elements(c) * inner * (1 + how->more_count);
}

/* Keys per query: half of a causal sequence, or the window. */
static double attention_flops(const struct dt_tensor *q, const struct dt_attention *how)
{
    double keys = (double)(how->past + how->queries);
    if (!how->bidirectional)
        keys = (double)how->past + (double)(how->queries + 1) / 2;
    if (how->window > 0 && keys > (double)how->window)
        keys = (double)how->window;
    return 4 * elements(q) * keys;
}

/* An op: its name, parameters, arguments, operations and bytes. */
#define RECORDED(op, parameters, arguments, flops, bytes)                                          \
    static void record_##op parameters                                                             \
    {                                                                                              \
        double begin = enter();                                                                    \
        engine_ops->op arguments;                                                                  \
        leave(dev, #op, begin, flops, bytes);                                                      \
    }

#define D struct dt_device *dev
#define T struct dt_tensor
#define C const struct dt_tensor

RECORDED(upload, (D, void *to, const void *host, size_t n), (dev, to, host, n), 0, (double)n)
RECORDED(download, (D, void *host, const void *from, size_t n), (dev, host, from, n), 0, (double)n)
RECORDED(copy, (D, T *to, C *from), (dev, to, from), 0, BYTES(to, from))
RECORDED(zero, (D, T *x), (dev, x), 0, bytes_of(x))
RECORDED(combine, (D, T *y, float b, C *x, float a), (dev, y, b, x, a), 3 * elements(y),
         BYTES(y, y, x))
RECORDED(matmul, (D, T *c, C *a, C *b, const struct dt_matmul *how), (dev, c, a, b, how),
         product_flops(c, a, how), BYTES(c, a, b))
RECORDED(activation_forward, (D, T *y, C *x, enum dt_activation f), (dev, y, x, f), elements(y),
         BYTES(y, x))
RECORDED(activation_backward, (D, T *dx, C *x, enum dt_activation f), (dev, dx, x, f), elements(x),
         BYTES(dx, dx, x))
RECORDED(dropout, (D, T *x, int64_t length, const struct dt_dropout *how), (dev, x, length, how),
         elements(x), BYTES(x, x))
RECORDED(bias_backward, (D, T *dbias, C *dy, int parts), (dev, dbias, dy, parts), elements(dy),
         BYTES(dbias, dy))
RECORDED(embedding_forward,
         (D, T *y, const int32_t *ids, C *tokens, C *positions, int64_t length, int64_t past),
         (dev, y, ids, tokens, positions, length, past), 0, BYTES(y, y))
RECORDED(embedding_backward,
         (D, T *dtokens, T *dpositions, C *dy, const int32_t *ids, int64_t length, int parts),
         (dev, dtokens, dpositions, dy, ids, length, parts), elements(dy), BYTES(dy, dy))
RECORDED(gather, (D, T *y, C *x, const int32_t *rows), (dev, y, x, rows), 0, BYTES(y, y))
RECORDED(scatter, (D, T *y, C *x, const int32_t *rows), (dev, y, x, rows), 0, BYTES(x, x))
RECORDED(norm_forward, (D, T *y, T *stats, T *sum, C *x, C *add, C *weight, C *bias, float epsilon),
         (dev, y, stats, sum, x, add, weight, bias, epsilon), 8 * elements(y),
         BYTES(y, sum, x, add))
RECORDED(norm_backward,
         (D, T *dsum, T *dweight, T *dbias, C *dy, C *sum, C *weight, C *stats, int parts),
         (dev, dsum, dweight, dbias, dy, sum, weight, stats, parts), 12 * elements(dy),
         BYTES(dsum, dsum, dy, sum))
RECORDED(rms_norm_forward,
         (D, T *y, T *rstd, T *sum, C *x, C *add, C *weight, float offset, float epsilon),
         (dev, y, rstd, sum, x, add, weight, offset, epsilon), 5 * elements(y),
         BYTES(y, sum, x, add))
RECORDED(rms_norm_backward,
         (D, T *dsum, T *dweight, C *dy, C *sum, C *weight, float offset, C *rstd, int parts),
         (dev, dsum, dweight, dy, sum, weight, offset, rstd, parts), 9 * elements(dy),
         BYTES(dsum, dsum, dy, sum))
RECORDED(rope, (D, T *x, C *table, int64_t size, int64_t length, int64_t past, bool inverse),
         (dev, x, table, size, length, past, inverse), 3 * elements(x), BYTES(x, x))
RECORDED(gated_forward, (D, T *y, C *gate, C *up, enum dt_activation f), (dev, y, gate, up, f),
         2 * elements(y), BYTES(y, gate, up))
RECORDED(gated_backward, (D, T *dgate, T *dy, C *gate, C *up, enum dt_activation f),
         (dev, dgate, dy, gate, up, f), 4 * elements(dy), BYTES(dgate, dy, dy, gate, up))
RECORDED(attention_forward, (D, T *y, T *lse, C *q, C *k, C *v, const struct dt_attention *how),
         (dev, y, lse, q, k, v, how), attention_flops(q, how), BYTES(y, lse, q, k, v))
RECORDED(attention_backward,
         (D, T *dq, T *dk, T *dv, C *dy, C *y, C *lse, C *q, C *k, C *v,
          const struct dt_attention *how),
         (dev, dq, dk, dv, dy, y, lse, q, k, v, how), 2.5 * attention_flops(q, how),
         BYTES(dq, dk, dv, dy, y, lse, q, k, v))
RECORDED(map_logits, (D, T *x, const struct dt_logit_map *map), (dev, x, map), elements(x),
         BYTES(x, x))
RECORDED(cross_entropy,
         (D, float *losses, float *hits, T *x, const int32_t *targets,
          const struct dt_cross_entropy *how),
         (dev, losses, hits, x, targets, how), 5 * elements(x), BYTES(x, x))
RECORDED(logit_sums,
         (D, T *sums, C *x, const int32_t *targets, const struct dt_logit_parts *parts,
          const struct dt_logit_map *map),
         (dev, sums, x, targets, parts, map), 3 * elements(x), BYTES(sums, x))
RECORDED(cross_entropy_of_sums,
         (D, float *losses, float *hits, T *x, C *sums, const int32_t *targets,
          const struct dt_logit_parts *parts, const struct dt_cross_entropy *how),
         (dev, losses, hits, x, sums, targets, parts, how), 3 * elements(x), BYTES(x, x, sums))
RECORDED(exact_sum, (D, struct dt_exact_sum *sum, const float *x, int64_t n, bool squares),
         (dev, sum, x, n, squares), 2 * (double)n, 4 * (double)n)
RECORDED(take_largest, (D, float *x, int64_t n, int64_t k, int32_t *indices, float *values),
         (dev, x, n, k, indices, values), (double)n, 4 * (double)n)
RECORDED(orthonormalize, (D, T *x), (dev, x), 2 * elements(x) * (double)x->rows, BYTES(x, x))
/* Parameters, gradients and one or two moments are read, and all but gradients written. */
RECORDED(update,
         (D, float *parameters, float *const *state, const float *gradients, int64_t n,
          const struct dt_update *how),
         (dev, parameters, state, gradients, n, how), 10 * (double)n,
         4 * (double)n * (3 + 2 * dt_update_slots(how->rule)))
RECORDED(hash, (D, struct dt_sum_hash *sum, C *x, uint64_t seed, uint64_t first, uint64_t stride),
         (dev, sum, x, seed, first, stride), 0, bytes_of(x))

static double record_sum_squares(D, const float *x, int64_t n)
{
    double begin = enter(), sum = engine_ops->sum_squares(dev, x, n);
    leave(dev, "sum_squares", begin, 2 * (double)n, 4 * (double)n);
    return sum;
}

static struct dt_ops recorded;

void dt_device_record_ops(struct dt_device *dev)
{
    assert(dev->ops != &recorded && (engine_ops == NULL || engine_ops == dev->ops));
    engine_ops = dev->ops;
    recorded = *dev->ops; /* the others are not recorded */
#define TAKE(op) recorded.op = record_##op
    TAKE(upload);
    TAKE(download);
    TAKE(copy);
    TAKE(zero);
    TAKE(combine);
    TAKE(matmul);
    TAKE(activation_forward);
    TAKE(activation_backward);
    TAKE(dropout);
    TAKE(bias_backward);
    TAKE(embedding_forward);
    TAKE(embedding_backward);
    TAKE(gather);
    TAKE(scatter);
    TAKE(norm_forward);
    TAKE(norm_backward);
    TAKE(rms_norm_forward);
    TAKE(rms_norm_backward);
    TAKE(rope);
    TAKE(gated_forward);
    TAKE(gated_backward);
    TAKE(attention_forward);
    TAKE(attention_backward);
    TAKE(map_logits);
    TAKE(cross_entropy);
    TAKE(logit_sums);
    TAKE(cross_entropy_of_sums);
    TAKE(exact_sum);
    TAKE(sum_squares);
    TAKE(take_largest);
    TAKE(orthonormalize);
    TAKE(update);
    TAKE(hash);
    dev->ops = &recorded;
}

void dt_device_end_recording(struct dt_device *dev)
{
    dev->ops = engine_ops;
}
