/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/adapter.h"
#include "model/context-parallel.h"

static void lay_out_scratch(struct dt_model *m)
{
    size_t chunk = DT_SCRATCH_ELEMENTS * sizeof(float), most = 0;
    for (int i = 0; i < m->table.bucket_count; i++) {
        const struct dt_partials *p = &m->table.partials[i];
        size_t bytes = (size_t)(p->of_all + p->of_holders) * sizeof(float);
        most = bytes > most ? bytes : most;
    }
    m->scratch.received = dt_arena_take(&m->arena, (size_t)m->part.tp_size * chunk);
    m->scratch.sum = dt_arena_take(&m->arena, chunk);
    m->scratch.partial = dt_arena_take(&m->arena, most);
}

/* The weight of a norm has as many columns as a head, or as a whole projection. */
static size_t norm_sums_bytes(const struct dt_model *m)
{
    int64_t columns = dt_model_query_width(&m->config);
    return (size_t)((DT_ROW_PARTS + DT_TENSOR_PARTS) * columns) * sizeof(float);
}

/* Whether layer norms have no bias (ModernBERT). */
static bool lacks_norm_bias(const struct dt_model *m)
{
    return dt_family_of(&m->config)->norm == DT_NORM_LAYER &&
           !m->base->has[DT_ROLE_FINAL_NORM_BIAS];
}

static void lay_out(struct dt_model *m)
{
    size_t elements = (size_t)m->table.elements;
    if (!m->bare) {
        m->parameters = dt_arena_take(&m->arena, elements * sizeof *m->parameters);
        m->narrow = m->compute == DT_DTYPE_F32
                        ? m->parameters
                        : dt_arena_take(&m->arena, elements * dt_dtype_size(m->compute));
    }
    dt_flat_set(&m->weights, &m->table, m->compute, m->narrow);
    if (m->adapter) {
        m->frozen =
            dt_arena_take(&m->arena, (size_t)m->frozen_table.elements * dt_dtype_size(m->compute));
        dt_flat_set(&m->frozen_weights, &m->frozen_table, m->compute, m->frozen);
        dt_adapter_layout(m, &m->arena);
    }
    if (m->part.tp_size > 1)
        lay_out_scratch(m);
    if (m->config.qk_norm)
        m->norm_sums = dt_arena_take(&m->arena, norm_sums_bytes(m));
    if (lacks_norm_bias(m))
        m->no_bias = dt_arena_matrix_of(&m->arena, m->compute, 1, m->config.hidden_size);
    if (lacks_norm_bias(m) || m->adapter)
        m->no_gradient = dt_arena_matrix(&m->arena, 1, m->config.hidden_size);
    for (int i = 0; i < DT_ROPE_TABLE_COUNT; i++) {
        int64_t columns = dt_rope_columns(&m->config, (enum dt_rope_table)i);
        if (columns > 0)
            m->ropes[i] = dt_arena_matrix(&m->arena, m->config.max_seq_len, columns);
    }
}

static void fill_rope(struct dt_model *m, enum dt_rope_table table)
{
    const struct dt_tensor *rope = &m->ropes[table];
    size_t bytes = (size_t)(rope->rows * rope->columns) * sizeof(float);
    if (rope->data == NULL)
        return;
    float *host = dt_alloc(1, bytes);
    dt_rope_fill(&m->config, table, host);
    m->device->ops->upload(m->device, rope->data, host, bytes);
    free(host);
}

struct dt_model *dt_model_plan(struct dt_device *dev, const struct dt_model_config *config,
                               enum dt_dtype compute, const struct dt_model_part *part)
{
    struct dt_model *m = dt_alloc(1, sizeof *m);
    m->device = dev;
    m->config = *config;
    m->part = part ? *part : DT_MODEL_PART_WHOLE;
    m->part.sequence = m->part.sequence && m->part.tp_size > 1;
    m->part.cp_size = m->part.cp_size > 1 ? m->part.cp_size : 1;
    m->partition = dt_tensor_partition_of(config, m->part.tp_rank, m->part.tp_size);
    m->compute = compute;
    dt_table_init_trained(&m->table, config, &m->part);
    m->base = &m->table;
    if (config->lora.rank > 0) {
        dt_table_init(&m->frozen_table, config, &m->part);
        m->base = &m->frozen_table;
        m->adapter = dt_alloc(1, sizeof *m->adapter);
    }
    lay_out(m);
    return m;
}

void dt_model_strip(struct dt_model *m)
{
    m->bare = true;
    m->parameters = NULL;
    m->narrow = NULL;
    m->arena = (struct dt_arena){0};
    lay_out(m);
}

/* Heads that the engine computes. */
static int check_heads(const struct dt_model *m, struct dt_error *err)
{
    const struct dt_engine *engine = m->device->engine;
    int64_t most = engine->head_channels, size = dt_model_head_dim(&m->config);
    if (most == 0 || size <= most)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "the engine %s computes heads of at most %lld channels, and the model's have "
                   "%lld",
                   engine->name, (long long)most, (long long)size);
}

int dt_model_allocate(struct dt_model *m, struct dt_error *err)
{
    DT_TRY(check_heads(m, err));
    if (dt_arena_allocate(&m->arena, m->device, err) < 0)
        return dt_fail_context(err, "%.1f million parameters", (double)m->base->parameters * 1e-6);
    lay_out(m);
    for (int i = 0; i < DT_ROPE_TABLE_COUNT; i++)
        fill_rope(m, (enum dt_rope_table)i);
    return 0;
}

int dt_model_new(struct dt_model **result, struct dt_device *dev,
                 const struct dt_model_config *config, enum dt_dtype compute, struct dt_error *err)
{
    struct dt_model *m = dt_model_plan(dev, config, compute, NULL);
    *result = NULL;
    int rc = dt_model_allocate(m, err);
    if (rc < 0) {
        dt_model_free(m);
        return rc;
    }
    *result = m;
    return 0;
}

size_t dt_model_bytes(const struct dt_model *m)
{
    return m->arena.memory ? m->arena.size : m->arena.used;
}

void dt_model_free(struct dt_model *m)
{
    if (m == NULL)
        return;
    dt_arena_release(&m->arena, m->device);
    dt_flat_release(&m->weights);
    dt_flat_release(&m->frozen_weights);
    dt_table_release(&m->table);
    dt_table_release(&m->frozen_table);
    free(m->adapter);
    free(m);
}

void dt_model_refresh(struct dt_model *m)
{
    struct dt_tensor from = dt_matrix(m->parameters, 1, m->table.elements);
    struct dt_tensor to = dt_matrix_of(m->compute, m->narrow, 1, m->table.elements);
    assert(!m->in_panels);
    if (m->compute != DT_DTYPE_F32)
        m->device->ops->copy(m->device, &to, &from);
}

float *dt_model_exchange(struct dt_model *m, float *parameters)
{
    float *before = m->parameters;
    m->parameters = parameters;
    if (m->compute == DT_DTYPE_F32) {
        m->narrow = parameters;
        dt_flat_set(&m->weights, &m->table, DT_DTYPE_F32, parameters);
    }
    dt_model_refresh(m);
    return before;
}

void dt_model_set_frozen(struct dt_model *m, const float *parameters)
{
    const struct dt_ops *ops = m->device->ops;
    int64_t count = m->frozen_table.elements, most = DT_SCRATCH_ELEMENTS, n;
    float *staged = dt_checked(ops->allocate(m->device, (size_t)most * sizeof *staged));
    for (int64_t first = 0; first < count; first += n) {
        n = count - first < most ? count - first : most;
        char *at = (char *)m->frozen + (size_t)first * dt_dtype_size(m->compute);
        struct dt_tensor from = dt_matrix(staged, 1, n), to = dt_matrix_of(m->compute, at, 1, n);
        ops->upload(m->device, staged, parameters + first, (size_t)n * sizeof *staged);
        ops->copy(m->device, &to, &from);
    }
    ops->release(m->device, staged, (size_t)most * sizeof *staged);
}

void dt_model_set_parameters(struct dt_model *m, const float *parameters)
{
    size_t bytes = (size_t)m->table.elements * sizeof *parameters;
    m->device->ops->upload(m->device, m->parameters, parameters, bytes);
    dt_model_refresh(m);
}

void dt_model_initialize(struct dt_model *m, uint64_t seed)
{
    float *host = dt_alloc((size_t)m->table.elements, sizeof *host);
    dt_table_initialize(&m->table, seed, host);
    dt_model_set_parameters(m, host);
    free(host);
}

void dt_model_bucket_enter(const struct dt_model *m, int bucket, bool gradients)
{
    if (m->hooks)
        m->hooks->enter(m->hooks->context, bucket, gradients);
}

void dt_model_bucket_leave(const struct dt_model *m, int bucket, bool gradients)
{
    if (m->hooks)
        m->hooks->leave(m->hooks->context, bucket, gradients);
}

void dt_model_trace(const struct dt_model *m, const struct dt_workspace *work,
                    enum dt_trace_point point, int layer, const struct dt_tensor *states)
{
    for (const struct dt_trace_hook *hook = m->trace; hook; hook = hook->next)
        hook->see(hook->context, work, point, layer, states);
}

static enum dt_role head_role(const struct dt_model *m)
{
    return m->base->has[DT_ROLE_HEAD_WEIGHT] ? DT_ROLE_HEAD_WEIGHT : DT_ROLE_TOKEN_EMBEDDING;
}

/* Whether dt_model_arrange_for_decoding rearranges a weight: that of a linear map of a block, or of
 * the head. */
static bool has_panels(const struct dt_model *m, enum dt_role role)
{
    return dt_role_is_layer_map(role) || role == head_role(m);
}

/* Whether products read the rows of a weight: it is stored as output x input. */
static bool is_by_output(const struct dt_model *m, enum dt_role role, int layer)
{
    return role == head_role(m) || dt_table_find(m->base, role, layer)->transposed;
}

struct dt_tensor dt_model_weight(const struct dt_model *m, enum dt_role role, int layer)
{
    const struct dt_flat *weights = m->adapter ? &m->frozen_weights : &m->weights;
    struct dt_tensor weight = dt_table_view(m->base, weights, role, layer);
    if (!m->in_panels || weight.data == NULL || !has_panels(m, role))
        return weight;
    if (!is_by_output(m, role, layer))
        weight = dt_matrix_of(weight.dtype, weight.data, weight.columns, weight.rows);
    weight.panels = true;
    return weight;
}

void dt_model_arrange_for_decoding(struct dt_model *m)
{
    const struct dt_ops *ops = m->device->ops;
    bool can = ops->store_panels != NULL;
    assert(!m->bare && !m->in_panels && m->part.tp_size <= 1 && m->part.stages <= 1);
    for (int i = 0; can && i < m->base->count; i++) {
        const struct dt_param *p = &m->base->params[i];
        struct dt_tensor weight = dt_model_weight(m, p->role, p->layer);
        if (has_panels(m, p->role))
            can = ops->store_panels(m->device, &weight, !is_by_output(m, p->role, p->layer));
    }
    m->in_panels = can;
}

int64_t dt_model_query_columns(const struct dt_model *m)
{
    return dt_model_head_dim(&m->config) * dt_range_count(m->partition.heads);
}

int64_t dt_model_key_columns(const struct dt_model *m)
{
    return dt_model_head_dim(&m->config) * dt_range_count(m->partition.kv_heads);
}

struct dt_attention dt_model_attention(const struct dt_model *m, int64_t batch, int64_t length)
{
    int64_t chunk = dt_context_parallel_chunk_length(&m->part, length);
    return (struct dt_attention){.batch = batch,
                                 .heads = dt_range_count(m->partition.heads),
                                 .kv_heads = dt_range_count(m->partition.kv_heads),
                                 .first_head = m->partition.heads.first,
                                 .queries = chunk,
                                 .key_stride = chunk,
                                 .length = length,
                                 .bidirectional = dt_model_is_masked(&m->config)};
}
