/* SPDX-License-Identifier: MIT */
#include "parallel/gradient-compression.h"

#include <math.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "math/rng.h"

int64_t dt_compression_q_elements(const struct dt_compression *c, const struct dt_param *p)
{
    bool matrix = p->rank == 2 && p->shape[0] > c->rank && p->shape[1] > c->rank;
    return matrix && c->kind == DT_COMPRESS_POWERSGD ? p->shape[1] * c->rank : 0;
}

void dt_compression_init(struct dt_compression *c, struct dt_host_staging *staging,
                         const struct dt_table *t, const struct dt_settings *s)
{
    *c = (struct dt_compression){.staging = staging,
                                 .comm = staging->comm,
                                 .device = staging->device,
                                 .table = t,
                                 .fraction = s->distributed.compress_share,
                                 .rank = s->distributed.compress_rank};
    if (dt_comm_size(c->comm) > 1)
        c->kind = (enum dt_compress)s->distributed.compress;
    for (int i = 0; i < t->count; i++)
        c->q_elements += dt_compression_q_elements(c, &t->params[i]);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int64_t bucket_elements(const struct dt_compression *c, int bucket)
{
    return c->table->buckets[bucket + 1] - c->table->buckets[bucket];
}

/* P of all matrices of the bucket, and its other tensors. */
static int64_t packed_elements(const struct dt_compression *c, int bucket)
{
    int64_t elements = 0;
    for (int i = 0; i < c->table->count; i++) {
        const struct dt_param *p = &c->table->params[i];
        if (p->bucket == bucket)
            elements += dt_compression_q_elements(c, p) > 0 ? c->rank * p->shape[0] : p->count;
    }
    return elements;
}

/* The maximum of count over buckets, if the compression is of that kind; otherwise 0. */
static int64_t max_over_buckets(const struct dt_compression *c, enum dt_compress kind,
                                int64_t (*count)(const struct dt_compression *, int))
{
    int64_t most = 0;
    for (int b = 0; c->kind == kind && b < c->table->bucket_count; b++)
        most = count(c, b) > most ? count(c, b) : most;
    return most;
}

/* Elements that a rank sends of n, with topk. */
static int64_t sent_of(const struct dt_compression *c, int64_t n)
{
    return (int64_t)ceil(c->fraction * (double)n);
}

/* Scratch for the largest bucket. */
static void lay_out_scratch(struct dt_compression *c, struct dt_arena *arena)
{
    int64_t most = max_over_buckets(c, DT_COMPRESS_BF16, bucket_elements),
            size = dt_comm_size(c->comm);
    int64_t taken = sent_of(c, max_over_buckets(c, DT_COMPRESS_TOPK, bucket_elements));
    int64_t packed = max_over_buckets(c, DT_COMPRESS_POWERSGD, packed_elements);
    size_t mine = (size_t)((most + size - 1) / size), all = (size_t)(size * taken);
    c->rounded = dt_arena_take(arena, (size_t)most * sizeof *c->rounded);
    c->received = dt_arena_take(arena, (size_t)size * mine * sizeof *c->received);
    c->sum = dt_arena_take(arena, mine * sizeof *c->sum);
    c->indices = dt_arena_take(arena, all * sizeof *c->indices);
    c->values = dt_arena_take(arena, all * sizeof *c->values);
    c->packed = dt_arena_take(arena, (size_t)packed * sizeof *c->packed);
}

/* The initial Q: random, the same on all ranks. */
static void initialize_q(const struct dt_compression *c)
{
    float *q = dt_alloc((size_t)c->q_elements, sizeof *q);
    for (int64_t i = 0; i < c->q_elements; i += 4) {
        struct dt_random bits = dt_random(0, 'Q', (uint64_t)i);
        for (int64_t j = 0; j < 4 && i + j < c->q_elements; j++)
            q[i + j] = dt_rng_uniform_float(bits.word[j]) - 0.5f;
    }
    c->device->ops->upload(c->device, c->q, q, (size_t)c->q_elements * sizeof *q);
    free(q);
}

static int64_t residual_elements(const struct dt_compression *c)
{
    return dt_compress_has_error_feedback(c->kind) ? c->table->gradient_elements : 0;
}

void dt_compression_layout(struct dt_compression *c, struct dt_arena *arena)
{
    size_t elements = (size_t)residual_elements(c), q_elements = (size_t)c->q_elements;
    c->residual = dt_arena_take(arena, elements * sizeof(float));
    c->q = dt_arena_take(arena, q_elements * sizeof(float));
    c->kept = dt_arena_take(arena, (elements + q_elements) * sizeof(float));
    lay_out_scratch(c, arena);
    if (c->residual && c->kind == DT_COMPRESS_POWERSGD)
        initialize_q(c);
}

void dt_compression_rescale(struct dt_compression *c, double factor)
{
    int64_t n = residual_elements(c);
    struct dt_tensor errors = dt_matrix(c->residual, 1, n);
    if (n > 0)
        c->device->ops->combine(c->device, &errors, 0, &errors, (float)factor);
}

/* Copies n elements to kept + at, or back. */
static void keep(struct dt_compression *c, float *values, int64_t at, int64_t n, bool back)
{
    if (n == 0)
        return;
    struct dt_tensor now = dt_matrix(values, 1, n), before = dt_matrix(c->kept + at, 1, n);
    c->device->ops->copy(c->device, back ? &now : &before, back ? &before : &now);
}

void dt_compression_begin(struct dt_compression *c)
{
    keep(c, c->residual, 0, residual_elements(c), false);
    keep(c, c->q, residual_elements(c), c->q_elements, false);
}

void dt_compression_undo(struct dt_compression *c)
{
    keep(c, c->residual, 0, residual_elements(c), true);
    keep(c, c->q, residual_elements(c), c->q_elements, true);
}

/* --- bf16 ------------------------------------------------------------------------------------- */

/* Adds all ranks' pieces of this rank's part, in the order of the ranks. */
static void sum_pieces(const struct dt_compression *c, struct dt_tensor *own)
{
    const struct dt_ops *ops = c->device->ops;
    struct dt_tensor sum = dt_matrix(c->sum, 1, own->columns);
    for (int r = 0; r < dt_comm_size(c->comm) && own->columns > 0; r++) {
        uint16_t *piece = c->received + (int64_t)r * own->columns;
        struct dt_tensor part = dt_matrix_of(DT_DTYPE_BF16, piece, 1, own->columns);
        ops->combine(c->device, &sum, r > 0, r == dt_comm_rank(c->comm) ? own : &part, 1);
    }
    ops->copy(c->device, own, &sum);
}

static int exchange_pieces(const struct dt_compression *c, const size_t *bytes, size_t mine,
                           struct dt_error *err)
{
    int size = dt_comm_size(c->comm);
    struct dt_piece *sends = dt_alloc(2 * (size_t)size, sizeof *sends), *receives = sends + size;
    for (int r = 0; r < size; r++) {
        sends[r] = (struct dt_piece){(char *)c->rounded + bytes[r], bytes[r + 1] - bytes[r]};
        receives[r] = (struct dt_piece){(char *)c->received + (size_t)r * mine, mine};
    }
    int rc = dt_host_staging_all_to_all(c->staging, sends, receives, err);
    free(sends);
    return rc;
}

/* Reduce-scatter, then all-gather, both of bf16. */
static int reduce_bf16(struct dt_compression *c, float *values, int64_t n, struct dt_error *err)
{
    const struct dt_ops *ops = c->device->ops;
    int size = dt_comm_size(c->comm), rank = dt_comm_rank(c->comm);
    size_t *bytes = dt_alloc((size_t)size + 1, sizeof *bytes);
    struct dt_range mine = dt_range_part(n, rank, size);
    struct dt_tensor all = dt_matrix(values, 1, n);
    struct dt_tensor rounded = dt_matrix_of(DT_DTYPE_BF16, c->rounded, 1, n);
    struct dt_tensor own = dt_tensor_columns(&rounded, mine.first, dt_range_count(mine));
    for (int r = 0; r <= size; r++)
        bytes[r] = (size_t)dt_range_part_first(n, r, size) * sizeof *c->rounded;
    ops->copy(c->device, &rounded, &all);
    int rc = exchange_pieces(c, bytes, bytes[rank + 1] - bytes[rank], err);
    sum_pieces(c, &own);
    rc = rc < 0 ? rc : dt_host_staging_all_gather(c->staging, c->rounded, bytes, err);
    ops->copy(c->device, &all, &rounded);
    free(bytes);
    return rc;
}

/* --- topk ------------------------------------------------------------------------------------- */

/* All-gathers every rank's k indices and values. */
static int gather_topk(const struct dt_compression *c, int64_t k, struct dt_error *err)
{
    size_t size = (size_t)dt_comm_size(c->comm), *bytes = dt_alloc(size + 1, sizeof *bytes);
    for (size_t r = 0; r <= size; r++)
        bytes[r] = r * (size_t)k * sizeof *c->values;
    int rc = dt_host_staging_all_gather(c->staging, c->indices, bytes, err);
    rc = rc < 0 ? rc : dt_host_staging_all_gather(c->staging, c->values, bytes, err);
    free(bytes);
    return rc;
}

static bool are_finite(const struct dt_compression *c, const float *x, int64_t n)
{
    return isfinite(c->device->ops->sum_squares(c->device, x, n));
}

static int reduce_topk(struct dt_compression *c, float *residual_values, float *values, int64_t n,
                       struct dt_error *err)
{
    struct dt_device *dev = c->device;
    int64_t k = sent_of(c, n), own = dt_comm_rank(c->comm) * k;
    int64_t all = dt_comm_size(c->comm) * k;
    struct dt_tensor rest = dt_matrix(values, 1, n), residual = dt_matrix(residual_values, 1, n);
    struct dt_tensor rows = dt_matrix(values, n, 1), largest = dt_matrix(c->values, all, 1);
    dev->ops->combine(dev, &rest, 1, &residual, 1);
    dev->ops->take_largest(dev, values, n, k, c->indices + own, c->values + own);
    DT_TRY(gather_topk(c, k, err));
    if (are_finite(c, c->values, all))
        dev->ops->copy(dev, &residual, &rest);
    dev->ops->zero(dev, &rest);
    dev->ops->embedding_backward(dev, &rows, NULL, &largest, c->indices, 1, 1); /* scatter-add */
    return 0;
}

/* --- powersgd --------------------------------------------------------------------------------- */

/* A matrix of a bucket: its residual; its gradient, which becomes the sum; and its factors: p, rank
 * x rows, and q, rank x columns. */
struct product {
    struct dt_tensor residual, values, p, q;
};

/* gradient += residual; p = q gradient', of this rank. */
static void project(const struct dt_compression *c, struct product *m)
{
    const struct dt_ops *ops = c->device->ops;
    ops->combine(c->device, &m->values, 1, &m->residual, 1);
    ops->matmul(c->device, &m->p, &m->q, &m->values, &(struct dt_matmul){.transpose_b = true});
}

/* x = p' q */
static void expand(const struct dt_compression *c, struct product *m, struct dt_tensor *x)
{
    c->device->ops->matmul(c->device, x, &m->p, &m->q,
                           &(struct dt_matmul){.transpose_a = true, .replicated = true});
}

static void expand_values(const struct dt_compression *c, struct product *m)
{
    expand(c, m, &m->values);
}

/* Orthonormalizes p, which is the sum over ranks by now; q = p gradient, of this rank; residual =
 * gradient - p' q. */
static void project_back(const struct dt_compression *c, struct product *m)
{
    const struct dt_ops *ops = c->device->ops;
    ops->orthonormalize(c->device, &m->p);
    ops->matmul(c->device, &m->q, &m->p, &m->values, &(struct dt_matmul){.accumulate = false});
    expand(c, m, &m->residual);
    ops->combine(c->device, &m->residual, -1, &m->values, 1);
}

static void pack(const struct dt_compression *c, struct dt_tensor *own, struct dt_tensor *packed)
{
    c->device->ops->copy(c->device, packed, own);
}

static void unpack(const struct dt_compression *c, struct dt_tensor *own, struct dt_tensor *packed)
{
    c->device->ops->copy(c->device, own, packed);
}

/* Calls matrix for each matrix of a bucket, with its factors, and vector for each other tensor,
 * with its place in packed. q: of the bucket. */
static void for_each_tensor(const struct dt_compression *c, int bucket, float *values, float *q,
                            void (*matrix)(const struct dt_compression *, struct product *),
                            void (*vector)(const struct dt_compression *, struct dt_tensor *own,
                                           struct dt_tensor *packed))
{
    const struct dt_table *t = c->table;
    float *packed = c->packed;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        int64_t rows = p->shape[0], columns = p->shape[1],
                q_elements = dt_compression_q_elements(c, p);
        float *own = values + (p->offset - t->buckets[bucket]);
        struct dt_tensor from = dt_matrix(own, 1, p->count), to = dt_matrix(packed, 1, p->count);
        if (p->bucket != bucket)
            continue;
        if (q_elements > 0)
            matrix(c, &(struct product){dt_matrix(c->residual + p->offset, rows, columns),
                                        dt_matrix(own, rows, columns),
                                        dt_matrix(packed, c->rank, rows),
                                        dt_matrix(q, c->rank, columns)});
        else if (vector)
            vector(c, &from, &to);
        packed += q_elements > 0 ? c->rank * rows : p->count;
        q += q_elements;
    }
}

/* One all-reduce of every P and uncompressed tensor of the bucket, then one of every Q. */
static int reduce_powersgd(struct dt_compression *c, int bucket, float *values,
                           struct dt_error *err)
{
    const struct dt_table *t = c->table;
    int64_t packed = packed_elements(c, bucket), q_elements = 0;
    struct dt_tensor first = dt_matrix(values, 1, 1);
    float *q = c->q;
    for (int i = 0; i < t->count; i++) {
        int64_t own = dt_compression_q_elements(c, &t->params[i]);
        q += t->params[i].bucket < bucket ? own : 0;
        q_elements += t->params[i].bucket == bucket ? own : 0;
    }
    for_each_tensor(c, bucket, values, q, project, pack);
    DT_TRY(dt_host_staging_all_reduce(c->staging, c->packed, packed, err));
    if (!are_finite(c, c->packed, packed)) {
        c->device->ops->combine(c->device, &first, 0, &first, NAN);
        return 0;
    }
    for_each_tensor(c, bucket, values, q, project_back, NULL);
    DT_TRY(dt_host_staging_all_reduce(c->staging, q, q_elements, err));
    for_each_tensor(c, bucket, values, q, expand_values, unpack);
    return 0;
}

int dt_compression_all_reduce(struct dt_compression *c, int bucket, float *values,
                              struct dt_error *err)
{
    int64_t first = c->table->buckets[bucket], n = c->table->buckets[bucket + 1] - first;
    if (n == 0)
        return 0;
    if (c->kind == DT_COMPRESS_BF16)
        return reduce_bf16(c, values, n, err);
    if (c->kind == DT_COMPRESS_TOPK)
        return reduce_topk(c, c->residual + first, values, n, err);
    return first < c->table->elements ? reduce_powersgd(c, bucket, values, err)
                                      : dt_host_staging_all_reduce(c->staging, values, n, err);
}
