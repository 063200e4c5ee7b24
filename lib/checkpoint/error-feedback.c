/* SPDX-License-Identifier: MIT */
#include "checkpoint/error-feedback.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"

struct list {
    struct dt_named_tensor *items;
    size_t count, capacity;
};

static void add(struct list *list, const struct dt_param *p, const char *what, int64_t rows,
                int64_t columns)
{
    DT_GROW(list->items, list->count, list->capacity);
    struct dt_named_tensor *t = &list->items[list->count++];
    *t = (struct dt_named_tensor){.rank = 2, .shape = {rows, columns}};
    snprintf(t->name, sizeof t->name, "%s%s.%s", p->name, p->copy ? ".head" : "", what);
}

static void add_table(struct list *list, const struct dt_train_state *s, const struct dt_table *t,
                      long dp_size)
{
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        int64_t q_elements = dt_compression_q_elements(&s->compression, p);
        for (long r = 0; r < dp_size; r++) {
            char what[32];
            snprintf(what, sizeof what, "error.%ld", r);
            add(list, p, what, p->shape[0], p->shape[1]);
        }
        if (q_elements > 0)
            add(list, p, "thin", s->compression.rank, p->shape[1]);
    }
}

/* Tensors of the pipeline stages before `stages`. */
static struct list list_of(const struct dt_train_state *s, long dp_size, int stages)
{
    struct list list = {0};
    struct dt_model_part part = s->model->part;
    for (part.stage = 0; part.stage < stages; part.stage++) {
        struct dt_table table;
        dt_table_init_trained(&table, &s->model->config, &part);
        add_table(&list, s, &table, dp_size);
        dt_table_release(&table);
    }
    return list;
}

struct dt_named_tensor *dt_error_feedback_tensors(const struct dt_train_state *s, long dp_size,
                                                  int *count)
{
    struct list list = list_of(s, dp_size, s->model->part.stages);
    *count = (int)list.count;
    return list.items;
}

struct dt_snapshot_piece *dt_error_feedback_pieces(const struct dt_train_state *s, bool replicated,
                                                   long dp_size, size_t *count)
{
    const struct dt_compression *c = &s->compression;
    const struct dt_table *t = &s->model->table;
    long rank = dt_comm_rank(s->dp.dp_group.all), size = dt_comm_size(s->dp.dp_group.all);
    struct dt_snapshot_piece *pieces =
        dt_alloc((size_t)t->count * (size_t)(dp_size / size + 2), sizeof *pieces);
    struct list before = list_of(s, dp_size, s->model->part.stage);
    int tensor = (int)before.count; /* this stage's first */
    float *q = c->q;
    free(before.items);
    *count = 0;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        int64_t elements = dt_compression_q_elements(c, p);
        float *residual = c->residual ? c->residual + p->offset : NULL;
        for (long r = rank; r < dp_size; r += size)
            pieces[(*count)++] =
                (struct dt_snapshot_piece){tensor + (int)r, 0, p->count, residual, r >= size};
        tensor += (int)dp_size;
        if (elements > 0 && (replicated || rank == 0))
            pieces[(*count)++] = (struct dt_snapshot_piece){tensor, 0, elements, q, false};
        tensor += elements > 0;
        q = q ? q + elements : NULL;
    }
    return pieces;
}
