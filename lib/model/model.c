/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/math.h"
#include "model/context-parallel.h"

static bool has_rope(const struct dt_model *m)
{
    return dt_model_is_rotary(&m->config);
}

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
    return (size_t)((DT_ROW_PARTS + DT_TENSOR_PARTS) * m->config.hidden_size) * sizeof(float);
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
    if (m->part.tp_size > 1)
        lay_out_scratch(m);
    if (m->config.qk_norm)
        m->norm_sums = dt_arena_take(&m->arena, norm_sums_bytes(m));
    if (has_rope(m))
        m->rope = dt_arena_matrix(&m->arena, m->config.max_seq_len, dt_model_head_dim(&m->config));
}

/* Pair j of D/2 is rotated by theta^(-2j/D) radians a position (Su et al. 2021). */
static void fill_rope(struct dt_model *m)
{
    int64_t size = m->rope.columns, half = size / 2;
    size_t bytes = (size_t)(m->rope.rows * size) * sizeof(float);
    float *host = dt_alloc(1, bytes);
    for (int64_t j = 0; j < half; j++) {
        double speed = dt_math_pow(m->config.rope_theta, -2.0 * (double)j / (double)size);
        for (int64_t t = 0; t < m->rope.rows; t++) {
            host[t * size + j] = (float)dt_math_cos((double)t * speed);
            host[t * size + half + j] = (float)dt_math_sin((double)t * speed);
        }
    }
    m->device->ops->upload(m->device, m->rope.data, host, bytes);
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
    dt_table_init(&m->table, config, &m->part);
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

int dt_model_allocate(struct dt_model *m, struct dt_error *err)
{
    DT_TRY(dt_model_config_check_computed(&m->config, err));
    if (dt_arena_allocate(&m->arena, m->device, err) < 0)
        return dt_fail_context(err, "%.1f million parameters", (double)m->table.parameters * 1e-6);
    lay_out(m);
    if (m->rope.data)
        fill_rope(m);
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
    dt_table_release(&m->table);
    free(m);
}

void dt_model_refresh(struct dt_model *m)
{
    struct dt_tensor from = dt_matrix(m->parameters, 1, m->table.elements);
    struct dt_tensor to = dt_matrix_of(m->compute, m->narrow, 1, m->table.elements);
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

struct dt_tensor dt_model_weight(const struct dt_model *m, enum dt_role role, int layer)
{
    return dt_table_view(&m->table, &m->weights, role, layer);
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
