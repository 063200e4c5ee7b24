/* SPDX-License-Identifier: MIT */
#include "prefer/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "math/rng.h"
#include "model/decode.h"
#include "model/finite.h"
#include "model/sampling.h"

struct dt_rollout {
    const struct dt_model *model;
    struct dt_rollout_options how;
    long slots;
    struct dt_decoder *decoder;
    struct dt_sampler *sampler;
    struct dt_arena arena; /* of the two below, and what they are computed from */
    struct dt_tensor wide, logits;
    float *losses;
    int32_t *targets;
    float *host; /* slots x V */
    struct dt_completion *all;
    uint64_t *keys; /* of each completion */
    /* The completions that grow, in the order of rows: */
    int64_t *growing;
    uint32_t *last;
    long count;
};

static void lay_out(struct dt_rollout *r)
{
    int64_t columns = r->model->config.vocab_size;
    r->wide = dt_arena_matrix(&r->arena, r->slots, columns);
    r->logits = dt_arena_matrix_of(&r->arena, r->model->compute, r->slots, columns);
    r->losses = dt_arena_take(&r->arena, (size_t)r->slots * sizeof *r->losses);
    r->targets = dt_arena_take(&r->arena, (size_t)r->slots * sizeof *r->targets);
}

static void allocate(struct dt_rollout *r)
{
    size_t slots = (size_t)r->slots, most = (size_t)r->how.max_new_tokens;
    const struct dt_sampling sampling = {.temperature = r->how.temperature, .top_p = 1};
    r->sampler = dt_sampler_new(&sampling, r->how.vocabulary);
    r->host = dt_alloc(slots * (size_t)r->model->config.vocab_size, sizeof *r->host);
    r->all = dt_alloc(slots, sizeof *r->all);
    r->keys = dt_alloc(slots, sizeof *r->keys);
    r->growing = dt_alloc(slots, sizeof *r->growing);
    r->last = dt_alloc(slots, sizeof *r->last);
    for (size_t i = 0; i < slots; i++) {
        r->all[i].ids = dt_alloc(most, sizeof *r->all[i].ids);
        r->all[i].losses = dt_alloc(most, sizeof *r->all[i].losses);
    }
}

size_t dt_rollout_bytes(const struct dt_model *m, const struct dt_rollout_options *how)
{
    struct dt_rollout r = {.model = m, .slots = how->prompts * how->group};
    lay_out(&r);
    return r.arena.used + dt_decoder_bytes(m, r.slots, how->length);
}

int dt_rollout_new(struct dt_rollout **result, const struct dt_model *m,
                   const struct dt_rollout_options *how, struct dt_error *err)
{
    struct dt_rollout *r = dt_alloc(1, sizeof *r);
    *result = NULL;
    r->model = m;
    r->how = *how;
    r->slots = how->prompts * how->group;
    int rc = dt_decoder_new(&r->decoder, m, r->slots, how->length, err);
    lay_out(r);
    rc = rc < 0 ? rc : dt_arena_allocate(&r->arena, m->device, err);
    if (rc < 0) {
        dt_rollout_free(r);
        return rc;
    }
    lay_out(r);
    allocate(r);
    *result = r;
    return 0;
}

void dt_rollout_free(struct dt_rollout *r)
{
    if (r == NULL)
        return;
    for (long i = 0; r->all && i < r->slots; i++) {
        free(r->all[i].ids);
        free(r->all[i].losses);
    }
    dt_decoder_free(r->decoder);
    dt_sampler_free(r->sampler);
    dt_arena_release(&r->arena, r->model->device);
    free(r->host);
    free(r->all);
    free(r->keys);
    free(r->growing);
    free(r->last);
    free(r);
}

const struct dt_completion *dt_rollout_completion(const struct dt_rollout *r, long i)
{
    return &r->all[i];
}

/* Samples a token for each growing completion from its row of logits. */
static int choose(struct dt_rollout *r, struct dt_error *err)
{
    int64_t columns = r->model->config.vocab_size;
    for (long i = 0; i < r->count; i++) {
        const float *row = r->host + i * columns;
        long number = r->all[r->growing[i]].count;
        int64_t bad = dt_finite_first_bad(row, r->how.vocabulary, DT_DTYPE_F32);
        if (bad < (int64_t)r->how.vocabulary)
            return dt_fail(err, DT_EFORMAT,
                           "token %ld of a completion: the logit of token id %lld is %s: the "
                           "model's numbers overflow",
                           number + 1, (long long)bad, dt_finite_name((double)row[bad]));
        struct dt_random bits = dt_random(r->keys[r->growing[i]], 0, (uint64_t)number);
        r->last[i] = dt_sampler_choose(
            r->sampler, row, dt_rng_uniform_double(((uint64_t)bits.word[0] << 32) | bits.word[1]));
    }
    return 0;
}

/* Their losses, by the op and from the element type of the training pass. */
static void find_losses(struct dt_rollout *r, float *losses)
{
    struct dt_device *dev = r->model->device;
    size_t count = (size_t)r->count, columns = (size_t)r->model->config.vocab_size;
    struct dt_tensor wide = dt_tensor_rows(&r->wide, 0, r->count);
    struct dt_tensor logits = dt_tensor_rows(&r->logits, 0, r->count);
    const struct dt_cross_entropy how = {.map = {.scale = 1 / (float)r->how.temperature}};
    dev->ops->upload(dev, r->wide.data, r->host, count * columns * sizeof *r->host);
    dev->ops->upload(dev, r->targets, r->last, count * sizeof *r->targets);
    dev->ops->copy(dev, &logits, &wide);
    dev->ops->cross_entropy(dev, r->losses, NULL, &logits, r->targets, &how);
    dev->ops->download(dev, losses, r->losses, count * sizeof *losses);
}

/* Appends a token to each growing completion; those that end grow no more. */
static int grow(struct dt_rollout *r, struct dt_error *err)
{
    float *losses = dt_alloc((size_t)r->slots, sizeof *losses);
    int rc = choose(r, err);
    if (rc == 0)
        find_losses(r, losses);
    long left = 0;
    for (long i = 0; rc == 0 && i < r->count; i++) {
        struct dt_completion *c = &r->all[r->growing[i]];
        c->ids[c->count] = r->last[i];
        c->losses[c->count++] = losses[i];
        c->ended = r->last[i] == r->how.ends[0] || r->last[i] == r->how.ends[1];
        if (c->ended || c->count == r->how.max_new_tokens)
            continue;
        r->growing[left] = r->growing[i];
        r->last[left++] = r->last[i];
    }
    r->count = left;
    free(losses);
    return rc;
}

/* The prompt of a group goes through the model once; its logits are those of all. */
static void prefill(struct dt_rollout *r, const struct dt_ids *prompt, long first, uint64_t key)
{
    size_t columns = (size_t)r->model->config.vocab_size;
    float *logits = r->host + (size_t)first * columns;
    dt_decoder_reset(r->decoder, first);
    dt_decoder_feed(r->decoder, first, prompt->data, (int64_t)prompt->count, logits);
    for (long i = 0; i < r->how.group; i++) {
        long slot = first + i;
        if (i > 0) {
            dt_decoder_reset(r->decoder, slot);
            dt_decoder_copy(r->decoder, slot, first);
            memcpy(r->host + (size_t)slot * columns, logits, columns * sizeof *logits);
        }
        r->all[slot].count = 0;
        r->all[slot].ended = false;
        r->keys[slot] = dt_random_key(key, 'G', (uint64_t)i);
        r->growing[slot] = slot;
    }
}

int dt_rollout_run(struct dt_rollout *r, const struct dt_ids *const *prompts, const uint64_t *keys,
                   long count, struct dt_error *err)
{
    for (long i = 0; i < count; i++)
        prefill(r, prompts[i], i * r->how.group, keys[i]);
    r->count = count * r->how.group;
    DT_TRY(grow(r, err));
    while (r->count > 0) {
        dt_decoder_step(r->decoder, r->growing, r->last, r->count, r->host);
        DT_TRY(grow(r, err));
    }
    return 0;
}
