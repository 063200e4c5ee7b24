/* SPDX-License-Identifier: MIT */
#include "model/block.h"

#include "model/layer.h"

static bool is_gated(const struct dt_model *m)
{
    return dt_table_find(&m->table, DT_GATE_WEIGHT, 0) != NULL;
}

void dt_block_layout(struct dt_block *b, struct dt_arena *arena, const struct dt_model *m,
                     int64_t rows)
{
    const struct dt_model_config *c = &m->config;
    b->input = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    b->norm1 = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    b->stats1 = dt_arena_matrix(arena, rows, dt_norm_statistics(m));
    b->qkv = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size + 2 * dt_model_kv_width(c));
    b->attention = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    b->lse = dt_arena_matrix(arena, rows, c->num_heads);
    b->middle = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    b->norm2 = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    b->stats2 = dt_arena_matrix(arena, rows, dt_norm_statistics(m));
    if (is_gated(m))
        b->gate = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
    b->up = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
    b->active = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
}

void dt_block_scratch_layout(struct dt_block_scratch *s, struct dt_arena *arena,
                             const struct dt_model *m, int64_t rows)
{
    const struct dt_model_config *c = &m->config;
    s->width = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size);
    s->qkv = dt_arena_matrix_of(arena, m->compute, rows, c->hidden_size + 2 * dt_model_kv_width(c));
    if (is_gated(m))
        s->gate = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
    s->inner = dt_arena_matrix_of(arena, m->compute, rows, c->intermediate_size);
}

/* Only the first rows of the buffers are in use when a batch is smaller. */
static struct dt_block first_rows(const struct dt_block *b, int64_t rows)
{
    return (struct dt_block){
        .input = dt_rows(&b->input, 0, rows),
        .norm1 = dt_rows(&b->norm1, 0, rows),
        .stats1 = dt_rows(&b->stats1, 0, rows),
        .qkv = dt_rows(&b->qkv, 0, rows),
        .attention = dt_rows(&b->attention, 0, rows),
        .lse = dt_rows(&b->lse, 0, rows),
        .middle = dt_rows(&b->middle, 0, rows),
        .norm2 = dt_rows(&b->norm2, 0, rows),
        .stats2 = dt_rows(&b->stats2, 0, rows),
        .gate = dt_rows(&b->gate, 0, rows),
        .up = dt_rows(&b->up, 0, rows),
        .active = dt_rows(&b->active, 0, rows),
    };
}

struct qkv {
    struct dt_tensor q, k, v;
};

static struct qkv split(const struct dt_model *m, const struct dt_tensor *qkv)
{
    int64_t width = m->config.hidden_size, keys = dt_model_kv_width(&m->config);
    return (struct qkv){dt_columns(qkv, 0, width), dt_columns(qkv, width, keys),
                        dt_columns(qkv, width + keys, keys)};
}

static bool is_fused(const struct dt_model *m)
{
    return dt_table_find(&m->table, DT_QKV_WEIGHT, 0) != NULL;
}

/* Turns queries and keys by their positions, where the model's are rotary. */
static void rotate(const struct dt_model *m, struct qkv *s, const struct dt_attention *how,
                   bool inverse)
{
    if (m->turns.data == NULL)
        return;
    m->device->ops->rope(m->device, &s->q, &m->turns, how->queries, how->past, inverse);
    m->device->ops->rope(m->device, &s->k, &m->turns, how->queries, how->past, inverse);
}

/* Queries, keys and values of the rows x. */
static struct qkv project(const struct dt_model *m, int layer, struct dt_tensor *qkv,
                          const struct dt_tensor *x, const struct dt_attention *how)
{
    struct qkv s = split(m, qkv);
    if (is_fused(m)) {
        dt_linear_forward(m, layer, DT_QKV_WEIGHT, DT_QKV_BIAS, qkv, x, NULL);
    } else {
        dt_linear_forward(m, layer, DT_Q_WEIGHT, DT_NO_ROLE, &s.q, x, NULL);
        dt_linear_forward(m, layer, DT_K_WEIGHT, DT_NO_ROLE, &s.k, x, NULL);
        dt_linear_forward(m, layer, DT_V_WEIGHT, DT_NO_ROLE, &s.v, x, NULL);
    }
    rotate(m, &s, how, false);
    return s;
}

static void project_backward(const struct dt_model *m, float *gradients, int layer,
                             struct dt_tensor *dx, struct dt_tensor *dqkv,
                             const struct dt_tensor *x, const struct dt_attention *how)
{
    const struct dt_matmul add = {.accumulate = true};
    struct qkv d = split(m, dqkv);
    rotate(m, &d, how, true);
    if (is_fused(m)) {
        dt_linear_backward(m, gradients, layer, DT_QKV_WEIGHT, DT_QKV_BIAS, dx, dqkv, x, NULL);
        return;
    }
    dt_linear_backward(m, gradients, layer, DT_Q_WEIGHT, DT_NO_ROLE, dx, &d.q, x, NULL);
    dt_linear_backward(m, gradients, layer, DT_K_WEIGHT, DT_NO_ROLE, dx, &d.k, x, &add);
    dt_linear_backward(m, gradients, layer, DT_V_WEIGHT, DT_NO_ROLE, dx, &d.v, x, &add);
}

static void mlp(const struct dt_model *m, int layer, struct dt_block *b, struct dt_tensor *out)
{
    if (is_gated(m)) {
        dt_linear_forward(m, layer, DT_GATE_WEIGHT, DT_NO_ROLE, &b->gate, &b->norm2, NULL);
        dt_linear_forward(m, layer, DT_UP_WEIGHT, DT_UP_BIAS, &b->up, &b->norm2, NULL);
        m->device->ops->swiglu_forward(m->device, &b->active, &b->gate, &b->up);
    } else {
        dt_linear_forward(m, layer, DT_UP_WEIGHT, DT_UP_BIAS, &b->active, &b->norm2,
                          &(struct dt_matmul){.activation = DT_ACT_GELU_TANH, .aux = &b->up});
    }
    dt_linear_forward(m, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, out, &b->active, NULL);
}

/* dnorm: the gradient of the MLP's input. */
static void mlp_backward(const struct dt_model *m, float *gradients, int layer,
                         struct dt_tensor *dnorm, const struct dt_tensor *dout, struct dt_block *b,
                         struct dt_tensor *inner, struct dt_tensor *gate)
{
    if (!is_gated(m)) {
        dt_linear_backward(
            m, gradients, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, inner, dout, &b->active,
            &(struct dt_matmul){.activation = DT_ACT_GELU_TANH, .derivative = true, .aux = &b->up});
        dt_linear_backward(m, gradients, layer, DT_UP_WEIGHT, DT_UP_BIAS, dnorm, inner, &b->norm2,
                           NULL);
        return;
    }
    dt_linear_backward(m, gradients, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, inner, dout, &b->active,
                       NULL);
    m->device->ops->swiglu_backward(m->device, gate, inner, &b->gate, &b->up);
    dt_linear_backward(m, gradients, layer, DT_UP_WEIGHT, DT_UP_BIAS, dnorm, inner, &b->norm2,
                       NULL);
    dt_linear_backward(m, gradients, layer, DT_GATE_WEIGHT, DT_NO_ROLE, dnorm, gate, &b->norm2,
                       &(struct dt_matmul){.accumulate = true});
}

static void append(struct dt_device *dev, struct dt_tensor *cache, const struct dt_tensor *rows,
                   int64_t past)
{
    struct dt_tensor place = dt_rows(cache, past, rows->rows);
    dev->ops->copy(dev, &place, rows);
}

void dt_block_forward(const struct dt_model *m, int layer, struct dt_block *buffers,
                      const struct dt_tensor *x, const struct dt_tensor *add, struct dt_tensor *out,
                      struct dt_cache *cache, const struct dt_attention *how)
{
    struct dt_device *dev = m->device;
    struct dt_block b = first_rows(buffers, x->rows);
    dt_norm_forward(m, layer, DT_NORM1_WEIGHT, DT_NORM1_BIAS, &b.norm1, &b.stats1, &b.input, x,
                    add);
    struct qkv s = project(m, layer, &b.qkv, &b.norm1, how);
    if (cache) {
        append(dev, &cache->keys, &s.k, how->past);
        append(dev, &cache->values, &s.v, how->past);
        s.k = cache->keys;
        s.v = cache->values;
    }
    dev->ops->attention_forward(dev, &b.attention, &b.lse, &s.q, &s.k, &s.v, how);
    dt_linear_forward(m, layer, DT_PROJECTION_WEIGHT, DT_PROJECTION_BIAS, out, &b.attention, NULL);
    dt_norm_forward(m, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, &b.norm2, &b.stats2, &b.middle,
                    &b.input, out);
    mlp(m, layer, &b, out);
}

void dt_block_backward(const struct dt_model *m, int layer, const struct dt_block *buffers,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch, float *gradients,
                       const struct dt_attention *how)
{
    int64_t rows = stream->rows;
    struct dt_block b = first_rows(buffers, rows);
    struct dt_tensor width = dt_rows(&scratch->width, 0, rows);
    struct dt_tensor gate = dt_rows(&scratch->gate, 0, rows);
    struct dt_tensor inner = dt_rows(&scratch->inner, 0, rows);
    struct dt_tensor dqkv = dt_rows(&scratch->qkv, 0, rows);
    mlp_backward(m, gradients, layer, &width, stream, &b, &inner, &gate);
    dt_norm_backward(m, gradients, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, stream, &width, &b.middle,
                     &b.stats2);
    dt_linear_backward(m, gradients, layer, DT_PROJECTION_WEIGHT, DT_PROJECTION_BIAS, &width,
                       stream, &b.attention, NULL);
    struct qkv s = split(m, &b.qkv), d = split(m, &dqkv);
    m->device->ops->attention_backward(m->device, &d.q, &d.k, &d.v, &width, &b.attention, &b.lse,
                                       &s.q, &s.k, &s.v, how);
    project_backward(m, gradients, layer, &width, &dqkv, &b.norm1, how);
    dt_norm_backward(m, gradients, layer, DT_NORM1_WEIGHT, DT_NORM1_BIAS, stream, &width, &b.input,
                     &b.stats1);
}
