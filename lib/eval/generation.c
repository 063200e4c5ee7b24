/* SPDX-License-Identifier: MIT */
#include "eval/generation.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/generation-internal.h"
#include "math/rng.h"
#include "model/finite.h"

const char *const dt_generation_finish_names[] = {"length", "end", "stop", NULL};

/* A prompt being continued in a slot. */
struct growth {
    struct dt_continuation *item;
    int64_t slot;
    size_t prompt, told; /* ids of the prompt; bytes of text sent to the sink */
};

#define MOST_POWER 290 /* of 10; leaves range for the divided scores */

/* Scores are divided by length^penalty, which must not overflow. */
static int check_length_penalty(const struct dt_generation *how, long length, struct dt_error *err)
{
    double most = MOST_POWER / log10((double)length + 1);
    if (how->beams <= 1 || fabs(how->length_penalty) <= most)
        return 0;
    return dt_fail(err, DT_EINVALID,
                   "a length penalty of %g overflows for %ld tokens: use one from -%.4g to %.4g",
                   how->length_penalty, length, most, most);
}

int dt_generator_new(struct dt_generator **result, const struct dt_model *model,
                     const struct dt_tokenizer *tokenizer, const struct dt_generation *how,
                     struct dt_error *err)
{
    *result = NULL;
    DT_TRY(check_length_penalty(how, model->config.max_seq_len, err));
    struct dt_generator *g = dt_alloc(1, sizeof *g);
    int64_t slots = how->beams > 1 ? 2 * how->beams : how->slots;
    g->model = model;
    g->tokenizer = tokenizer;
    g->how = *how;
    g->size = dt_tokenizer_size(tokenizer); /* padding rows of the vocabulary are not tokens */
    g->capacity = model->config.max_seq_len;
    int rc = dt_decoder_new(&g->decoder, model, slots, g->capacity, err);
    if (rc < 0) {
        dt_generator_free(g);
        return rc;
    }
    g->sampler = dt_sampler_new(&how->sampling, g->size);
    g->logits = dt_alloc((size_t)(slots * model->config.vocab_size), sizeof *g->logits);
    g->seen = dt_alloc((size_t)model->config.vocab_size, sizeof *g->seen);
    *result = g;
    return 0;
}

void dt_generator_free(struct dt_generator *g)
{
    if (g == NULL)
        return;
    dt_decoder_free(g->decoder);
    dt_sampler_free(g->sampler);
    free(g->logits);
    free(g->seen);
    free(g);
}

void dt_continuation_release(struct dt_continuation *item)
{
    dt_ids_release(&item->ids);
    dt_buffer_release(&item->text);
}

/* --- text -------------------------------------------------------------------------------------*/

void dt_generation_add_token_text(const struct dt_generator *g, uint32_t id, struct dt_buffer *text)
{
    dt_tokenizer_add_token_text(g->tokenizer, id, text);
}

size_t dt_generation_find_stop(const struct dt_generator *g, const struct dt_buffer *text,
                               size_t from)
{
    size_t first = SIZE_MAX;
    for (int i = 0; i < g->how.stop_count; i++) {
        size_t size = strlen(g->how.stops[i]), begin = from > size ? from - size : 0;
        const char *at = text->size > begin
                             ? memmem(text->data + begin, text->size - begin, g->how.stops[i], size)
                             : NULL;
        if (at && (size_t)(at - text->data) < first)
            first = (size_t)(at - text->data);
    }
    return first;
}

/* Bytes at the end of text that may begin a stop string. */
static size_t unsettled(const struct dt_generator *g, const struct dt_buffer *text)
{
    size_t most = 0;
    for (int i = 0; i < g->how.stop_count; i++)
        for (size_t n = strlen(g->how.stops[i]) - 1; n > most; n--)
            if (n <= text->size && memcmp(text->data + text->size - n, g->how.stops[i], n) == 0)
                most = n;
    return most;
}

void dt_generation_penalize_text(struct dt_generator *g, float *logits, const struct dt_ids *head,
                                 const struct dt_ids *tail)
{
    double penalty = g->how.repetition_penalty;
    if (penalty == 1)
        return;
    memset(g->seen, 0, (size_t)g->model->config.vocab_size * sizeof *g->seen);
    dt_sampling_penalize_repetition(logits, g->seen, head->data, head->count, penalty);
    if (tail)
        dt_sampling_penalize_repetition(logits, g->seen, tail->data, tail->count, penalty);
}

int dt_check_logits(const struct dt_generator *g, const struct dt_continuation *item,
                    const float *logits, size_t added, struct dt_error *err)
{
    int64_t id = dt_finite_first_bad(logits, g->size, DT_DTYPE_F32);
    if (id == g->size)
        return 0;
    return dt_fail(err, DT_EFORMAT,
                   "%s: token %zu of the continuation: the logit of token id %" PRId64
                   " is %s: the model overflows",
                   item->place, added + 1, id, dt_finite_name((double)logits[id]));
}

/* --- sampling ---------------------------------------------------------------------------------*/

/* *id: the sampled token; UINT32_MAX at the end of text. */
static int choose(struct dt_generator *g, const struct growth *w, float *logits, uint32_t *id,
                  struct dt_error *err)
{
    const struct dt_continuation *item = w->item;
    dt_generation_penalize_text(g, logits, &item->ids, NULL);
    DT_TRY(dt_check_logits(g, item, logits, item->added, err));
    struct dt_random bits = dt_random(item->key, 0, item->added);
    double uniform = dt_rng_uniform_double(((uint64_t)bits.word[0] << 32) | bits.word[1]);
    *id = dt_sampler_choose(g->sampler, logits, uniform);
    *id = dt_text_frame_ends(g->how.frame, *id) ? UINT32_MAX : *id;
    return 0;
}

/* Appends the next token; *last: whether the continuation ends. */
static int grow(struct dt_generator *g, struct growth *w, float *logits, bool *last,
                struct dt_error *err)
{
    struct dt_continuation *item = w->item;
    uint32_t id;
    DT_TRY(choose(g, w, logits, &id, err));
    item->finish = DT_FINISH_END;
    *last = id == UINT32_MAX;
    if (*last)
        return 0;
    size_t before = item->text.size;
    dt_ids_add(&item->ids, id);
    dt_generation_add_token_text(g, id, &item->text);
    item->added++;
    size_t stop = dt_generation_find_stop(g, &item->text, before);
    item->finish = stop == SIZE_MAX ? DT_FINISH_LENGTH : DT_FINISH_STOP;
    if (stop != SIZE_MAX)
        item->text.size = stop;
    *last = stop != SIZE_MAX || item->added == (size_t)g->how.tokens;
    return 0;
}

/* All prompts, and those in the current batch. */
struct wave {
    struct dt_continuation *items;
    size_t item_count, next; /* next: the first without a slot yet */
    dt_text_sink *sink;      /* or NULL */
    void *context;
    struct growth *all; /* unfinished continuations */
    size_t count;
    int64_t *slots;
    uint32_t *ids;
    size_t *rows; /* row of logits of each continuation */
};

static int tell(const struct dt_generator *g, const struct wave *v, struct growth *w, bool last,
                struct dt_error *err)
{
    const struct dt_buffer *text = &w->item->text;
    size_t settled = last ? text->size : text->size - unsettled(g, text);
    if (v->sink == NULL || settled <= w->told)
        return 0;
    size_t from = w->told;
    w->told = settled;
    return v->sink(v->context, text->data + from, settled - from, err);
}

/* Prefills a sequence; if the KV cache is full, again with its newer half. */
static void begin(struct dt_generator *g, const struct growth *w, float *logits)
{
    const struct dt_ids *ids = &w->item->ids;
    size_t capacity = (size_t)g->capacity;
    size_t keep = ids->count <= capacity ? ids->count : (capacity + 1) / 2;
    dt_decoder_reset(g->decoder, w->slot);
    dt_decoder_feed(g->decoder, w->slot, ids->data + ids->count - keep, (int64_t)keep, logits);
}

/* Computes all logits: one batched decode step, and a prefill for each full KV cache. */
static void look_ahead(struct dt_generator *g, struct wave *v)
{
    int64_t vocabulary = g->model->config.vocab_size, together = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct growth *w = &v->all[i];
        v->rows[i] = SIZE_MAX;
        if (dt_decoder_length(g->decoder, w->slot) == g->capacity)
            continue;
        v->rows[i] = (size_t)together;
        v->slots[together] = w->slot;
        v->ids[together++] = w->item->ids.data[w->item->ids.count - 1];
    }
    dt_decoder_step(g->decoder, v->slots, v->ids, together, g->logits);
    for (size_t i = 0; i < v->count; i++) {
        if (v->rows[i] != SIZE_MAX)
            continue;
        v->rows[i] = (size_t)together++;
        begin(g, &v->all[i], g->logits + (int64_t)v->rows[i] * vocabulary);
    }
}

/* Prefills a free slot with the next prompt that is not finished by its first token. */
static int start_next(struct dt_generator *g, struct wave *v, int64_t slot, struct dt_error *err)
{
    while (v->next < v->item_count) {
        struct dt_continuation *item = &v->items[v->next++];
        struct growth w = {item, slot, item->ids.count, 0};
        begin(g, &w, g->logits);
        bool last;
        DT_TRY(grow(g, &w, g->logits, &last, err));
        DT_TRY(tell(g, v, &w, last, err));
        if (last)
            continue;
        v->all[v->count++] = w;
        return 0;
    }
    return 0;
}

static int step(struct dt_generator *g, struct wave *v, struct dt_error *err)
{
    size_t growing = v->count, done = 0;
    look_ahead(g, v);
    v->count = 0;
    for (size_t i = 0; i < growing; i++) {
        struct growth w = v->all[i];
        bool last;
        DT_TRY(
            grow(g, &w, g->logits + (int64_t)v->rows[i] * g->model->config.vocab_size, &last, err));
        DT_TRY(tell(g, v, &w, last, err));
        if (last)
            v->slots[done++] = w.slot;
        else
            v->all[v->count++] = w;
    }
    for (size_t i = 0; i < done; i++)
        DT_TRY(start_next(g, v, v->slots[i], err));
    return 0;
}

static int sample_all(struct dt_generator *g, struct dt_continuation *items, size_t count,
                      dt_text_sink *sink, void *context, struct dt_error *err)
{
    size_t slots = (size_t)g->how.slots;
    struct wave v = {.items = items,
                     .item_count = count,
                     .sink = sink,
                     .context = context,
                     .all = dt_alloc(slots, sizeof *v.all),
                     .slots = dt_alloc(slots, sizeof *v.slots),
                     .ids = dt_alloc(slots, sizeof *v.ids),
                     .rows = dt_alloc(slots, sizeof *v.rows)};
    int rc = 0;
    for (size_t slot = 0; rc == 0 && slot < slots; slot++)
        rc = start_next(g, &v, (int64_t)slot, err);
    while (rc == 0 && v.count > 0)
        rc = step(g, &v, err);
    free(v.all), free(v.slots), free(v.ids), free(v.rows);
    return rc;
}

int dt_generation_run(struct dt_generator *g, struct dt_continuation *items, size_t count,
                      dt_text_sink *sink, void *context, struct dt_error *err)
{
    if (g->how.beams <= 1)
        return sample_all(g, items, count, count == 1 ? sink : NULL, context, err);
    for (size_t i = 0; i < count; i++) {
        DT_TRY(dt_generation_beam_search(g, &items[i], err));
        if (sink && count == 1 && items[i].text.size > 0)
            DT_TRY(sink(context, items[i].text.data, items[i].text.size, err));
    }
    return 0;
}
