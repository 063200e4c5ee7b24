/* SPDX-License-Identifier: MIT */
#include "model/qk-norm.h"

#include "model/layer.h"
#include "model/tensor-parallel.h"

static const enum dt_role roles[] = {DT_ROLE_Q_NORM_WEIGHT, DT_ROLE_K_NORM_WEIGHT};

/* Norms that have columns of other ranks. */
static bool gathers(const struct dt_model *m)
{
    return dt_model_has_joint_qk_norm(&m->config) && m->part.tp_size > 1;
}

/* Norms in a row. */
static int64_t count_of(const struct dt_model *m, struct dt_range heads)
{
    return dt_model_has_joint_qk_norm(&m->config) ? 1 : dt_range_count(heads);
}

int64_t dt_qk_norm_statistics(const struct dt_model *m)
{
    return count_of(m, m->partition.heads) + count_of(m, m->partition.kv_heads);
}

void dt_qk_norm_layout(struct dt_block *b, struct dt_arena *arena, const struct dt_model *m,
                       int64_t rows)
{
    int64_t columns = dt_model_query_width(&m->config) + dt_model_kv_width(&m->config);
    for (int i = 0; i < DT_QK_NORM_BUFFERS && gathers(m); i++)
        b->qk_all[i] = dt_arena_matrix_of(arena, m->compute, rows, columns);
}

struct dt_qk dt_qk_norm_split(const struct dt_model *m, const struct dt_tensor *qk)
{
    int64_t queries = dt_model_query_columns(m), keys = dt_model_key_columns(m);
    return (struct dt_qk){dt_tensor_columns(qk, 0, queries), dt_tensor_columns(qk, queries, keys)};
}

static struct dt_qk split_statistics(const struct dt_model *m, const struct dt_tensor *stats)
{
    int64_t heads = count_of(m, m->partition.heads), kv = count_of(m, m->partition.kv_heads);
    return (struct dt_qk){dt_tensor_columns(stats, 0, heads), dt_tensor_columns(stats, heads, kv)};
}

/* --- all ranks' columns ------------------------------------------------------------------------
 */

static struct dt_qk split_all(const struct dt_model *m, const struct dt_tensor *all)
{
    int64_t queries = dt_model_query_width(&m->config), keys = dt_model_kv_width(&m->config);
    return (struct dt_qk){dt_tensor_columns(all, 0, queries),
                          dt_tensor_columns(all, queries, keys)};
}

/* This rank's columns of those of all. */
static struct dt_qk own_columns(const struct dt_model *m, const struct dt_tensor *all)
{
    struct dt_qk x = split_all(m, all);
    int64_t size = dt_model_head_dim(&m->config);
    return (struct dt_qk){
        dt_tensor_columns(&x.q, m->partition.heads.first * size, dt_model_query_columns(m)),
        dt_tensor_columns(&x.k, m->partition.kv_heads.first * size, dt_model_key_columns(m))};
}

static void copy(const struct dt_model *m, struct dt_qk to, const struct dt_qk *from)
{
    m->device->ops->copy(m->device, &to.q, &from->q);
    m->device->ops->copy(m->device, &to.k, &from->k);
}

/* all = the columns x of every rank; returns them. */
static struct dt_qk gather(const struct dt_model *m, struct dt_tensor *all, const struct dt_qk *x)
{
    m->device->ops->zero(m->device, all);
    copy(m, own_columns(m, all), x);
    dt_tensor_parallel_all_reduce(m, all); /* to each column others add zeros */
    return split_all(m, all);
}

/* --- norms -------------------------------------------------------------------------------------
 */

static void forward(const struct dt_model *m, int layer, struct dt_qk *y, struct dt_qk *stats,
                    struct dt_qk *x)
{
    dt_layer_norm_forward(m, layer, roles[0], DT_ROLE_NONE, &y->q, &stats->q, &x->q, &x->q, NULL);
    dt_layer_norm_forward(m, layer, roles[1], DT_ROLE_NONE, &y->k, &stats->k, &x->k, &x->k, NULL);
}

/* dx, zeroed, = the gradient. */
static void backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                     struct dt_qk *dx, const struct dt_qk *dy, const struct dt_qk *x,
                     const struct dt_qk *stats)
{
    dt_layer_head_norm_backward(m, gradients, layer, roles[0], &dx->q, &dy->q, &x->q, &stats->q);
    dt_layer_head_norm_backward(m, gradients, layer, roles[1], &dx->k, &dy->k, &x->k, &stats->k);
}

void dt_qk_norm_forward(const struct dt_model *m, int layer, struct dt_block *b, struct dt_qkv *s)
{
    struct dt_qk x = dt_qk_norm_split(m, &b->qk), y = {s->q, s->k};
    struct dt_qk stats = split_statistics(m, &b->qk_stats);
    if (!gathers(m)) {
        forward(m, layer, &y, &stats, &x);
        return;
    }
    struct dt_qk all = gather(m, &b->qk_all[0], &x), normed = split_all(m, &b->qk_all[1]);
    forward(m, layer, &normed, &stats, &all);
    struct dt_qk own = own_columns(m, &b->qk_all[1]);
    copy(m, y, &own);
}

void dt_qk_norm_backward(const struct dt_model *m, const struct dt_flat *gradients, int layer,
                         struct dt_qkv *d, const struct dt_block *b, struct dt_tensor *scratch)
{
    struct dt_qk x = dt_qk_norm_split(m, &b->qk), dy = {d->q, d->k};
    struct dt_qk dx = dt_qk_norm_split(m, scratch), stats = split_statistics(m, &b->qk_stats);
    if (gathers(m)) {
        struct dt_tensor all[DT_QK_NORM_BUFFERS];
        for (int i = 0; i < DT_QK_NORM_BUFFERS; i++)
            all[i] = b->qk_all[i];
        struct dt_qk all_x = gather(m, &all[0], &x), all_dy = gather(m, &all[1], &dy);
        struct dt_qk all_dx = split_all(m, &all[2]), own = own_columns(m, &all[2]);
        m->device->ops->zero(m->device, &all[2]);
        backward(m, gradients, layer, &all_dx, &all_dy, &all_x, &stats);
        copy(m, dx, &own);
    } else {
        m->device->ops->zero(m->device, scratch);
        backward(m, gradients, layer, &dx, &dy, &x, &stats);
    }
    d->q = dx.q;
    d->k = dx.k;
}
