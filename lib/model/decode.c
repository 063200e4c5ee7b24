/* SPDX-License-Identifier: MIT */
#include "model/decode.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "device/thread-choice.h"
#include "model/block.h"
#include "model/head.h"
#include "model/layer.h"

/* Sequences of one forward: the maximum of a product of few rows (device/cpu/gemm/few-rows.h),
 * whose rows have the same bits as alone. */
#define STEP 16

struct dt_decoder {
    const struct dt_model *model;
    struct dt_arena arena;
    int64_t slots, capacity;
    int64_t most;           /* rows of one forward */
    int64_t *lengths;       /* tokens in each slot */
    struct dt_cache *cache; /* num_layers x slots */
    struct dt_block block;
    struct dt_thread_choice threads; /* of steps, where the device chooses */
    int32_t *ids;
    struct dt_tensor x, out, last, norm, stats, logits;
};

static void lay_out(struct dt_decoder *d)
{
    const struct dt_model_config *c = &d->model->config;
    struct dt_arena *a = &d->arena;
    d->ids = dt_arena_take(a, (size_t)d->most * sizeof *d->ids);
    d->x = dt_arena_matrix_of(a, d->model->compute, d->most, c->hidden_size);
    d->out = dt_arena_matrix_of(a, d->model->compute, d->most, c->hidden_size);
    d->last = dt_arena_matrix_of(a, d->model->compute, d->most, c->hidden_size);
    d->norm = dt_arena_matrix_of(a, d->model->compute, d->most, c->hidden_size);
    d->stats = dt_arena_matrix(a, d->most, dt_layer_norm_statistics(d->model));
    d->logits = dt_arena_matrix(a, STEP, c->vocab_size);
    dt_block_layout(&d->block, a, d->model, d->most, DT_RECOMPUTE_NONE, &(struct dt_block){0});
    for (int64_t i = 0; i < c->num_layers * d->slots; i++) {
        int64_t rows = dt_block_cache_rows(d->model, (int)(i / d->slots), d->capacity);
        d->cache[i].keys = dt_arena_matrix_of(a, d->model->compute, rows, dt_model_kv_width(c));
        d->cache[i].values = dt_arena_matrix_of(a, d->model->compute, rows, dt_model_kv_width(c));
    }
}

/* Whether products of many rows have the bits of those of few: in fp32 and in canonical arithmetic,
 * and of weights in panels. */
static bool has_same_bits(const struct dt_model *m)
{
    return m->device->canonical || m->in_panels ||
           (m->compute == DT_DTYPE_F32 && !m->device->engine->own_memory);
}

/* Rows of one forward: many make prefill fast. */
static int64_t most_rows(const struct dt_model *m, int64_t capacity)
{
    int64_t most = has_same_bits(m) ? DT_BLOCK_MOST_CACHED : STEP;
    int64_t room = capacity < STEP ? STEP : capacity;
    return most < room ? most : room;
}

/* Before its memory is allocated. */
static struct dt_decoder *plan(const struct dt_model *m, int64_t slots, int64_t capacity)
{
    struct dt_decoder *d = dt_alloc(1, sizeof *d);
    d->model = m;
    d->slots = slots;
    d->capacity = capacity;
    d->most = most_rows(m, capacity);
    d->lengths = dt_alloc((size_t)slots, sizeof *d->lengths);
    d->cache = dt_alloc((size_t)(m->config.num_layers * slots), sizeof *d->cache);
    dt_thread_choice_init(&d->threads, m->device->most_threads);
    lay_out(d);
    return d;
}

size_t dt_decoder_bytes(const struct dt_model *m, int64_t slots, int64_t capacity)
{
    struct dt_decoder *d = plan(m, slots, capacity);
    size_t bytes = d->arena.used;
    dt_decoder_free(d);
    return bytes;
}

int dt_decoder_new(struct dt_decoder **result, const struct dt_model *m, int64_t slots,
                   int64_t capacity, struct dt_error *err)
{
    *result = NULL;
    assert(capacity <= m->config.max_seq_len && m->part.tp_size == 1 && m->part.stages == 1);
    if (dt_model_is_masked(&m->config))
        return dt_fail(err, DT_EINVALID,
                       "a model of the family '%s' fills in masked tokens, and "
                       "does not continue text",
                       dt_family_names[m->config.family]);
    DT_TRY(dt_model_need_tokens(&m->config, "decoding", err));
    struct dt_decoder *d = plan(m, slots, capacity);
    int rc = dt_arena_allocate(&d->arena, m->device, err);
    if (rc < 0) {
        dt_decoder_free(d);
        return rc;
    }
    lay_out(d);
    *result = d;
    return 0;
}

void dt_decoder_free(struct dt_decoder *d)
{
    if (d == NULL)
        return;
    dt_arena_release(&d->arena, d->model->device);
    free(d->cache);
    free(d->lengths);
    free(d);
}

void dt_decoder_reset(struct dt_decoder *d, int64_t slot)
{
    d->lengths[slot] = 0;
    for (int64_t i = 0; i < d->model->config.num_layers; i++)
        d->cache[i * d->slots + slot].first = 0;
}

int64_t dt_decoder_length(const struct dt_decoder *d, int64_t slot)
{
    return d->lengths[slot];
}

/* The first length tokens of a slot, of which its caches hold the last ones. */
static void copy_tokens(struct dt_decoder *d, int64_t to, int64_t from, int64_t length)
{
    struct dt_device *dev = d->model->device;
    for (int64_t i = 0; length > 0 && to != from && i < d->model->config.num_layers; i++) {
        struct dt_cache *caches = d->cache + i * d->slots;
        int64_t rows = length - caches[from].first;
        struct dt_tensor keys = dt_tensor_rows(&caches[from].keys, 0, rows);
        struct dt_tensor values = dt_tensor_rows(&caches[from].values, 0, rows);
        struct dt_tensor new_keys = dt_tensor_rows(&caches[to].keys, 0, rows);
        struct dt_tensor new_values = dt_tensor_rows(&caches[to].values, 0, rows);
        dev->ops->copy(dev, &new_keys, &keys);
        dev->ops->copy(dev, &new_values, &values);
        caches[to].first = caches[from].first;
    }
    d->lengths[to] = length;
}

void dt_decoder_copy(struct dt_decoder *d, int64_t to, int64_t from)
{
    copy_tokens(d, to, from, d->lengths[from]);
}

/* Whether the caches of a slot hold all tokens that the one at this position attends to. */
static bool holds_keys(const struct dt_decoder *d, int64_t slot, int64_t position)
{
    for (int64_t i = 0; i < d->model->config.num_layers; i++) {
        int64_t first = d->cache[i * d->slots + slot].first;
        if (first > 0 && first > position + 1 - dt_model_window(&d->model->config, i))
            return false;
    }
    return true;
}

int64_t dt_decoder_share(struct dt_decoder *d, int64_t to, int64_t from, int64_t count)
{
    assert(count <= d->lengths[from]);
    if (count == 0 || !has_same_bits(d->model) || !holds_keys(d, from, count)) {
        dt_decoder_reset(d, to);
        return 0;
    }
    copy_tokens(d, to, from, count);
    return count;
}

/* Token and position embeddings; positions differ between sequences. */
static void embed(struct dt_decoder *d, const uint32_t *ids,
                  const struct dt_cached_sequence *sequences, int64_t batch, int64_t length)
{
    const struct dt_model *m = d->model;
    struct dt_tensor tokens = dt_model_weight(m, DT_ROLE_TOKEN_EMBEDDING, -1);
    struct dt_tensor positions = dt_model_weight(m, DT_ROLE_POSITION_EMBEDDING, -1);
    int32_t host[DT_BLOCK_MOST_CACHED];
    for (int64_t i = 0; i < batch * length; i++)
        host[i] = (int32_t)ids[i];
    m->device->ops->upload(m->device, d->ids, host, (size_t)(batch * length) * sizeof *host);
    for (int64_t i = 0; i < batch; i++) {
        struct dt_tensor x = dt_tensor_rows(&d->x, i * length, length);
        m->device->ops->embedding_forward(m->device, &x, d->ids + i * length, &tokens,
                                          positions.data ? &positions : NULL, length,
                                          sequences[i].past);
        dt_layer_scale(m, &x, m->config.embedding_scale);
    }
}

/* Forward of up to d->most tokens, length of each sequence, into d->norm. */
static void feed_some(struct dt_decoder *d, const uint32_t *ids,
                      const struct dt_cached_sequence *sequences, int64_t batch, int64_t length)
{
    const struct dt_model *m = d->model;
    int64_t count = batch * length;
    int layers = m->table.layers;
    struct dt_tensor x = dt_tensor_rows(&d->x, 0, count), out = dt_tensor_rows(&d->out, 0, count);
    struct dt_tensor last = dt_tensor_rows(&d->last, 0, count),
                     norm = dt_tensor_rows(&d->norm, 0, count);
    struct dt_tensor stats = dt_tensor_rows(&d->stats, 0, count);
    struct dt_block_pass pass = {.rows = batch * length,
                                 .attention = dt_model_attention(m, batch, length),
                                 .sequences = sequences};
    if (m->adapter) /* that of training has dropout, and may be freed */
        m->adapter->pass = NULL;
    embed(d, ids, sequences, batch, length);
    const struct dt_tensor *add = NULL;
    for (int layer = 0; layer < layers; layer++) {
        dt_block_forward(m, layer, &d->block, &x, add, &out, d->cache + layer * d->slots, &pass);
        x = dt_block_output(m, &d->block, count);
        add = &out;
    }
    dt_layer_norm_forward(m, layers, DT_ROLE_FINAL_NORM_WEIGHT, DT_ROLE_FINAL_NORM_BIAS, &norm,
                          &stats, &last, &x, add);
    for (int64_t i = 0; i < batch; i++)
        d->lengths[sequences[i].slot] += length;
}

static void read_logits(struct dt_decoder *d, int64_t first, int64_t count, float *logits)
{
    const struct dt_model *m = d->model;
    struct dt_tensor norm = dt_tensor_rows(&d->norm, first, count);
    struct dt_tensor rows = dt_tensor_rows(&d->logits, 0, count);
    dt_head_forward(m, &rows, &norm);
    m->device->ops->download(m->device, logits, d->logits.data,
                             (size_t)(count * m->config.vocab_size) * sizeof *logits);
}

void dt_decoder_feed(struct dt_decoder *d, int64_t slot, const uint32_t *ids, int64_t count,
                     float *logits)
{
    int64_t some = 0;
    assert(count > 0 && d->lengths[slot] + count <= d->capacity);
    for (int64_t from = 0; from < count; from += some) {
        const struct dt_cached_sequence stream = {slot, d->lengths[slot]};
        some = count - from < d->most ? count - from : d->most;
        feed_some(d, ids + from, &stream, 1, some);
    }
    read_logits(d, some - 1, 1, logits);
}

static void step_all(struct dt_decoder *d, const int64_t *slots, const uint32_t *ids, int64_t count,
                     float *logits)
{
    for (int64_t from = 0, some; from < count; from += some) {
        struct dt_cached_sequence sequences[STEP];
        some = count - from < STEP ? count - from : STEP;
        for (int64_t i = 0; i < some; i++) {
            sequences[i] =
                (struct dt_cached_sequence){slots[from + i], d->lengths[slots[from + i]]};
            assert(sequences[i].past < d->capacity);
        }
        feed_some(d, ids + from, sequences, some, 1);
        read_logits(d, 0, some, logits + from * d->model->config.vocab_size);
    }
}

void dt_decoder_step(struct dt_decoder *d, const int64_t *slots, const uint32_t *ids, int64_t count,
                     float *logits)
{
    struct dt_device *dev = d->model->device;
    const int before = dev->threads;
    const double start = dt_clock_now();
    if (!dev->chooses_threads) {
        step_all(d, slots, ids, count, logits);
        return;
    }
    dt_device_use_threads(dev, d->threads.threads);
    step_all(d, slots, ids, count, logits);
    dt_device_use_threads(dev, before);
    dt_thread_choice_add(&d->threads, dt_clock_now() - start, (double)count);
}
