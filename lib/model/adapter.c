/* SPDX-License-Identifier: MIT */
#include "model/adapter.h"

#include "math/rng.h"
#include "model/block.h"

void dt_adapter_layout(const struct dt_model *m, struct dt_arena *arena)
{
    struct dt_adapter *a = m->adapter;
    const struct dt_model_config *c = &m->config;
    int64_t rank = c->lora.rank, queries = dt_model_query_width(c), inner = c->intermediate_size;
    int64_t width = c->hidden_size > queries ? c->hidden_size : queries;
    a->low = dt_arena_matrix_of(arena, m->compute, DT_ADAPTER_ROWS, rank);
    a->dlow = dt_arena_matrix_of(arena, m->compute, DT_ADAPTER_ROWS, rank);
    if (c->lora.dropout > 0)
        a->wide =
            dt_arena_matrix_of(arena, m->compute, DT_ADAPTER_ROWS, width > inner ? width : inner);
}

/* The matrices of a map's adapter, and their gradients. */
struct pair {
    struct dt_tensor a, b, da, db;
    enum dt_role role; /* of A */
    float scale;
};

/* Weights of one map share the A before their B in the table. */
static bool find(const struct dt_model *m, int layer, enum dt_role weight,
                 const struct dt_flat *gradients, struct pair *pair)
{
    const struct dt_param *b = dt_table_find(&m->table, DT_TABLE_ADAPTER_B(weight), layer), *a = b;
    if (m->adapter == NULL || b == NULL)
        return false;
    while (a->role >= DT_TABLE_ADAPTER_B(0))
        a--;
    *pair = (struct pair){.a = dt_table_view(&m->table, &m->weights, a->role, layer),
                          .b = dt_table_view(&m->table, &m->weights, b->role, layer),
                          .role = a->role,
                          .scale = (float)dt_lora_scale(&m->config.lora)};
    if (gradients) {
        pair->da = dt_table_view(&m->table, gradients, a->role, layer);
        pair->db = dt_table_view(&m->table, gradients, b->role, layer);
    }
    return true;
}

static bool drops(const struct dt_model *m)
{
    return m->config.lora.dropout > 0 && m->adapter->pass && m->adapter->pass->dropout;
}

/* Dropout of rows of a map's input, of which the first is row first of the batch. */
static void drop(const struct dt_model *m, int layer, enum dt_role role, int64_t first,
                 struct dt_tensor *rows)
{
    const struct dt_block_pass *pass = m->adapter->pass;
    uint64_t map = (uint64_t)layer * DT_TABLE_ROLES + (uint64_t)role;
    const struct dt_dropout how = {.rate = (float)m->config.lora.dropout,
                                   .key = dt_random_key(pass->seed, 'L', map),
                                   .sample = pass->sample,
                                   .first = first};
    m->device->ops->dropout(m->device, rows, pass->attention.queries, &how);
}

static int64_t rows_from(const struct dt_tensor *x, int64_t first)
{
    return x->rows - first < DT_ADAPTER_ROWS ? x->rows - first : DT_ADAPTER_ROWS;
}

/* low = s dropout(x) A', of rows x of the batch; *input: dropout(x). */
static struct dt_tensor project(const struct dt_model *m, int layer, const struct pair *p,
                                int64_t first, const struct dt_tensor *x, struct dt_tensor *input)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor low = dt_tensor_rows(&m->adapter->low, 0, x->rows);
    *input = *x;
    if (drops(m)) {
        struct dt_tensor wide = dt_tensor_columns(&m->adapter->wide, 0, x->columns);
        *input = dt_tensor_rows(&wide, 0, x->rows);
        ops->copy(m->device, input, x);
        drop(m, layer, p->role, first, input);
    }
    ops->matmul(m->device, &low, input, &p->a, &(struct dt_matmul){.transpose_b = true});
    ops->combine(m->device, &low, 0, &low, p->scale);
    return low;
}

/* dlow = s dy B, of the outputs that b has. */
static struct dt_tensor project_gradient(const struct dt_model *m, const struct pair *p,
                                         const struct dt_tensor *dy)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor dlow = dt_tensor_rows(&m->adapter->dlow, 0, dy->rows);
    ops->matmul(m->device, &dlow, dy, &p->b, &(struct dt_matmul){.parts = 0});
    ops->combine(m->device, &dlow, 0, &dlow, p->scale);
    return dlow;
}

bool dt_adapter_forward(const struct dt_model *m, int layer, enum dt_role weight,
                        struct dt_tensor *y, const struct dt_tensor *x)
{
    struct pair p;
    if (!find(m, layer, weight, NULL, &p))
        return false;
    for (int64_t first = 0; first < x->rows; first += DT_ADAPTER_ROWS) {
        struct dt_tensor input, rows = dt_tensor_rows(x, first, rows_from(x, first));
        struct dt_tensor to = dt_tensor_rows(y, first, rows.rows);
        struct dt_tensor low = project(m, layer, &p, first, &rows, &input);
        m->device->ops->matmul(m->device, &to, &low, &p.b,
                               &(struct dt_matmul){.transpose_b = true});
    }
    return true;
}

void dt_adapter_weight_backward(const struct dt_model *m, const struct dt_flat *gradients,
                                int layer, enum dt_role weight, const struct dt_tensor *dy,
                                const struct dt_tensor *x)
{
    static const struct dt_matmul add = {.transpose_a = true, .accumulate = true};
    struct pair p;
    if (!find(m, layer, weight, gradients, &p))
        return;
    for (int64_t first = 0; first < x->rows; first += DT_ADAPTER_ROWS) {
        struct dt_tensor input, rows = dt_tensor_rows(x, first, rows_from(x, first));
        struct dt_tensor from = dt_tensor_rows(dy, first, rows.rows);
        struct dt_tensor low = project(m, layer, &p, first, &rows, &input);
        struct dt_tensor dlow = project_gradient(m, &p, &from);
        m->device->ops->matmul(m->device, &p.db, &from, &low, &add);
        m->device->ops->matmul(m->device, &p.da, &dlow, &input, &add);
    }
}

bool dt_adapter_input_backward(const struct dt_model *m, int layer, const struct dt_layer_map *map,
                               struct dt_tensor *dx, bool accumulate)
{
    const struct dt_ops *ops = m->device->ops;
    struct pair p;
    if (!find(m, layer, map->weight, NULL, &p))
        return false;
    if (dt_range_count(map->outputs) > 0)
        p.b = dt_tensor_rows(&p.b, map->outputs.first, dt_range_count(map->outputs));
    for (int64_t first = 0; first < dx->rows; first += DT_ADAPTER_ROWS) {
        struct dt_tensor from = dt_tensor_rows(map->dy, first, rows_from(dx, first));
        struct dt_tensor to = dt_tensor_rows(dx, first, from.rows);
        struct dt_tensor dlow = project_gradient(m, &p, &from);
        if (!drops(m)) {
            ops->matmul(m->device, &to, &dlow, &p.a, &(struct dt_matmul){.accumulate = accumulate});
            continue;
        }
        struct dt_tensor wide = dt_tensor_columns(&m->adapter->wide, 0, to.columns);
        wide = dt_tensor_rows(&wide, 0, to.rows);
        ops->matmul(m->device, &wide, &dlow, &p.a, &(struct dt_matmul){.parts = 0});
        drop(m, layer, p.role, first, &wide);
        ops->combine(m->device, &to, accumulate, &wide, 1);
    }
    return true;
}
