/* SPDX-License-Identifier: MIT */
#include "model/ring-attention.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"
#include "model/context-parallel.h"

enum channel { BLOCKS, GRADIENTS };

size_t dt_ring_message(const struct dt_model_config *m, int64_t rows)
{
    return (size_t)(rows * 2 * dt_model_kv_width(m)) * sizeof(float);
}

void dt_ring_layout(struct dt_ring *r, struct dt_arena *a, const struct dt_model *m, int64_t rows,
                    bool training)
{
    int64_t queries = dt_model_query_columns(m), keys = 2 * dt_model_key_columns(m);
    bool narrow = m->compute != DT_DTYPE_F32;
    *r = (struct dt_ring){0};
    for (int i = 0; i < 2; i++)
        r->blocks[i] = dt_arena_matrix_of(a, m->compute, rows, keys);
    r->softmax = dt_arena_matrix(a, rows, 2 * dt_range_count(m->partition.heads));
    if (narrow)
        r->output = dt_arena_matrix(a, rows, queries);
    if (!training)
        return;
    if (narrow)
        r->gradients = dt_arena_matrix(a, rows, queries + keys);
    for (int i = 0; i < 2; i++)
        r->added[i] = dt_arena_matrix(a, rows, keys);
    r->arriving = dt_arena_matrix(a, rows, keys);
}

/* --- messages --------------------------------------------------------------------------------- */

static int neighbour(const struct dt_model *m, int distance)
{
    return (m->part.cp_rank + m->part.cp_size + distance) % m->part.cp_size;
}

/* The CP rank whose block is here in a round, counted from 0. */
static int cp_rank_of(const struct dt_model *m, int round)
{
    return neighbour(m, -round);
}

static size_t bytes_of(const struct dt_tensor *x)
{
    assert(x->stride == x->columns || x->rows <= 1);
    return (size_t)(x->rows * x->columns) * dt_dtype_size(x->dtype);
}

static struct dt_piece piece_of(const struct dt_tensor *x)
{
    return (struct dt_piece){x->data, bytes_of(x)};
}

/* Begins to send and receive, after the device has finished with both buffers. */
static struct dt_passing pass_on(const struct dt_model *m, enum channel channel,
                                 const struct dt_tensor *sent, const struct dt_tensor *received)
{
    struct dt_error err; /* reported by the next wait that returns errors */
    if (dt_comm_finish_ops(m->part.ring, m->device, &err) < 0)
        return (struct dt_passing){0};
    return dt_comm_pass_on(m->part.ring, channel, piece_of(sent), piece_of(received));
}

static void end_passing(const struct dt_model *m, const struct dt_passing *p)
{
    struct dt_error err; /* likewise */
    if (dt_comm_end_passing(m->part.ring, p, &err) < 0)
        return;
}

/* Begins the exchange of blocks of a round. */
static struct dt_passing pass_blocks(const struct dt_model *m, const struct dt_tensor blocks[2],
                                     int round)
{
    if (round == m->part.cp_size - 1)
        return (struct dt_passing){0};
    return pass_on(m, BLOCKS, &blocks[round % 2], &blocks[(round + 1) % 2]);
}

/* --- pairs of a chunk of queries and a chunk of keys ------------------------------------------ */

/* Concatenates keys and values. */
static struct dt_qkv halves(const struct dt_tensor *block)
{
    int64_t keys = block->columns / 2;
    return (struct dt_qkv){.k = dt_tensor_columns(block, 0, keys),
                           .v = dt_tensor_columns(block, keys, keys)};
}

static void put(const struct dt_model *m, struct dt_tensor *block, const struct dt_qkv *s)
{
    struct dt_qkv to = halves(block);
    m->device->ops->copy(m->device, &to.k, &s->k);
    m->device->ops->copy(m->device, &to.v, &s->v);
}

/* Chunk i of the queries here and chunk j of the keys of a CP rank; false: no query
 * sees a key. */
static bool find_pair(struct dt_attention *pair, const struct dt_model *m,
                      const struct dt_attention *how, int cp_rank, int i, int j)
{
    int64_t rows = how->batch * how->queries;
    *pair = *how;
    pair->past = dt_context_parallel_chunk_start(&m->part, how->length, i);
    pair->first_key = dt_context_parallel_chunk_start_of(&m->part, cp_rank, how->length, j);
    if (how->begins) {
        pair->begins += i * rows;
        pair->ends += i * rows;
    }
    return how->bidirectional || pair->first_key <= pair->past;
}

/* Whether this is the last pair of that chunk of queries. */
static bool is_last(const struct dt_model *m, const struct dt_attention *how, int round, int i,
                    int j)
{
    struct dt_attention pair;
    for (int n = 2 * round + j + 1; n < 2 * m->part.cp_size; n++)
        if (find_pair(&pair, m, how, cp_rank_of(m, n / 2), i, n % 2))
            return false;
    return true;
}

/* Rows of the queries of chunk i, and of keys and values of chunk j. */
static struct dt_qkv pair_of(const struct dt_model *m, const struct dt_qkv *s, int i, int j)
{
    return (struct dt_qkv){dt_context_parallel_chunk_rows(&m->part, &s->q, i),
                           dt_context_parallel_chunk_rows(&m->part, &s->k, j),
                           dt_context_parallel_chunk_rows(&m->part, &s->v, j)};
}

/* Attention of the queries to the block of a round. */
static void attend(const struct dt_model *m, struct dt_tensor *y, struct dt_tensor *lse,
                   const struct dt_qkv *s, int round, const struct dt_attention *how)
{
    struct dt_attention pair;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            if (!find_pair(&pair, m, how, cp_rank_of(m, round), i, j))
                continue;
            struct dt_tensor softmax = dt_context_parallel_chunk_rows(&m->part, how->softmax, i);
            struct dt_tensor out = dt_context_parallel_chunk_rows(&m->part, y, i);
            struct dt_tensor sums = dt_context_parallel_chunk_rows(&m->part, lse, i);
            struct dt_qkv p = pair_of(m, s, i, j);
            pair.softmax = &softmax;
            pair.continued = round > 0 || j > 0;
            pair.unfinished = !is_last(m, how, round, i, j);
            m->device->ops->attention_forward(m->device, &out, &sums, &p.q, &p.k, &p.v, &pair);
        }
}

void dt_ring_forward(const struct dt_model *m, const struct dt_ring *ring, struct dt_tensor *y,
                     struct dt_tensor *lse, const struct dt_qkv *s, const struct dt_attention *how)
{
    const struct dt_ops *ops = m->device->ops;
    if (m->part.cp_size == 1) {
        ops->attention_forward(m->device, y, lse, &s->q, &s->k, &s->v, how);
        return;
    }
    struct dt_tensor blocks[2] = {dt_tensor_rows(&ring->blocks[0], 0, y->rows),
                                  dt_tensor_rows(&ring->blocks[1], 0, y->rows)};
    struct dt_tensor output = dt_tensor_rows(ring->output.data ? &ring->output : y, 0, y->rows);
    struct dt_tensor softmax = dt_tensor_rows(&ring->softmax, 0, y->rows);
    struct dt_attention over = *how;
    over.softmax = &softmax;
    put(m, &blocks[0], s);
    for (int round = 0; round < m->part.cp_size; round++) {
        struct dt_passing p = pass_blocks(m, blocks, round);
        struct dt_qkv with = halves(&blocks[round % 2]);
        with.q = s->q;
        if (!dt_fault_injected(DT_FAULT_SKIP_BLOCK, round))
            attend(m, &output, lse, &with, round, &over);
        end_passing(m, &p);
    }
    if (output.data != y->data)
        ops->copy(m->device, y, &output);
}

/* --- backward --------------------------------------------------------------------------------- */

/* Inputs of backward. */
struct backward {
    const struct dt_model *model;
    const struct dt_tensor *dy, *y, *lse, *q;
    const struct dt_attention *how;
};

/* Adds to the gradients of the queries, and of the block of a round. */
static void attend_backward(const struct backward *b, const struct dt_qkv *d,
                            const struct dt_tensor *block, int round)
{
    const struct dt_model *m = b->model;
    struct dt_qkv s = halves(block);
    struct dt_attention pair;
    s.q = *b->q;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            if (!find_pair(&pair, m, b->how, cp_rank_of(m, round), i, j))
                continue;
            struct dt_tensor dy = dt_context_parallel_chunk_rows(&m->part, b->dy, i);
            struct dt_tensor y = dt_context_parallel_chunk_rows(&m->part, b->y, i);
            struct dt_tensor lse = dt_context_parallel_chunk_rows(&m->part, b->lse, i);
            struct dt_qkv p = pair_of(m, &s, i, j), to = pair_of(m, d, i, j);
            pair.continued = true;
            m->device->ops->attention_backward(m->device, &to.q, &to.k, &to.v, &dy, &y, &lse, &p.q,
                                               &p.k, &p.v, &pair);
        }
}

/* Rounds after the first. The gradients of a block are received, added to and sent on; those of
 * this rank's block arrive last. */
static void later_rounds(const struct backward *b, const struct dt_ring *ring,
                         struct dt_tensor blocks[2], const struct dt_qkv *d)
{
    const struct dt_model *m = b->model;
    const struct dt_ops *ops = m->device->ops;
    struct dt_passing gradients = {0};
    struct dt_tensor arriving = dt_tensor_rows(&ring->arriving, 0, b->y->rows);
    for (int round = 1; round < m->part.cp_size; round++) {
        struct dt_tensor added = dt_tensor_rows(&ring->added[round % 2], 0, b->y->rows);
        struct dt_qkv both = halves(&added);
        both.q = d->q;
        struct dt_passing p = pass_blocks(m, blocks, round);
        ops->zero(m->device, &added);
        if (!dt_fault_injected(DT_FAULT_SKIP_BLOCK, round))
            attend_backward(b, &both, &blocks[round % 2], round);
        end_passing(m, &gradients);
        if (round > 1)
            ops->combine(m->device, &added, 1, &arriving, 1);
        gradients = pass_on(m, GRADIENTS, &added, &arriving);
        end_passing(m, &p);
    }
    end_passing(m, &gradients);
}

/* Adds the other ranks' gradients of this rank's keys and values to d. */
static void take_home(const struct dt_model *m, const struct dt_ring *ring, struct dt_qkv *d)
{
    struct dt_tensor arriving = dt_tensor_rows(&ring->arriving, 0, d->k.rows);
    const struct dt_qkv from = halves(&arriving);
    m->device->ops->combine(m->device, &d->k, 1, &from.k, 1);
    m->device->ops->combine(m->device, &d->v, 1, &from.v, 1);
}

/* The fp32 gradients of this rank's q, k and v: d itself, or a buffer that is rounded at the end.
 */
static struct dt_qkv own_gradients(const struct dt_ring *ring, const struct dt_qkv *d)
{
    struct dt_tensor all = dt_tensor_rows(&ring->gradients, 0, d->q.rows);
    int64_t queries = d->q.columns, keys = d->k.columns;
    if (all.data == NULL)
        return *d;
    return (struct dt_qkv){dt_tensor_columns(&all, 0, queries),
                           dt_tensor_columns(&all, queries, keys),
                           dt_tensor_columns(&all, queries + keys, keys)};
}

static void zero_all(const struct dt_model *m, struct dt_qkv *d)
{
    m->device->ops->zero(m->device, &d->q);
    m->device->ops->zero(m->device, &d->k);
    m->device->ops->zero(m->device, &d->v);
}

static void copy_all(const struct dt_model *m, struct dt_qkv *to, const struct dt_qkv *from)
{
    m->device->ops->copy(m->device, &to->q, &from->q);
    m->device->ops->copy(m->device, &to->k, &from->k);
    m->device->ops->copy(m->device, &to->v, &from->v);
}

void dt_ring_backward(const struct dt_model *m, const struct dt_ring *ring, struct dt_qkv *d,
                      const struct dt_tensor *dy, const struct dt_tensor *y,
                      const struct dt_tensor *lse, const struct dt_qkv *s,
                      const struct dt_attention *how)
{
    const struct backward b = {m, dy, y, lse, &s->q, how};
    if (m->part.cp_size == 1) {
        m->device->ops->attention_backward(m->device, &d->q, &d->k, &d->v, dy, y, lse, &s->q, &s->k,
                                           &s->v, how);
        return;
    }
    struct dt_tensor blocks[2] = {dt_tensor_rows(&ring->blocks[0], 0, y->rows),
                                  dt_tensor_rows(&ring->blocks[1], 0, y->rows)};
    struct dt_qkv own = own_gradients(ring, d);
    put(m, &blocks[0], s);
    zero_all(m, &own);
    struct dt_passing p = pass_blocks(m, blocks, 0);
    attend_backward(&b, &own, &blocks[0], 0);
    end_passing(m, &p);
    later_rounds(&b, ring, blocks, &own);
    take_home(m, ring, &own);
    if (own.q.data != d->q.data)
        copy_all(m, d, &own);
}
