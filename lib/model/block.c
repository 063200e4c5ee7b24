/* SPDX-License-Identifier: MIT */
#include "model/block.h"

void dt_block_layout(struct dt_block *b, struct dt_arena *arena, const struct dt_model_config *c,
                     int64_t rows)
{
    b->input = dt_arena_matrix(arena, rows, c->hidden_size);
    b->norm1 = dt_arena_matrix(arena, rows, c->hidden_size);
    b->stats1 = dt_arena_matrix(arena, rows, 2);
    b->qkv = dt_arena_matrix(arena, rows, 3 * c->hidden_size);
    b->attention = dt_arena_matrix(arena, rows, c->hidden_size);
    b->lse = dt_arena_matrix(arena, rows, c->num_heads);
    b->middle = dt_arena_matrix(arena, rows, c->hidden_size);
    b->norm2 = dt_arena_matrix(arena, rows, c->hidden_size);
    b->stats2 = dt_arena_matrix(arena, rows, 2);
    b->up = dt_arena_matrix(arena, rows, c->intermediate_size);
    b->active = dt_arena_matrix(arena, rows, c->intermediate_size);
}

void dt_block_scratch_layout(struct dt_block_scratch *s, struct dt_arena *arena,
                             const struct dt_model_config *c, int64_t rows)
{
    s->width = dt_arena_matrix(arena, rows, c->hidden_size);
    s->qkv = dt_arena_matrix(arena, rows, 3 * c->hidden_size);
    s->inner = dt_arena_matrix(arena, rows, c->intermediate_size);
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
        .up = dt_rows(&b->up, 0, rows),
        .active = dt_rows(&b->active, 0, rows),
    };
}

struct qkv {
    struct dt_tensor q, k, v;
};

static struct qkv split(const struct dt_tensor *qkv)
{
    int64_t width = qkv->columns / 3;
    return (struct qkv){dt_columns(qkv, 0, width), dt_columns(qkv, width, width),
                        dt_columns(qkv, 2 * width, width)};
}

/* y = x w + b, w and b the tensors of two roles. */
static void linear(const struct dt_model *m, int layer, enum dt_role weight, enum dt_role bias,
                   struct dt_tensor *y, const struct dt_tensor *x, enum dt_activation activation,
                   struct dt_tensor *aux)
{
    struct dt_tensor w = dt_table_view(&m->table, m->parameters, weight, layer);
    struct dt_tensor b = dt_table_view(&m->table, m->parameters, bias, layer);
    m->device->ops->matmul(m->device, y, x, &w,
                           &(struct dt_matmul){.bias = &b, .activation = activation, .aux = aux});
}

/* dx = dy w' (times the activation's derivative at aux), dw += x' dy, db += dy. */
static void linear_backward(const struct dt_model *m, float *gradients, int layer,
                            enum dt_role weight, enum dt_role bias, struct dt_tensor *dx,
                            const struct dt_tensor *dy, const struct dt_tensor *x,
                            enum dt_activation activation, const struct dt_tensor *aux)
{
    const struct dt_ops *ops = m->device->ops;
    struct dt_tensor w = dt_table_view(&m->table, m->parameters, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, gradients, bias, layer);
    ops->matmul(m->device, &dw, x, dy,
                &(struct dt_matmul){.transpose_a = true, .accumulate = true});
    ops->bias_backward(m->device, &db, dy);
    ops->matmul(m->device, dx, dy, &w,
                &(struct dt_matmul){
                    .transpose_b = true, .activation = activation, .aux = (struct dt_tensor *)aux});
}

static void norm(const struct dt_model *m, int layer, enum dt_role weight, enum dt_role bias,
                 struct dt_tensor *y, struct dt_tensor *stats, struct dt_tensor *sum,
                 const struct dt_tensor *x, const struct dt_tensor *add)
{
    struct dt_tensor w = dt_table_view(&m->table, m->parameters, weight, layer);
    struct dt_tensor b = dt_table_view(&m->table, m->parameters, bias, layer);
    m->device->ops->norm_forward(m->device, y, stats, sum, x, add, &w, &b,
                                 (float)m->config.layer_norm_epsilon);
}

static void norm_backward(const struct dt_model *m, float *gradients, int layer,
                          enum dt_role weight, enum dt_role bias, struct dt_tensor *dsum,
                          const struct dt_tensor *dy, const struct dt_tensor *sum,
                          const struct dt_tensor *stats)
{
    struct dt_tensor w = dt_table_view(&m->table, m->parameters, weight, layer);
    struct dt_tensor dw = dt_table_view(&m->table, gradients, weight, layer);
    struct dt_tensor db = dt_table_view(&m->table, gradients, bias, layer);
    m->device->ops->norm_backward(m->device, dsum, &dw, &db, dy, sum, &w, stats);
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
    norm(m, layer, DT_NORM1_WEIGHT, DT_NORM1_BIAS, &b.norm1, &b.stats1, &b.input, x, add);
    linear(m, layer, DT_QKV_WEIGHT, DT_QKV_BIAS, &b.qkv, &b.norm1, DT_ACT_NONE, NULL);
    struct qkv s = split(&b.qkv);
    if (cache) {
        append(dev, &cache->keys, &s.k, how->past);
        append(dev, &cache->values, &s.v, how->past);
        s.k = cache->keys;
        s.v = cache->values;
    }
    dev->ops->attention_forward(dev, &b.attention, &b.lse, &s.q, &s.k, &s.v, how);
    linear(m, layer, DT_PROJECTION_WEIGHT, DT_PROJECTION_BIAS, out, &b.attention, DT_ACT_NONE,
           NULL);
    norm(m, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, &b.norm2, &b.stats2, &b.middle, &b.input, out);
    linear(m, layer, DT_UP_WEIGHT, DT_UP_BIAS, &b.active, &b.norm2, DT_ACT_GELU, &b.up);
    linear(m, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, out, &b.active, DT_ACT_NONE, NULL);
}

void dt_block_backward(const struct dt_model *m, int layer, const struct dt_block *buffers,
                       struct dt_tensor *stream, struct dt_block_scratch *scratch, float *gradients,
                       const struct dt_attention *how)
{
    int64_t rows = stream->rows;
    struct dt_block b = first_rows(buffers, rows);
    struct dt_tensor width = dt_rows(&scratch->width, 0, rows);
    struct dt_tensor inner = dt_rows(&scratch->inner, 0, rows);
    struct dt_tensor dqkv = dt_rows(&scratch->qkv, 0, rows);
    linear_backward(m, gradients, layer, DT_DOWN_WEIGHT, DT_DOWN_BIAS, &inner, stream, &b.active,
                    DT_ACT_GELU_BACKWARD, &b.up);
    linear_backward(m, gradients, layer, DT_UP_WEIGHT, DT_UP_BIAS, &width, &inner, &b.norm2,
                    DT_ACT_NONE, NULL);
    norm_backward(m, gradients, layer, DT_NORM2_WEIGHT, DT_NORM2_BIAS, stream, &width, &b.middle,
                  &b.stats2);
    linear_backward(m, gradients, layer, DT_PROJECTION_WEIGHT, DT_PROJECTION_BIAS, &width, stream,
                    &b.attention, DT_ACT_NONE, NULL);
    struct qkv s = split(&b.qkv), d = split(&dqkv);
    m->device->ops->attention_backward(m->device, &d.q, &d.k, &d.v, &width, &b.attention, &b.lse,
                                       &s.q, &s.k, &s.v, how);
    linear_backward(m, gradients, layer, DT_QKV_WEIGHT, DT_QKV_BIAS, &width, &dqkv, &b.norm1,
                    DT_ACT_NONE, NULL);
    norm_backward(m, gradients, layer, DT_NORM1_WEIGHT, DT_NORM1_BIAS, stream, &width, &b.input,
                  &b.stats1);
}
