/* SPDX-License-Identifier: MIT */
#include "model/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/rng.h"

#define ALIGNMENT 16 /* elements: a cache line */

enum dimension { ONE, VOCABULARY, POSITIONS, WIDTH, WIDTH_3, KEYS, INNER };
enum place { NOWHERE, BEFORE, BLOCK, BEHIND };
enum kind {
    PLAIN = 0,
    RESIDUAL = 1,  /* writes into the residual stream */
    TRANSPOSED = 2 /* output x input */
};

struct spec {
    enum dt_role role;
    enum place place; /* NOWHERE ends a list */
    const char *name; /* with %d for the layer inside blocks */
    enum dimension rows, columns;
    enum dt_init init;
    int kind; /* of enum kind, added up */
};

/* GPT-2 (Radford et al. 2019). */
static const struct spec gpt2[] = {
    {DT_TOKEN_EMBEDDING, BEFORE, "transformer.wte.weight", VOCABULARY, WIDTH, DT_INIT_NORMAL,
     PLAIN},
    {DT_POSITION_EMBEDDING, BEFORE, "transformer.wpe.weight", POSITIONS, WIDTH, DT_INIT_NORMAL,
     PLAIN},
    {DT_NORM1_WEIGHT, BLOCK, "transformer.h.%d.ln_1.weight", WIDTH, ONE, DT_INIT_ONE, PLAIN},
    {DT_NORM1_BIAS, BLOCK, "transformer.h.%d.ln_1.bias", WIDTH, ONE, DT_INIT_ZERO, PLAIN},
    {DT_QKV_WEIGHT, BLOCK, "transformer.h.%d.attn.c_attn.weight", WIDTH, WIDTH_3, DT_INIT_NORMAL,
     PLAIN},
    {DT_QKV_BIAS, BLOCK, "transformer.h.%d.attn.c_attn.bias", WIDTH_3, ONE, DT_INIT_ZERO, PLAIN},
    {DT_PROJECTION_WEIGHT, BLOCK, "transformer.h.%d.attn.c_proj.weight", WIDTH, WIDTH,
     DT_INIT_NORMAL, RESIDUAL},
    {DT_PROJECTION_BIAS, BLOCK, "transformer.h.%d.attn.c_proj.bias", WIDTH, ONE, DT_INIT_ZERO,
     PLAIN},
    {DT_NORM2_WEIGHT, BLOCK, "transformer.h.%d.ln_2.weight", WIDTH, ONE, DT_INIT_ONE, PLAIN},
    {DT_NORM2_BIAS, BLOCK, "transformer.h.%d.ln_2.bias", WIDTH, ONE, DT_INIT_ZERO, PLAIN},
    {DT_UP_WEIGHT, BLOCK, "transformer.h.%d.mlp.c_fc.weight", WIDTH, INNER, DT_INIT_NORMAL, PLAIN},
    {DT_UP_BIAS, BLOCK, "transformer.h.%d.mlp.c_fc.bias", INNER, ONE, DT_INIT_ZERO, PLAIN},
    {DT_DOWN_WEIGHT, BLOCK, "transformer.h.%d.mlp.c_proj.weight", INNER, WIDTH, DT_INIT_NORMAL,
     RESIDUAL},
    {DT_DOWN_BIAS, BLOCK, "transformer.h.%d.mlp.c_proj.bias", WIDTH, ONE, DT_INIT_ZERO, PLAIN},
    {DT_FINAL_NORM_WEIGHT, BEHIND, "transformer.ln_f.weight", WIDTH, ONE, DT_INIT_ONE, PLAIN},
    {DT_FINAL_NORM_BIAS, BEHIND, "transformer.ln_f.bias", WIDTH, ONE, DT_INIT_ZERO, PLAIN},
    {.place = NOWHERE},
};

/* Llama (Touvron et al. 2023). */
static const struct spec llama[] = {
    {DT_TOKEN_EMBEDDING, BEFORE, "model.embed_tokens.weight", VOCABULARY, WIDTH, DT_INIT_NORMAL,
     PLAIN},
    {DT_NORM1_WEIGHT, BLOCK, "model.layers.%d.input_layernorm.weight", WIDTH, ONE, DT_INIT_ONE,
     PLAIN},
    {DT_Q_WEIGHT, BLOCK, "model.layers.%d.self_attn.q_proj.weight", WIDTH, WIDTH, DT_INIT_NORMAL,
     TRANSPOSED},
    {DT_K_WEIGHT, BLOCK, "model.layers.%d.self_attn.k_proj.weight", KEYS, WIDTH, DT_INIT_NORMAL,
     TRANSPOSED},
    {DT_V_WEIGHT, BLOCK, "model.layers.%d.self_attn.v_proj.weight", KEYS, WIDTH, DT_INIT_NORMAL,
     TRANSPOSED},
    {DT_PROJECTION_WEIGHT, BLOCK, "model.layers.%d.self_attn.o_proj.weight", WIDTH, WIDTH,
     DT_INIT_NORMAL, TRANSPOSED + RESIDUAL},
    {DT_NORM2_WEIGHT, BLOCK, "model.layers.%d.post_attention_layernorm.weight", WIDTH, ONE,
     DT_INIT_ONE, PLAIN},
    {DT_GATE_WEIGHT, BLOCK, "model.layers.%d.mlp.gate_proj.weight", INNER, WIDTH, DT_INIT_NORMAL,
     TRANSPOSED},
    {DT_UP_WEIGHT, BLOCK, "model.layers.%d.mlp.up_proj.weight", INNER, WIDTH, DT_INIT_NORMAL,
     TRANSPOSED},
    {DT_DOWN_WEIGHT, BLOCK, "model.layers.%d.mlp.down_proj.weight", WIDTH, INNER, DT_INIT_NORMAL,
     TRANSPOSED + RESIDUAL},
    {DT_FINAL_NORM_WEIGHT, BEHIND, "model.norm.weight", WIDTH, ONE, DT_INIT_ONE, PLAIN},
    {DT_HEAD_WEIGHT, BEHIND, "lm_head.weight", VOCABULARY, WIDTH, DT_INIT_NORMAL, TRANSPOSED},
    {.place = NOWHERE},
};

static const struct spec *const families[] = {[DT_GPT2] = gpt2, [DT_LLAMA] = llama};

static int64_t size_of(enum dimension d, const struct dt_model_config *c)
{
    switch (d) {
    case VOCABULARY:
        return c->vocab_size;
    case POSITIONS:
        return c->max_seq_len;
    case WIDTH:
        return c->hidden_size;
    case WIDTH_3:
        return 3 * c->hidden_size;
    case KEYS:
        return dt_model_kv_width(c);
    case INNER:
        return c->intermediate_size;
    default:
        return 1;
    }
}

static void add(struct dt_table *t, const struct spec *s, int layer,
                const struct dt_model_config *c)
{
    struct dt_param *p = &t->params[t->count];
    *p = (struct dt_param){.role = s->role,
                           .layer = layer,
                           .rank = s->columns == ONE ? 1 : 2,
                           .shape = {size_of(s->rows, c), size_of(s->columns, c)},
                           .transposed = s->kind & TRANSPOSED,
                           .decay = s->columns != ONE,
                           .init = s->init,
                           .init_std = (float)c->initializer_range,
                           .offset = t->elements};
    if (s->kind & RESIDUAL)
        p->init_std /= sqrtf(2.0f * (float)c->num_layers);
    if (s->place == BLOCK)
        snprintf(p->name, sizeof p->name, s->name, layer);
    else
        snprintf(p->name, sizeof p->name, "%s", s->name);
    p->count = p->shape[0] * p->shape[1];
    t->parameters += p->count;
    t->elements += (p->count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    t->index[(int)s->role * (t->layers + 2) + layer + 1] = t->count++;
}

static void add_place(struct dt_table *t, enum place place, int layer,
                      const struct dt_model_config *c)
{
    for (const struct spec *s = families[c->family]; s->place != NOWHERE; s++)
        if (s->place == place && !(s->role == DT_HEAD_WEIGHT && c->tie_word_embeddings))
            add(t, s, layer, c);
}

void dt_table_init(struct dt_table *t, const struct dt_model_config *c)
{
    int layers = (int)c->num_layers, roles = DT_ROLES * (layers + 2);
    *t = (struct dt_table){.layers = layers};
    t->params = dt_alloc((size_t)roles, sizeof *t->params);
    t->index = dt_alloc((size_t)roles, sizeof *t->index);
    for (int i = 0; i < roles; i++)
        t->index[i] = -1;
    add_place(t, BEFORE, -1, c);
    for (int layer = 0; layer < layers; layer++)
        add_place(t, BLOCK, layer, c);
    add_place(t, BEHIND, layers, c);
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

void dt_table_initialize(const struct dt_table *t, uint64_t seed, float *parameters)
{
    for (int64_t i = 0; i < t->elements; i++)
        parameters[i] = 0;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        float *values = parameters + p->offset;
        if (p->init == DT_INIT_NORMAL)
            fill_normal(values, p->count, p->init_std, dt_random_key(seed, 'I', (uint64_t)i));
        for (int64_t j = 0; p->init == DT_INIT_ONE && j < p->count; j++)
            values[j] = 1;
    }
}
