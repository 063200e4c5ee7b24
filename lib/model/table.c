/* SPDX-License-Identifier: MIT */
#include "model/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/pool.h"
#include "math/math.h"
#include "math/rng.h"
#include "model/context-parallel.h"

#define ALIGNMENT 16 /* elements: a cache line */

static const enum dt_tensor_split splits[DT_ROLE_COUNT] = {
    [DT_ROLE_TOKEN_EMBEDDING] = DT_TENSOR_SPLIT_ROW,
    [DT_ROLE_QKV_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_QKV_BIAS] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_Q_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_Q_BIAS] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_K_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_K_BIAS] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_V_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_V_BIAS] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_PROJECTION_WEIGHT] = DT_TENSOR_SPLIT_ROW,
    [DT_ROLE_GATE_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_GATE_BIAS] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_UP_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_UP_BIAS] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_DOWN_WEIGHT] = DT_TENSOR_SPLIT_ROW,
    [DT_ROLE_HEAD_WEIGHT] = DT_TENSOR_SPLIT_COLUMN,
    [DT_ROLE_HEAD_BIAS] = DT_TENSOR_SPLIT_COLUMN,
};

/* The ranges of a dimension that a TP rank holds. */
static int ranges_of(enum dt_dimension d, const struct dt_model_config *c,
                     const struct dt_tensor_partition *partition, struct dt_range ranges[3])
{
    int64_t size = dt_model_head_dim(c), width = c->hidden_size;
    struct dt_range queries = {partition->heads.first * size, partition->heads.end * size};
    struct dt_range keys = {partition->kv_heads.first * size, partition->kv_heads.end * size};
    switch (d) {
    case DT_DIMENSION_WIDTH3:
        for (int i = 0; i < 3; i++)
            ranges[i] = (struct dt_range){i * width + queries.first, i * width + queries.end};
        return 3;
    case DT_DIMENSION_QUERIES:
        ranges[0] = queries;
        return 1;
    case DT_DIMENSION_KEYS:
        ranges[0] = keys;
        return 1;
    case DT_DIMENSION_INNER:
        ranges[0] = partition->inner;
        return 1;
    case DT_DIMENSION_VOCABULARY:
        ranges[0] = partition->tokens;
        return 1;
    case DT_DIMENSION_LABELS: /* not with tensor parallelism */
        ranges[0] = (struct dt_range){0, c->num_labels};
        return 1;
    default:
        abort(); /* other dimensions are not split */
    }
}

/* Norms whose gradients are sums over TP ranks: over heads, or with sequence parallelism over rows.
 */
static bool is_partial(enum dt_role role, const struct dt_model_config *c,
                       const struct dt_model_part *part)
{
    switch (role) {
    case DT_ROLE_Q_NORM_WEIGHT:
    case DT_ROLE_K_NORM_WEIGHT:
        return part->tp_size > 1 && !dt_model_has_joint_qk_norm(c);
    case DT_ROLE_NORM1_WEIGHT:
    case DT_ROLE_NORM1_BIAS:
    case DT_ROLE_NORM2_WEIGHT:
    case DT_ROLE_NORM2_BIAS:
    case DT_ROLE_NORM1_OUTPUT_WEIGHT:
    case DT_ROLE_NORM2_OUTPUT_WEIGHT:
    case DT_ROLE_FINAL_NORM_WEIGHT:
    case DT_ROLE_FINAL_NORM_BIAS:
        return part->sequence;
    default:
        return false;
    }
}

/* Shards a tensor of the whole model. */
static void shard(struct dt_param *p, const struct dt_tensor_spec *s,
                  const struct dt_model_config *c, const struct dt_model_part *part,
                  const struct dt_tensor_partition *partition)
{
    bool outputs_last = p->rank == 2 && !p->transposed;
    p->split = splits[p->role];
    p->axis = (p->split == DT_TENSOR_SPLIT_COLUMN) == outputs_last && p->rank == 2 ? 1 : 0;
    p->holders = (struct dt_range){0, part->tp_size};
    p->partial = is_partial(p->role, c, part);
    p->partial_parts = p->role == DT_ROLE_Q_NORM_WEIGHT || p->role == DT_ROLE_K_NORM_WEIGHT
                           ? dt_context_parallel_row_parts(part, false)
                           : 1;
    p->ranges[0] = (struct dt_range){0, p->full[p->axis]};
    p->range_count = 1;
    if (p->split != DT_TENSOR_SPLIT_NONE) {
        bool keys = (p->axis == 0 ? s->rows : s->columns) == DT_DIMENSION_KEYS;
        p->holders =
            keys ? partition->key_holders : (struct dt_range){part->tp_rank, part->tp_rank + 1};
        p->partial = keys && c->num_kv_heads < part->tp_size;
        p->range_count = ranges_of(p->axis == 0 ? s->rows : s->columns, c, partition, p->ranges);
        p->shape[p->axis] = 0;
        for (int i = 0; i < p->range_count; i++)
            p->shape[p->axis] += dt_range_count(p->ranges[i]);
    }
    p->leads = p->holders.first == part->tp_rank;
    p->count = p->shape[0] * p->shape[1];
}

static enum dt_init init_of(const struct dt_tensor_spec *s, enum dt_norm_kind norm)
{
    if (s->columns != DT_DIMENSION_ONE)
        return s->kind & DT_TENSOR_SINUSOIDAL ? DT_INIT_SINUSOIDAL : DT_INIT_NORMAL;
    return s->kind & DT_TENSOR_SCALE && norm != DT_NORM_RMS_PLUS_ONE ? DT_INIT_ONE : DT_INIT_ZERO;
}

static int64_t aligned(int64_t count)
{
    return (count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int dt_table_layer_bucket(int layer)
{
    return layer + 2;
}

int dt_head_bucket(const struct dt_table *t)
{
    return dt_table_layer_bucket(t->layers) + 1;
}

/* Appends a tensor to the table. */
static void append(struct dt_table *t, struct dt_param *p)
{
    struct dt_partials *partials = &t->partials[p->bucket];
    int64_t *parts = p->split == DT_TENSOR_SPLIT_NONE ? &partials->of_all : &partials->of_holders;
    p->offset = t->elements;
    p->partial_offset = *parts;
    *parts += p->partial ? p->count * p->partial_parts : 0;
    t->elements += aligned(p->count);
    t->index[(int)p->role * (t->layers + 2) + p->layer + 1] = t->count;
    for (int bucket = p->bucket + 1; bucket <= t->bucket_count; bucket++)
        t->buckets[bucket] = t->elements;
    DT_GROW(t->params, t->count, t->capacity);
    t->params[t->count++] = *p;
}

/* State of dt_table_init. */
struct builder {
    struct dt_table *table;
    const struct dt_model_config *config;
    const struct dt_model_part *part;
    struct dt_tensor_partition partition; /* of part */
    int number;                           /* tensors of the whole model so far */
    bool adapters;                        /* of the weights, instead of them */
    char last_a[DT_PARAM_NAME];
};

static void finish(struct builder *m, struct dt_param *p)
{
    struct dt_table *t = m->table;
    p->number = m->number++;
    t->parameters += p->full[0] * p->full[1];
    t->has[p->role] = true;
    if (dt_model_part_holds(m->part, t->layers, p->layer))
        append(t, p);
}

/* A matrix of the adapter of weight w: rows x columns, stored as output x input. */
static struct dt_param adapter_of(const struct dt_param *w, enum dt_role role, int64_t rows,
                                  int64_t columns)
{
    struct dt_param p = {.role = role,
                         .layer = w->layer,
                         .bucket = w->bucket,
                         .rank = 2,
                         .shape = {rows, columns},
                         .full = {rows, columns},
                         .ranges = {{0, rows}},
                         .range_count = 1,
                         .holders = {0, 1},
                         .leads = true,
                         .partial_parts = 1,
                         .transposed = true,
                         .decay = true,
                         .count = rows * columns};
    return p;
}

#define PEFT_PREFIX "base_model.model."

static void name_adapter(char name[DT_PARAM_NAME], const char *weight, const char *matrix)
{
    snprintf(name, DT_PARAM_NAME, PEFT_PREFIX "%.*s.lora_%s.weight", dt_lora_map_length(weight),
             weight, matrix);
}

/* A, unless the last weight with an adapter is of the same map, and B. */
static void add_adapter(struct builder *m, const struct dt_param *w)
{
    const struct dt_lora *lora = &m->config->lora;
    const char *map = *w->fused ? w->fused : w->name;
    int64_t outputs = w->full[w->transposed ? 0 : 1], inputs = w->full[w->transposed ? 1 : 0];
    if (!dt_lora_targets(lora, w->role, map))
        return;
    struct dt_param a = adapter_of(w, DT_TABLE_ADAPTER_A(w->role), lora->rank, inputs);
    struct dt_param b = adapter_of(w, DT_TABLE_ADAPTER_B(w->role), outputs, lora->rank);
    a.init = DT_INIT_UNIFORM;
    a.init_std = (float)(1 / sqrt((double)inputs));
    name_adapter(a.name, map, "A");
    name_adapter(b.name, w->name, "B");
    if (*w->fused)
        name_adapter(b.fused, w->fused, "B");
    b.head_rows = w->head_rows;
    if (strcmp(a.name, m->last_a) != 0)
        finish(m, &a);
    snprintf(m->last_a, sizeof m->last_a, "%s", a.name);
    finish(m, &b);
}

/* block: the index in the name. */
static void add(struct builder *m, const struct dt_tensor_spec *s, int layer, int block)
{
    const struct dt_model_config *c = m->config;
    struct dt_param p = {.role = s->role,
                         .layer = layer,
                         .bucket = s->role == DT_ROLE_TOKEN_EMBEDDING
                                       ? DT_TOKEN_BUCKET
                                       : dt_table_layer_bucket(layer),
                         .rank = s->columns == DT_DIMENSION_ONE ? 1 : 2,
                         .shape = {dt_dimension_size(s->rows, c), dt_dimension_size(s->columns, c)},
                         .full = {dt_dimension_size(s->rows, c), dt_dimension_size(s->columns, c)},
                         .transposed = s->kind & DT_TENSOR_TRANSPOSED,
                         .decay = s->columns != DT_DIMENSION_ONE,
                         .init = init_of(s, dt_family_of(c)->norm),
                         .init_std = (float)c->initializer_range};
    if (s->kind & DT_TENSOR_RESIDUAL)
        p.init_std /= sqrtf(2.0f * (float)c->num_layers);
    snprintf(p.name, sizeof p.name, s->name, block);
    if (s->fused)
        snprintf(p.fused, sizeof p.fused, s->fused, block);
    p.head_rows = s->kind & DT_TENSOR_BY_HEAD ? dt_model_head_dim(c) : 0;
    if (m->adapters) {
        add_adapter(m, &p);
        return;
    }
    shard(&p, s, c, m->part, &m->partition);
    finish(m, &p);
}

static void add_site(struct builder *m, enum dt_tensor_site site, int layer, int block)
{
    const struct dt_tensor_spec *s = dt_family_of(m->config)->tensors;
    bool labels = m->config->num_labels > 0 && site == DT_TENSOR_SITE_AFTER;
    for (; s->site != DT_TENSOR_SITE_END; s++)
        if (s->site == site && dt_model_has_role(m->config, s->role) &&
            !(labels && s->role >= DT_ROLE_HEAD_DENSE_WEIGHT))
            add(m, s, layer, block);
}

/* The tied head: a copy of the token embedding in a stage without it; only a gradient in a stage
 * with it. */
static void add_head_apart(struct builder *m)
{
    struct dt_table *t = m->table, whole;
    struct dt_model_part all = *m->part;
    all.stage = 0;
    all.stages = all.chunks = 1;
    all.tied_apart = false;
    dt_table_init(&whole, m->config, &all);
    struct dt_param head = *dt_table_find(&whole, DT_ROLE_TOKEN_EMBEDDING, -1);
    dt_table_release(&whole);
    head.role = DT_ROLE_HEAD_WEIGHT;
    head.layer = t->layers;
    head.bucket = dt_head_bucket(t);
    head.copy = true;
    if (!dt_model_part_holds(m->part, t->layers, -1))
        append(t, &head);
    t->gradient_elements = t->elements;
    if (dt_model_part_holds(m->part, t->layers, -1))
        t->gradient_elements += aligned(head.count);
    t->buckets[t->bucket_count] = t->gradient_elements;
}

static void init(struct dt_table *t, const struct dt_model_config *c,
                 const struct dt_model_part *part, bool adapters)
{
    int layers = (int)c->num_layers, roles = DT_TABLE_ROLES * (layers + 2);
    struct builder m = {
        .table = t, .config = c, .part = part ? part : &DT_MODEL_PART_WHOLE, .adapters = adapters};
    m.partition = dt_tensor_partition_of(c, m.part->tp_rank, m.part->tp_size);
    *t = (struct dt_table){.layers = layers, .bucket_count = dt_table_layer_bucket(layers) + 2};
    t->index = dt_alloc((size_t)roles, sizeof *t->index);
    t->buckets = dt_alloc((size_t)t->bucket_count + 1, sizeof *t->buckets);
    t->partials = dt_alloc((size_t)t->bucket_count, sizeof *t->partials);
    for (int i = 0; i < roles; i++)
        t->index[i] = -1;
    add_site(&m, DT_TENSOR_SITE_BEFORE, -1, 0);
    for (int layer = 0; layer < layers; layer++) {
        add_site(&m, layer == 0 ? DT_TENSOR_SITE_FIRST : DT_TENSOR_SITE_BETWEEN, layer, layer - 1);
        if (layer > 0)
            add_site(&m, DT_TENSOR_SITE_LATER, layer, layer);
        add_site(&m, DT_TENSOR_SITE_BLOCK, layer, layer);
    }
    add_site(&m, DT_TENSOR_SITE_AFTER, layers, layers - 1);
    if (c->num_labels > 0)
        add_site(&m, DT_TENSOR_SITE_LABELS, layers, layers - 1);
    t->gradient_elements = t->elements;
    if (!adapters && c->tie_word_embeddings && m.part->tied_apart &&
        dt_model_part_holds(m.part, layers, layers))
        add_head_apart(&m);
}

void dt_table_init(struct dt_table *t, const struct dt_model_config *c,
                   const struct dt_model_part *part)
{
    init(t, c, part, false);
}

void dt_table_init_trained(struct dt_table *t, const struct dt_model_config *c,
                           const struct dt_model_part *part)
{
    init(t, c, part, c->lora.rank > 0);
}

void dt_table_release(struct dt_table *t)
{
    free(t->params);
    free(t->index);
    free(t->buckets);
    free(t->partials);
    *t = (struct dt_table){0};
}

const struct dt_param *dt_table_find(const struct dt_table *t, enum dt_role role, int layer)
{
    int i = role == DT_ROLE_NONE ? -1 : t->index[(int)role * (t->layers + 2) + layer + 1];
    return i < 0 ? NULL : &t->params[i];
}

void dt_flat_set(struct dt_flat *flat, const struct dt_table *t, enum dt_dtype dtype, void *base)
{
    flat->dtype = dtype;
    if (flat->buckets == NULL)
        flat->buckets = dt_alloc((size_t)t->bucket_count, sizeof *flat->buckets);
    for (int i = 0; base && i < t->bucket_count; i++)
        flat->buckets[i] = (char *)base + t->buckets[i] * (int64_t)dt_dtype_size(dtype);
}

void dt_flat_release(struct dt_flat *flat)
{
    free(flat->buckets);
    *flat = (struct dt_flat){0};
}

/* Address of a tensor in an arena. */
static void *address_of(const struct dt_table *t, const struct dt_flat *flat,
                        const struct dt_param *p)
{
    if (p->partial && flat->partial)
        return flat->partial + p->partial_offset +
               (p->split == DT_TENSOR_SPLIT_NONE ? 0 : t->partials[p->bucket].of_all);
    int64_t offset = (p->offset - t->buckets[p->bucket]) * (int64_t)dt_dtype_size(flat->dtype);
    assert(flat->buckets[p->bucket]);
    return (char *)flat->buckets[p->bucket] + offset;
}

struct dt_tensor dt_table_view(const struct dt_table *t, const struct dt_flat *flat,
                               enum dt_role role, int layer)
{
    const struct dt_param *p = dt_table_find(t, role, layer);
    if (p == NULL)
        return (struct dt_tensor){0};
    void *data = address_of(t, flat, p);
    return p->rank == 1 ? dt_matrix_of(flat->dtype, data, 1, p->count)
                        : dt_matrix_of(flat->dtype, data, p->shape[0], p->shape[1]);
}

int64_t dt_param_runs(const struct dt_param *p)
{
    return p->split != DT_TENSOR_SPLIT_NONE && p->axis == 1 ? p->shape[0] * p->range_count
                                                            : p->range_count;
}

struct dt_param_run dt_param_run(const struct dt_param *p, int64_t i)
{
    if (p->split == DT_TENSOR_SPLIT_NONE)
        return (struct dt_param_run){0, 0, p->count};
    int64_t row = i / p->range_count, before = 0, width = p->full[1];
    const struct dt_range *range = &p->ranges[i % p->range_count];
    for (const struct dt_range *r = p->ranges; r < range; r++)
        before += dt_range_count(*r);
    if (p->axis == 0) /* whole rows */
        return (struct dt_param_run){before * width, range->first * width,
                                     dt_range_count(*range) * width};
    return (struct dt_param_run){row * p->shape[1] + before, row * p->full[1] + range->first,
                                 dt_range_count(*range)};
}

void dt_table_shard(const struct dt_table *part, float *to, const struct dt_table *whole,
                    const float *from)
{
    for (int i = 0; i < part->count; i++) {
        const struct dt_param *p = &part->params[i];
        for (int64_t n = 0; n < dt_param_runs(p); n++) {
            struct dt_param_run run = dt_param_run(p, n);
            memcpy(to + p->offset + run.here, from + whole->params[p->number].offset + run.there,
                   (size_t)run.count * sizeof *to);
        }
    }
}

/* A job of a thread: normal numbers for elements first to first + count of the whole tensor. */
struct normals {
    float *values;
    int64_t first, count;
    float std;
    uint64_t key;
};

#define NORMALS_PER_JOB ((int64_t)1 << 20)

static void draw(void *job, void *context)
{
    const struct normals *n = job;
    double pair[2];
    (void)context;
    for (int64_t e = n->first; e < n->first + n->count; e++) {
        if (e == n->first || e % 2 == 0)
            dt_rng_normal_pair(dt_random(n->key, 0, (uint64_t)e / 2), pair);
        n->values[e - n->first] = n->std * (float)pair[e % 2];
    }
}

static void fill_normal(struct dt_pool *pool, const struct normals *all)
{
    for (int64_t at = 0; at < all->count; at += NORMALS_PER_JOB) {
        struct normals *job = dt_alloc(1, sizeof *job);
        int64_t left = all->count - at;
        *job =
            (struct normals){all->values + at, all->first + at,
                             left < NORMALS_PER_JOB ? left : NORMALS_PER_JOB, all->std, all->key};
        if (dt_pool_full(pool))
            free(dt_pool_next(pool));
        dt_pool_submit(pool, job);
    }
}

/* From -most to most. */
static void fill_uniform(float *values, int64_t count, float most, uint64_t key)
{
    for (int64_t e = 0; e < count; e++) {
        uint32_t bits = dt_random(key, 0, (uint64_t)e / 4).word[e % 4];
        values[e] = most * (2 * dt_rng_uniform_float(bits) - 1);
    }
}

/* Columns 2 j and 2 j + 1 are sine and cosine of row / 10000^(2j / columns). The product of two
 * rows depends on their distance only, so attention to neighbors is learned for all positions at
 * once. */
static void fill_sinusoidal(float *values, const int64_t shape[2], float std)
{
    double height = sqrt(2) * (double)std;
    for (int64_t t = 0; t < shape[0]; t++)
        for (int64_t c = 0; c < shape[1]; c++) {
            double angle =
                (double)t * dt_math_pow(10000, -2.0 * (double)(c / 2) / (double)shape[1]);
            values[t * shape[1] + c] =
                (float)(height * (c % 2 ? dt_math_cos(angle) : dt_math_sin(angle)));
        }
}

void dt_table_initialize(const struct dt_table *t, uint64_t seed, float *parameters)
{
    struct dt_pool *pool =
        dt_pool_new(t->elements > NORMALS_PER_JOB ? dt_pool_processors() : 1, draw, NULL);
    for (int64_t i = 0; i < t->elements; i++)
        parameters[i] = 0;
    for (int i = 0; i < t->count; i++) {
        const struct dt_param *p = &t->params[i];
        float *values = parameters + p->offset;
        uint64_t key = dt_random_key(seed, 'I', (uint64_t)p->number);
        for (int64_t r = 0; p->init == DT_INIT_NORMAL && r < dt_param_runs(p); r++) {
            struct dt_param_run run = dt_param_run(p, r);
            fill_normal(
                pool, &(struct normals){values + run.here, run.there, run.count, p->init_std, key});
        }
        if (p->init == DT_INIT_UNIFORM)
            fill_uniform(values, p->count, p->init_std, key);
        if (p->init == DT_INIT_SINUSOIDAL)
            fill_sinusoidal(values, p->full, p->init_std);
        for (int64_t j = 0; p->init == DT_INIT_ONE && j < p->count; j++)
            values[j] = 1;
    }
    for (void *job; (job = dt_pool_next(pool)) != NULL;)
        free(job);
    dt_pool_free(pool);
}
