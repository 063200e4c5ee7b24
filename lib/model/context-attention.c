/* SPDX-License-Identifier: MIT */
#include "model/context-attention.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/fault.h"
#include "model/context-parallel.h"

void dt_context_attention_layout(struct dt_context_attention *c, struct dt_arena *a,
                                 const struct dt_model *m, int64_t rows, bool training)
{
    int64_t all = rows * m->part.cp_size, keys = 2 * dt_model_key_columns(m);
    int chunks = dt_context_parallel_chunks(&m->part);
    assert((chunks & (chunks - 1)) == 0 && chunks >> (DT_CONTEXT_ATTENTION_LEVELS - 1) <= 1);
    *c = (struct dt_context_attention){0};
    c->ordered = dt_arena_matrix_of(a, m->compute, all, keys);
    for (int i = 0; training && chunks >> i > 0; i++)
        c->sums[i] = dt_arena_matrix(a, all, keys);
    c->packed = training ? c->sums[1] : dt_arena_matrix_of(a, m->compute, all, keys);
}

/* --- the order of rows ------------------------------------------------------------------------ */

/* One attention call of a layer, and its scratch buffers for the rows of its batch. */
struct call {
    const struct dt_model *model;
    const struct dt_attention *how; /* of a chunk */
    int chunks;                     /* of this rank */
    struct dt_tensor packed;        /* R rows of each rank, of the compute type */
    struct dt_tensor ordered;
};

/* The first elements of a buffer as a matrix of rows. */
static struct dt_tensor first_rows(const struct dt_tensor *x, enum dt_dtype dtype, int64_t rows)
{
    return dt_matrix_of(dtype, x->data, rows, x->columns);
}

static struct call call_of(const struct dt_model *m, const struct dt_context_attention *scratch,
                           const struct dt_attention *how)
{
    int64_t all = how->batch * how->length;
    return (struct call){m, how, dt_context_parallel_chunks(&m->part),
                         first_rows(&scratch->packed, m->compute, all),
                         first_rows(&scratch->ordered, m->compute, all)};
}

/* The rows of a rank in packed. */
static struct dt_tensor rows_of_rank(const struct call *c, const struct dt_tensor *packed, int rank)
{
    int64_t rows = packed->rows / c->model->part.cp_size;
    return dt_tensor_rows(packed, rank * rows, rows);
}

/* Chunk i of a rank as a matrix with a row for each sequence: in packed, where the chunk's rows
 * are adjacent, and in ordered, where those of a sequence are. */
static struct dt_tensor packed_chunk(const struct call *c, const struct dt_tensor *packed, int rank,
                                     int i)
{
    const struct dt_attention *how = c->how;
    int64_t rows = how->batch * how->queries;
    struct dt_tensor x = dt_tensor_rows(packed, ((int64_t)rank * c->chunks + i) * rows, rows);
    return dt_matrix_of(x.dtype, x.data, how->batch, how->queries * x.columns);
}

static struct dt_tensor ordered_chunk(const struct call *c, const struct dt_tensor *ordered,
                                      int rank, int i)
{
    const struct dt_attention *how = c->how;
    int64_t start = dt_context_parallel_chunk_start_of(&c->model->part, rank, how->length, i);
    struct dt_tensor x =
        dt_matrix_of(ordered->dtype, ordered->data, how->batch, how->length * ordered->columns);
    return dt_tensor_columns(&x, start * ordered->columns, how->queries * ordered->columns);
}

/* ordered = packed, or packed = ordered. */
static void reorder(const struct call *c, struct dt_tensor *ordered, struct dt_tensor *packed,
                    bool pack)
{
    struct dt_device *dev = c->model->device;
    for (int rank = 0; rank < c->model->part.cp_size; rank++)
        for (int i = 0; i < c->chunks; i++) {
            struct dt_tensor one = packed_chunk(c, packed, rank, i);
            struct dt_tensor other = ordered_chunk(c, ordered, rank, i);
            if (pack || !dt_fault_injected(DT_FAULT_SKIP_BLOCK, rank))
                dev->ops->copy(dev, pack ? &one : &other, pack ? &other : &one);
        }
}

/* Keys and values, concatenated in rows of x. */
static struct dt_qkv halves(const struct dt_tensor *x)
{
    int64_t keys = x->columns / 2;
    return (struct dt_qkv){.k = dt_tensor_columns(x, 0, keys),
                           .v = dt_tensor_columns(x, keys, keys)};
}

static void copy_keys(const struct dt_model *m, struct dt_qkv *to, const struct dt_qkv *from)
{
    m->device->ops->copy(m->device, &to->k, &from->k);
    m->device->ops->copy(m->device, &to->v, &from->v);
}

/* --- collectives ------------------------------------------------------------------------------ */

static size_t bytes_of(const struct dt_tensor *x)
{
    return (size_t)(x->rows * x->columns) * dt_dtype_size(x->dtype);
}

/* Rank r's rows of packed come from rank r. */
static void all_gather(const struct call *c)
{
    const struct dt_model_part *part = &c->model->part;
    struct dt_error err; /* reported by the next wait that returns errors */
    if (part->cp_size == 1 || dt_comm_finish_ops(part->cp_group, c->model->device, &err) < 0)
        return;
    size_t *offsets = dt_alloc((size_t)part->cp_size + 1, sizeof *offsets);
    for (int i = 0; i <= part->cp_size; i++)
        offsets[i] = bytes_of(&c->packed) / (size_t)part->cp_size * (size_t)i;
    int rc = dt_comm_wait(part->cp_group,
                          dt_comm_all_gather(part->cp_group, c->packed.data, offsets), &err);
    (void)rc; /* likewise */
    free(offsets);
}

/* Each rank receives the gradients of its rows from every rank. */
static void exchange(const struct call *c, const struct dt_tensor *packed,
                     const struct dt_tensor *received)
{
    const struct dt_model_part *part = &c->model->part;
    struct dt_error err; /* likewise */
    if (dt_comm_finish_ops(part->cp_group, c->model->device, &err) < 0)
        return;
    struct dt_piece *pieces = dt_alloc(2 * (size_t)part->cp_size, sizeof *pieces);
    for (int i = 0; i < part->cp_size; i++) {
        struct dt_tensor sent = rows_of_rank(c, packed, i), from = rows_of_rank(c, received, i);
        pieces[i] = (struct dt_piece){sent.data, bytes_of(&sent)};
        pieces[part->cp_size + i] = (struct dt_piece){from.data, bytes_of(&from)};
    }
    int rc = dt_comm_wait(part->cp_group,
                          dt_comm_all_to_all(part->cp_group, pieces, pieces + part->cp_size), &err);
    (void)rc; /* likewise */
    free(pieces);
}

/* The sum over the ranks of this rank's rows, in its rows of packed or of received. */
static struct dt_tensor reduce_scatter(const struct call *c, const struct dt_tensor *packed,
                                       const struct dt_tensor *received)
{
    struct dt_device *dev = c->model->device;
    int size = c->model->part.cp_size, own = c->model->part.cp_rank;
    if (size > 1)
        exchange(c, packed, received);
    for (int step = 1; step < size; step *= 2)
        for (int i = 0; i + step < size; i += 2 * step) {
            int other = i + step;
            struct dt_tensor sum = rows_of_rank(c, i == own ? packed : received, i);
            struct dt_tensor x = rows_of_rank(c, other == own ? packed : received, other);
            dev->ops->combine(dev, &sum, 1, &x, 1);
        }
    return rows_of_rank(c, own == 0 ? packed : received, 0);
}

/* --- attention -------------------------------------------------------------------------------- */

static struct dt_qkv gather(const struct call *c, const struct dt_qkv *s)
{
    struct dt_tensor ordered = c->ordered, packed = c->packed;
    struct dt_tensor own = rows_of_rank(c, &packed, c->model->part.cp_rank);
    struct dt_qkv to = halves(&own);
    copy_keys(c->model, &to, s);
    all_gather(c);
    reorder(c, &ordered, &packed, false);
    return halves(&ordered);
}

static struct dt_attention attention_of(const struct call *c, int i)
{
    struct dt_attention how = *c->how;
    int64_t rows = how.batch * how.queries;
    how.past = dt_context_parallel_chunk_start(&c->model->part, how.length, i);
    how.key_stride = how.length;
    if (how.begins) {
        how.begins += i * rows;
        how.ends += i * rows;
    }
    return how;
}

static struct dt_tensor chunk(const struct call *c, const struct dt_tensor *x, int i)
{
    return dt_context_parallel_chunk_rows(&c->model->part, x, i);
}

void dt_context_attention_forward(const struct dt_model *m,
                                  const struct dt_context_attention *scratch, struct dt_tensor *y,
                                  struct dt_tensor *lse, const struct dt_qkv *s,
                                  const struct dt_attention *how)
{
    struct dt_device *dev = m->device;
    if (dt_context_parallel_chunks(&m->part) == 1) {
        dev->ops->attention_forward(dev, y, lse, &s->q, &s->k, &s->v, how);
        return;
    }
    struct call c = call_of(m, scratch, how);
    struct dt_qkv keys = gather(&c, s);
    for (int i = 0; i < c.chunks; i++) {
        struct dt_tensor q = chunk(&c, &s->q, i), to = chunk(&c, y, i), sums = chunk(&c, lse, i);
        struct dt_attention one = attention_of(&c, i);
        dev->ops->attention_forward(dev, &to, &sums, &q, &keys.k, &keys.v, &one);
    }
}

/* Operands of backward; all has the queries of this rank, and all keys and values. */
struct backward {
    struct call c;
    const struct dt_tensor *dy, *y, *lse;
    struct dt_qkv all;
};

/* Gradients of chunk i of the queries, and of all keys and values in dkeys. */
static void chunk_backward(const struct backward *b, int i, const struct dt_qkv *d,
                           const struct dt_tensor *dkeys)
{
    const struct call *c = &b->c;
    struct dt_device *dev = c->model->device;
    struct dt_qkv to = halves(dkeys);
    struct dt_attention how = attention_of(c, i);
    struct dt_tensor dq = chunk(c, &d->q, i), q = chunk(c, &b->all.q, i);
    struct dt_tensor dy = chunk(c, b->dy, i), y = chunk(c, b->y, i), lse = chunk(c, b->lse, i);
    dev->ops->attention_backward(dev, &dq, &to.k, &to.v, &dy, &y, &lse, &q, &b->all.k, &b->all.v,
                                 &how);
}

/* The binary tree over the chunks: sums holds a complete node for each bit of the number of chunks
 * so far, the largest first. The sum of all is in sums[0]. */
static void sum_chunks(const struct backward *b, const struct dt_qkv *d, struct dt_tensor *sums)
{
    struct dt_device *dev = b->c.model->device;
    for (int i = 0, count = 0; i < b->c.chunks; i++, count++) {
        chunk_backward(b, i, d, &sums[count]);
        for (int level = 0; i >> level & 1; level++, count--)
            dev->ops->combine(dev, &sums[count - 1], 1, &sums[count], 1);
    }
}

void dt_context_attention_backward(const struct dt_model *m,
                                   const struct dt_context_attention *scratch, struct dt_qkv *d,
                                   const struct dt_tensor *dy, const struct dt_tensor *y,
                                   const struct dt_tensor *lse, const struct dt_qkv *s,
                                   const struct dt_attention *how)
{
    if (dt_context_parallel_chunks(&m->part) == 1) {
        m->device->ops->attention_backward(m->device, &d->q, &d->k, &d->v, dy, y, lse, &s->q, &s->k,
                                           &s->v, how);
        return;
    }
    struct backward b = {call_of(m, scratch, how), dy, y, lse, .all = {s->q}};
    struct dt_qkv keys = gather(&b.c, s);
    struct dt_tensor sums[DT_CONTEXT_ATTENTION_LEVELS], packed;
    b.all.k = keys.k, b.all.v = keys.v;
    for (int i = 0; b.c.chunks >> i > 0; i++)
        sums[i] = first_rows(&scratch->sums[i], DT_DTYPE_F32, b.c.packed.rows);
    packed = first_rows(&scratch->packed, DT_DTYPE_F32, b.c.packed.rows);
    sum_chunks(&b, d, sums);
    reorder(&b.c, &sums[0], &packed, true);
    struct dt_tensor own = reduce_scatter(&b.c, &packed, &sums[0]);
    struct dt_qkv gradients = halves(&own);
    copy_keys(m, d, &gradients);
}
