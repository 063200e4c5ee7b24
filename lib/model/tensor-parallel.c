/* SPDX-License-Identifier: MIT */
#include "model/tensor-parallel.h"

#include <assert.h>

/* Elements that some slices, neighbours of each other, add up or share. */
struct shared {
    const struct dt_model *model;
    struct dt_range tp_size;
    struct dt_tensor x;                          /* one row */
    int64_t firsts[DT_TENSOR_PARALLEL_MOST + 1]; /* where the piece of each of the slices begins */
};

static void open_shared(struct shared *s, const struct dt_model *m, struct dt_range tp_size,
                        const struct dt_tensor *x)
{
    assert(x->stride == x->columns || x->rows <= 1);
    s->model = m;
    s->tp_size = tp_size;
    s->x = dt_matrix_of(x->dtype, x->data, 1, x->rows * x->columns);
    for (int64_t i = 0, count = dt_range_count(tp_size); i <= count; i++)
        s->firsts[i] = dt_range_part_first(x->rows, i, count) * x->columns;
}

/* What of piece number i comes next, behind its first elements. */
static struct dt_tensor chunk_of(const struct shared *s, int64_t i, int64_t from)
{
    int64_t left = s->firsts[i + 1] - s->firsts[i] - from;
    return dt_tensor_columns(&s->x, s->firsts[i] + (left > 0 ? from : 0),
                             left < 0                     ? 0
                             : left < DT_SCRATCH_ELEMENTS ? left
                                                          : DT_SCRATCH_ELEMENTS);
}

static int64_t longest_piece(const struct shared *s)
{
    int64_t most = 0;
    for (int64_t i = 0; i < dt_range_count(s->tp_size); i++)
        most = s->firsts[i + 1] - s->firsts[i] > most ? s->firsts[i + 1] - s->firsts[i] : most;
    return most;
}

static struct dt_piece piece_of(const struct dt_tensor *x)
{
    return (struct dt_piece){x->data, (size_t)x->columns * dt_dtype_size(x->dtype)};
}

/* What other slices send of this one's piece: place number i of the room for them. */
static struct dt_tensor received_from(const struct shared *s, int64_t i, int64_t count)
{
    char *room = s->model->scratch.received;
    return dt_matrix_of(s->x.dtype, room + (size_t)(i * DT_SCRATCH_ELEMENTS) * sizeof(float), 1,
                        count);
}

static void exchange(const struct shared *s, const struct dt_piece *sends,
                     const struct dt_piece *receives)
{
    const struct dt_model *m = s->model;
    struct dt_error err; /* told by the next wait of somebody who can */
    if (dt_comm_finish_ops(m->part.tp_group, m->device, &err) < 0 ||
        dt_comm_wait(m->part.tp_group, dt_comm_all_to_all(m->part.tp_group, sends, receives),
                     &err) < 0)
        return;
}

/* own = the parts of all slices, in their order. */
static void add_up(const struct shared *s, struct dt_tensor *own)
{
    const struct dt_ops *ops = s->model->device->ops;
    int64_t me = s->model->part.tp_rank - s->tp_size.first;
    struct dt_tensor sum = dt_matrix(s->model->scratch.sum, 1, own->columns);
    for (int64_t i = 0; i < dt_range_count(s->tp_size); i++) {
        struct dt_tensor part = i == me ? *own : received_from(s, i, own->columns);
        ops->combine(s->model->device, &sum, i > 0, &part, 1);
    }
    ops->copy(s->model->device, own, &sum);
}

/* most: elements of the longest piece of any slice of the model. */
static void sum_pieces(const struct shared *s, int64_t most)
{
    int64_t me = s->model->part.tp_rank - s->tp_size.first;
    for (int64_t from = 0; from < most; from += DT_SCRATCH_ELEMENTS) {
        struct dt_piece sends[DT_TENSOR_PARALLEL_MOST] = {0},
                        receives[DT_TENSOR_PARALLEL_MOST] = {0};
        struct dt_tensor own = chunk_of(s, me, from);
        for (int64_t i = 0; i < dt_range_count(s->tp_size); i++) {
            struct dt_tensor theirs = chunk_of(s, i, from);
            struct dt_tensor place = received_from(s, i, own.columns);
            sends[s->tp_size.first + i] = piece_of(&theirs);
            receives[s->tp_size.first + i] = piece_of(&place);
        }
        exchange(s, sends, receives);
        if (own.columns > 0)
            add_up(s, &own);
    }
}

static void gather_pieces(const struct shared *s)
{
    int64_t me = s->model->part.tp_rank - s->tp_size.first;
    struct dt_tensor own =
        dt_tensor_columns(&s->x, s->firsts[me], s->firsts[me + 1] - s->firsts[me]);
    struct dt_piece sends[DT_TENSOR_PARALLEL_MOST] = {0}, receives[DT_TENSOR_PARALLEL_MOST] = {0};
    for (int64_t i = 0; i < dt_range_count(s->tp_size); i++) {
        struct dt_tensor theirs =
            dt_tensor_columns(&s->x, s->firsts[i], s->firsts[i + 1] - s->firsts[i]);
        sends[s->tp_size.first + i] = piece_of(&own);
        receives[s->tp_size.first + i] = piece_of(&theirs);
    }
    exchange(s, sends, receives);
}

static struct dt_range all_slices(const struct dt_model *m)
{
    return (struct dt_range){0, m->part.tp_size};
}

struct dt_range dt_tensor_parallel_rows(const struct dt_model *m, int64_t rows)
{
    return m->part.sequence ? dt_range_part(rows, m->part.tp_rank, m->part.tp_size)
                            : (struct dt_range){0, rows};
}

void dt_tensor_parallel_reduce_scatter(const struct dt_model *m, struct dt_tensor *x)
{
    struct shared s;
    if (m->part.tp_size == 1)
        return;
    open_shared(&s, m, all_slices(m), x);
    sum_pieces(&s, longest_piece(&s));
}

void dt_tensor_parallel_all_gather(const struct dt_model *m, struct dt_tensor *x)
{
    struct shared s;
    if (m->part.tp_size == 1)
        return;
    open_shared(&s, m, all_slices(m), x);
    gather_pieces(&s);
}

void dt_tensor_parallel_all_reduce(const struct dt_model *m, struct dt_tensor *x)
{
    dt_tensor_parallel_reduce_scatter(m, x);
    dt_tensor_parallel_all_gather(m, x);
}

void dt_tensor_parallel_reduce_hidden(const struct dt_model *m, struct dt_tensor *x)
{
    if (m->part.sequence)
        dt_tensor_parallel_reduce_scatter(m, x);
    else
        dt_tensor_parallel_all_reduce(m, x);
}

void dt_tensor_parallel_gather_hidden(const struct dt_model *m, struct dt_tensor *x)
{
    if (m->part.sequence)
        dt_tensor_parallel_all_gather(m, x);
}

/* --- parts of gradients ----------------------------------------------------------------------- */

static struct dt_tensor partial_of(const struct dt_model *m, int bucket)
{
    const struct dt_partials *p = &m->table.partials[bucket];
    return dt_matrix(m->scratch.partial, 1, p->of_all + p->of_holders);
}

void dt_tensor_parallel_clear_partial(const struct dt_model *m, int bucket)
{
    struct dt_tensor partial = partial_of(m, bucket);
    if (partial.columns > 0)
        m->device->ops->zero(m->device, &partial);
}

/* Holders of the same keys add up among themselves; all take part as often, whoever has
 * fewer companions. */
static void sum_elements(const struct dt_model *m, struct dt_range tp_size, int64_t least, float *x,
                         int64_t count)
{
    struct shared s;
    struct dt_tensor elements = dt_matrix(x, count, 1);
    if (count == 0)
        return;
    open_shared(&s, m, tp_size, &elements);
    sum_pieces(&s, (count + least - 1) / least);
    gather_pieces(&s);
}

void dt_tensor_parallel_add_partial(const struct dt_model *m, int bucket,
                                    const struct dt_flat *gradients)
{
    const struct dt_partials *p = &m->table.partials[bucket];
    struct dt_flat partial = *gradients;
    partial.partial = m->scratch.partial;
    int64_t holders = m->part.tp_size / m->config.num_kv_heads;
    sum_elements(m, all_slices(m), m->part.tp_size, m->scratch.partial, p->of_all);
    sum_elements(m, m->partition.key_holders, holders, m->scratch.partial + p->of_all,
                 p->of_holders);
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *param = &m->table.params[i];
        if (param->bucket != bucket || !param->partial)
            continue;
        struct dt_tensor sum = dt_table_view(&m->table, gradients, param->role, param->layer);
        struct dt_tensor part = dt_table_view(&m->table, &partial, param->role, param->layer);
        m->device->ops->combine(m->device, &sum, 1, &part, 1);
    }
}
