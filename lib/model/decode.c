/* SPDX-License-Identifier: MIT */
#include "model/decode.h"

#include <assert.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "model/block.h"
#include "model/layer.h"

#define STEP 64 /* tokens of a prompt that go through the layers together */

struct dt_decoder {
    const struct dt_model *model;
    struct dt_arena arena;
    int64_t capacity, length;
    struct dt_cache *cache; /* one a layer */
    struct dt_block block;
    int32_t *ids;
    struct dt_tensor x, out, last, norm, stats, logits;
};

static void lay_out(struct dt_decoder *d)
{
    const struct dt_model_config *c = &d->model->config;
    struct dt_arena *a = &d->arena;
    d->ids = dt_arena_take(a, STEP * sizeof *d->ids);
    d->x = dt_arena_matrix_of(a, d->model->compute, STEP, c->hidden_size);
    d->out = dt_arena_matrix_of(a, d->model->compute, STEP, c->hidden_size);
    d->last = dt_arena_matrix_of(a, d->model->compute, STEP, c->hidden_size);
    d->norm = dt_arena_matrix_of(a, d->model->compute, STEP, c->hidden_size);
    d->stats = dt_arena_matrix(a, STEP, dt_norm_statistics(d->model));
    d->logits = dt_arena_matrix(a, 1, c->vocab_size);
    dt_block_layout(&d->block, a, d->model, STEP, DT_RECOMPUTE_NONE, &(struct dt_block){0});
    for (int64_t i = 0; i < c->num_layers; i++) {
        d->cache[i].keys =
            dt_arena_matrix_of(a, d->model->compute, d->capacity, dt_model_kv_width(c));
        d->cache[i].values =
            dt_arena_matrix_of(a, d->model->compute, d->capacity, dt_model_kv_width(c));
    }
}

int dt_decoder_new(struct dt_decoder **result, const struct dt_model *m, int64_t capacity,
                   struct dt_error *err)
{
    *result = NULL;
    assert(capacity <= m->config.max_seq_len);
    if (dt_model_is_masked(&m->config))
        return dt_fail(err, DT_EINVALID,
                       "a model of the family '%s' fills in masked tokens, and "
                       "does not continue text",
                       dt_families[m->config.family]);
    struct dt_decoder *d = dt_alloc(1, sizeof *d);
    d->model = m;
    d->capacity = capacity;
    d->cache = dt_alloc((size_t)m->config.num_layers, sizeof *d->cache);
    lay_out(d);
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
    free(d);
}

void dt_decoder_reset(struct dt_decoder *d)
{
    d->length = 0;
}

int64_t dt_decoder_length(const struct dt_decoder *d)
{
    return d->length;
}

/* Up to STEP tokens through all layers; the last row of d->norm is theirs. */
static void feed_some(struct dt_decoder *d, const uint32_t *ids, int64_t count)
{
    const struct dt_model *m = d->model;
    struct dt_device *dev = m->device;
    const struct dt_table *t = &m->table;
    struct dt_tensor tokens = dt_model_weight(m, DT_TOKEN_EMBEDDING, -1);
    struct dt_tensor positions = dt_model_weight(m, DT_POSITION_EMBEDDING, -1);
    struct dt_tensor x = dt_rows(&d->x, 0, count), out = dt_rows(&d->out, 0, count);
    struct dt_tensor last = dt_rows(&d->last, 0, count), norm = dt_rows(&d->norm, 0, count);
    struct dt_tensor stats = dt_rows(&d->stats, 0, count);
    struct dt_block_pass pass = {.attention = dt_model_attention(m, 1, count)};
    pass.attention.past = d->length;
    pass.attention.key_stride = d->capacity;
    int32_t host[STEP];
    for (int64_t i = 0; i < count; i++)
        host[i] = (int32_t)ids[i];
    dev->ops->upload(dev, d->ids, host, (size_t)count * sizeof *host);
    dev->ops->embedding_forward(dev, &x, d->ids, &tokens, positions.data ? &positions : NULL, count,
                                d->length);
    const struct dt_tensor *add = NULL;
    for (int layer = 0; layer < t->layers; layer++) {
        dt_block_forward(m, layer, &d->block, &x, add, &out, &d->cache[layer], &pass);
        x = dt_rows(dt_block_stream(m, &d->block), 0, count);
        add = &out;
    }
    dt_norm_forward(m, t->layers, DT_FINAL_NORM_WEIGHT, DT_FINAL_NORM_BIAS, &norm, &stats, &last,
                    &x, add);
    d->length += count;
}

void dt_decoder_feed(struct dt_decoder *d, const uint32_t *ids, int64_t count, float *logits)
{
    const struct dt_model *m = d->model;
    struct dt_device *dev = m->device;
    int64_t last = 0;
    assert(count > 0 && d->length + count <= d->capacity);
    for (int64_t from = 0; from < count; from += STEP) {
        int64_t some = count - from < STEP ? count - from : STEP;
        feed_some(d, ids + from, some);
        last = some - 1;
    }
    struct dt_tensor head = dt_head_weight(m);
    struct dt_tensor norm = dt_rows(&d->norm, last, 1);
    dev->ops->matmul(dev, &d->logits, &norm, &head, &(struct dt_matmul){.transpose_b = true});
    dev->ops->download(dev, logits, d->logits.data, (size_t)m->config.vocab_size * sizeof *logits);
}
