/* SPDX-License-Identifier: MIT */
#include "model/tensor-parallel.h"

#include <assert.h>

/* A collective over a range of neighboring TP ranks. */
struct collective {
    const struct dt_model *model;
    struct dt_range ranks;
    struct dt_tensor x;                          /* one row */
    int64_t firsts[DT_TENSOR_PARALLEL_MOST + 1]; /* where the piece of each rank begins */
};

static void open_collective(struct collective *s, const struct dt_model *m, struct dt_range ranks,
                            const struct dt_tensor *x)
{
    assert(x->stride == x->columns || x->rows <= 1);
    s->model = m;
    s->ranks = ranks;
    s->x = dt_matrix_of(x->dtype, x->data, 1, x->rows * x->columns);
    for (int64_t i = 0, count = dt_range_count(ranks); i <= count; i++)
        s->firsts[i] = dt_range_part_first(x->rows, i, count) * x->columns;
}

/* The next elements of piece i, from offset from, that fit into the scratch buffer. */
static struct dt_tensor chunk_of(const struct collective *s, int64_t i, int64_t from)
{
    int64_t left = s->firsts[i + 1] - s->firsts[i] - from;
    return dt_tensor_columns(&s->x, s->firsts[i] + (left > 0 ? from : 0),
                             left < 0                     ? 0
                             : left < DT_SCRATCH_ELEMENTS ? left
                                                          : DT_SCRATCH_ELEMENTS);
}

static int64_t longest_piece(const struct collective *s)
{
    int64_t most = 0;
    for (int64_t i = 0; i < dt_range_count(s->ranks); i++)
        most = s->firsts[i + 1] - s->firsts[i] > most ? s->firsts[i + 1] - s->firsts[i] : most;
    return most;
}

static struct dt_piece piece_of(const struct dt_tensor *x)
{
    return (struct dt_piece){x->data, (size_t)x->columns * dt_dtype_size(x->dtype)};
}

/* The scratch buffer for elements of this rank's piece that rank i sends. */
static struct dt_tensor received_from(const struct collective *s, int64_t i, int64_t count)
{
    char *received = s->model->scratch.received;
    return dt_matrix_of(s->x.dtype, received + (size_t)(i * DT_SCRATCH_ELEMENTS) * sizeof(float), 1,
                        count);
}

static void exchange(const struct collective *s, const struct dt_piece *sends,
                     const struct dt_piece *receives)
{
    const struct dt_model *m = s->model;
    struct dt_error err; /* reported by the next wait that returns errors */
    if (dt_comm_finish_ops(m->part.tp_group, m->device, &err) < 0 ||
        dt_comm_wait(m->part.tp_group, dt_comm_all_to_all(m->part.tp_group, sends, receives),
                     &err) < 0)
        return;
}

static struct dt_tensor part_from(const struct collective *s, int64_t i,
                                  const struct dt_tensor *own)
{
    bool mine = i == s->model->part.tp_rank - s->ranks.first;
    return mine ? *own : received_from(s, i, own->columns);
}

/* own = sum over the ranks: a binary tree of them. */
static void reduce_tree(const struct collective *s, struct dt_tensor *own)
{
    const struct dt_ops *ops = s->model->device->ops;
    int64_t count = dt_range_count(s->ranks);
    for (int64_t step = 1; step < count; step *= 2)
        for (int64_t i = 0; i + step < count; i += 2 * step) {
            struct dt_tensor left = part_from(s, i, own), right = part_from(s, i + step, own);
            ops->combine(s->model->device, &left, 1, &right, 1);
        }
    struct dt_tensor sum = part_from(s, 0, own);
    if (sum.data != own->data)
        ops->copy(s->model->device, own, &sum);
}

/* own = sum over the ranks, of 16-bit elements of which at most two are not 0: any order is exact
 * but for one rounding. */
static void reduce_sparse(const struct collective *s, struct dt_tensor *own)
{
    const struct dt_ops *ops = s->model->device->ops;
    struct dt_tensor sum = dt_matrix(s->model->scratch.sum, 1, own->columns);
    for (int64_t i = 0; i < dt_range_count(s->ranks); i++) {
        struct dt_tensor part = part_from(s, i, own);
        ops->combine(s->model->device, &sum, i > 0, &part, 1);
    }
    ops->copy(s->model->device, own, &sum);
}

/* most: elements of the longest piece of any TP rank of the model. */
static void reduce_pieces(const struct collective *s, int64_t most)
{
    int64_t me = s->model->part.tp_rank - s->ranks.first;
    for (int64_t from = 0; from < most; from += DT_SCRATCH_ELEMENTS) {
        struct dt_piece sends[DT_TENSOR_PARALLEL_MOST] = {0},
                        receives[DT_TENSOR_PARALLEL_MOST] = {0};
        struct dt_tensor own = chunk_of(s, me, from);
        for (int64_t i = 0; i < dt_range_count(s->ranks); i++) {
            struct dt_tensor theirs = chunk_of(s, i, from);
            struct dt_tensor buffer = received_from(s, i, own.columns);
            sends[s->ranks.first + i] = piece_of(&theirs);
            receives[s->ranks.first + i] = piece_of(&buffer);
        }
        exchange(s, sends, receives);
        if (own.columns > 0 && own.dtype == DT_DTYPE_F32)
            reduce_tree(s, &own);
        else if (own.columns > 0)
            reduce_sparse(s, &own);
    }
}

static void gather_pieces(const struct collective *s)
{
    int64_t me = s->model->part.tp_rank - s->ranks.first;
    struct dt_tensor own =
        dt_tensor_columns(&s->x, s->firsts[me], s->firsts[me + 1] - s->firsts[me]);
    struct dt_piece sends[DT_TENSOR_PARALLEL_MOST] = {0}, receives[DT_TENSOR_PARALLEL_MOST] = {0};
    for (int64_t i = 0; i < dt_range_count(s->ranks); i++) {
        struct dt_tensor theirs =
            dt_tensor_columns(&s->x, s->firsts[i], s->firsts[i + 1] - s->firsts[i]);
        sends[s->ranks.first + i] = piece_of(&own);
        receives[s->ranks.first + i] = piece_of(&theirs);
    }
    exchange(s, sends, receives);
}

static struct dt_range all_ranks(const struct dt_model *m)
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
    struct collective s;
    if (m->part.tp_size == 1)
        return;
    open_collective(&s, m, all_ranks(m), x);
    reduce_pieces(&s, longest_piece(&s));
}

void dt_tensor_parallel_all_gather(const struct dt_model *m, struct dt_tensor *x)
{
    struct collective s;
    if (m->part.tp_size == 1)
        return;
    open_collective(&s, m, all_ranks(m), x);
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

/* Sets this rank's rows of the sum. */
static void sum_own_rows(const struct dt_model *m, struct dt_tensor *own_y,
                         struct dt_tensor *partial, const struct dt_tensor *bias, bool accumulate)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_range own = dt_range_part(partial->rows, m->part.tp_rank, m->part.tp_size);
    struct dt_tensor sum = dt_tensor_rows(partial, own.first, dt_range_count(own));
    dt_tensor_parallel_reduce_scatter(m, partial);
    if (bias) {
        struct dt_tensor all = *bias;
        all.rows = sum.rows;
        all.stride = 0;
        ops->combine(m->device, &sum, 1, &all, 1);
    }
    if (accumulate)
        ops->combine(m->device, own_y, 1, &sum, 1);
    else if (own_y->data != sum.data)
        ops->copy(m->device, own_y, &sum);
}

static void sum_all_rows(const struct dt_model *m, struct dt_tensor *y, struct dt_tensor *partial,
                         const struct dt_tensor *bias, bool accumulate)
{
    struct dt_range own = dt_range_part(y->rows, m->part.tp_rank, m->part.tp_size);
    struct dt_tensor rows = dt_tensor_rows(y, own.first, dt_range_count(own));
    sum_own_rows(m, &rows, partial, bias, accumulate);
    dt_tensor_parallel_all_gather(m, y);
}

void dt_tensor_parallel_sum_hidden(const struct dt_model *m, struct dt_tensor *y,
                                   struct dt_tensor *partial, const struct dt_tensor *bias,
                                   bool accumulate)
{
    if (m->part.sequence)
        sum_own_rows(m, y, partial, bias, accumulate);
    else
        sum_all_rows(m, y, partial, bias, accumulate);
}

void dt_tensor_parallel_sum(const struct dt_model *m, struct dt_tensor *y,
                            struct dt_tensor *partial)
{
    sum_all_rows(m, y, partial, NULL, false);
}

/* --- partial gradients ------------------------------------------------------------------------ */

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

/* All-reduce over a group of at least least ranks. All groups make the same number of calls,
 * whatever their size. */
static void all_reduce_elements(const struct dt_model *m, struct dt_range ranks, int64_t least,
                                float *x, int64_t count)
{
    struct collective s;
    struct dt_tensor elements = dt_matrix(x, count, 1);
    if (count == 0)
        return;
    open_collective(&s, m, ranks, &elements);
    reduce_pieces(&s, (count + least - 1) / least);
    gather_pieces(&s);
}

void dt_tensor_parallel_add_rows(const struct dt_model *m, struct dt_tensor *first, int count)
{
    int64_t n = first->columns;
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i + step < count; i += 2 * step) {
            struct dt_tensor left = dt_matrix((float *)first->data + i * n, 1, n);
            struct dt_tensor right = dt_matrix((float *)first->data + (i + step) * n, 1, n);
            m->device->ops->combine(m->device, &left, 1, &right, 1);
        }
}

void dt_tensor_parallel_add_partial(const struct dt_model *m, int bucket,
                                    const struct dt_flat *gradients)
{
    const struct dt_partials *p = &m->table.partials[bucket];
    struct dt_flat partial = *gradients;
    partial.partial = m->scratch.partial;
    int64_t holders = m->part.tp_size / m->config.num_kv_heads;
    all_reduce_elements(m, all_ranks(m), m->part.tp_size, m->scratch.partial, p->of_all);
    all_reduce_elements(m, m->partition.key_holders, holders, m->scratch.partial + p->of_all,
                        p->of_holders);
    for (int i = 0; i < m->table.count; i++) {
        const struct dt_param *param = &m->table.params[i];
        if (param->bucket != bucket || !param->partial)
            continue;
        struct dt_tensor sum = dt_table_view(&m->table, gradients, param->role, param->layer);
        struct dt_tensor part = dt_table_view(&m->table, &partial, param->role, param->layer);
        dt_tensor_parallel_add_rows(m, &part, param->partial_parts);
        m->device->ops->combine(m->device, &sum, 1, &part, 1);
    }
}
