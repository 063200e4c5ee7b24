/* SPDX-License-Identifier: MIT */
#include "model/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/rng.h"
#include "model/families.h"

#define ALIGNMENT 16 /* elements: a cache line */

static int64_t size_of(enum dt_dimension d, const struct dt_model_config *c)
{
    switch (d) {
    case DT_ONE:
        return 1;
    case DT_VOCABULARY:
        return c->vocab_size;
    case DT_POSITIONS:
        return c->max_seq_len;
    case DT_TYPES:
        return 2;
    case DT_WIDTH:
        return c->hidden_size;
    case DT_WIDTH3:
        return 3 * c->hidden_size;
    case DT_KEYS:
        return dt_model_kv_width(c);
    case DT_HEAD:
        return c->hidden_size / c->num_heads;
    case DT_INNER:
        return c->intermediate_size;
    }
    abort();
}

static enum dt_init init_of(const struct dt_tensor_spec *s)
{
    if (s->columns != DT_ONE)
        return s->kind & DT_WAVES ? DT_INIT_WAVES : DT_INIT_NORMAL;
    return s->kind & DT_SCALE ? DT_INIT_ONE : DT_INIT_ZERO;
}

/* block: the number in the name. */
static void add(struct dt_table *t, const struct dt_tensor_spec *s, int layer, int block,
                const struct dt_model_config *c)
{
    struct dt_param *p = &t->params[t->count];
    *p = (struct dt_param){.role = s->role,
                           .layer = layer,
                           .rank = s->columns == DT_ONE ? 1 : 2,
                           .shape = {size_of(s->rows, c), size_of(s->columns, c)},
                           .transposed = s->kind & DT_TRANSPOSED,
                           .decay = s->columns != DT_ONE,
                           .init = init_of(s),
                           .init_std = (float)c->initializer_range,
                           .offset = t->elements};
    if (s->kind & DT_RESIDUAL)
        p->init_std /= sqrtf(2.0f * (float)c->num_layers);
    snprintf(p->name, sizeof p->name, s->name, block);
    p->count = p->shape[0] * p->shape[1];
    t->parameters += p->count;
    t->elements += (p->count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    t->index[(int)s->role * (t->layers + 2) + layer + 1] = t->count++;
}

static bool is_left_out(enum dt_role role, const struct dt_model_config *c)
{
    bool norm = role == DT_Q_NORM_WEIGHT || role == DT_K_NORM_WEIGHT;
    return (norm && !c->qk_norm) || (role == DT_HEAD_WEIGHT && c->tie_word_embeddings);
}

static void add_place(struct dt_table *t, enum dt_place place, int layer, int block,
                      const struct dt_model_config *c)
{
    for (const struct dt_tensor_spec *s = dt_architecture_of(c)->tensors; s->place != DT_NOWHERE;
         s++)
        if (s->place == place && !is_left_out(s->role, c))
            add(t, s, layer, block, c);
}

void dt_table_init(struct dt_table *t, const struct dt_model_config *c)
{
    int layers = (int)c->num_layers, roles = DT_ROLES * (layers + 2);
    *t = (struct dt_table){.layers = layers};
    t->params = dt_alloc((size_t)roles, sizeof *t->params);
    t->index = dt_alloc((size_t)roles, sizeof *t->index);
    for (int i = 0; i < roles; i++)
        t->index[i] = -1;
    add_place(t, DT_BEFORE, -1, 0, c);
    for (int layer = 0; layer < layers; layer++) {
        add_place(t, layer == 0 ? DT_FIRST : DT_BETWEEN, layer, layer - 1, c);
        add_place(t, DT_BLOCK, layer, layer, c);
    }
    add_place(t, DT_BEHIND, layers, layers - 1, c);
}

void dt_table_release(struct dt_table *t)
{
    free(t->params);
    free(t->index);
    *t = (struct dt_table){0};
}

const struct dt_param *dt_table_find(const struct dt_table *t, enum dt_role role, int layer)
{
    int i = role == DT_NO_ROLE ? -1 : t->index[(int)role * (t->layers + 2) + layer + 1];
    return i < 0 ? NULL : &t->params[i];
}

struct dt_tensor dt_table_view(const struct dt_table *t, enum dt_dtype dtype, void *base,
                               enum dt_role role, int layer)
{
    const struct dt_param *p = dt_table_find(t, role, layer);
    if (p == NULL)
        return (struct dt_tensor){0};
    void *data = (char *)base + p->offset * (int64_t)dt_dtype_size(dtype);
    return p->rank == 1 ? dt_matrix_of(dtype, data, 1, p->count)
                        : dt_matrix_of(dtype, data, p->shape[0], p->shape[1]);
}

static void fill_normal(float *values, int64_t count, float std, uint64_t key)
{
    for (int64_t i = 0; i < count; i += 2) {
        double pair[2];
        dt_normal_pair(dt_random(key, 0, (uint64_t)i / 2), pair);
        values[i] = std * (float)pair[0];
        if (i + 1 < count)
            values[i + 1] = std * (float)pair[1];
    }
}

/* Columns 2 j and 2 j + 1 are sine and cosine of the row over 10000^(2j / columns): rows
 * at the same distance look alike everywhere, so that attention to neighbours is learnt
 * for all places at once. */
static void fill_waves(float *values, const int64_t shape[2], float std)
{
    double height = sqrt(2) * (double)std;
    for (int64_t t = 0; t < shape[0]; t++)
        for (int64_t c = 0; c < shape[1]; c++) {
            double angle = (double)t * pow(10000, -2.0 * (double)(c / 2) / (double)shape[1]);
            values[t * shape[1] + c] = (float)(height * (c % 2 ? cos(angle) : sin(angle)));
        }
}

void dt_table_initialize(const struct dt_table *t, uint64_t seed, float *parameters)
{
    for (int64_t i = 0; i < t->elements; i++)
        parameters[i] = 0;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        float *values = parameters + p->offset;
        if (p->init == DT_INIT_NORMAL)
            fill_normal(values, p->count, p->init_std, dt_random_key(seed, 'I', (uint64_t)i));
        if (p->init == DT_INIT_WAVES)
            fill_waves(values, p->shape, p->init_std);
        for (int64_t j = 0; p->init == DT_INIT_ONE && j < p->count; j++)
            values[j] = 1;
    }
}
