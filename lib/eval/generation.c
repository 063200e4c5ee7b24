/* SPDX-License-Identifier: MIT */
#include "eval/generation.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/generation-internal.h"
#include "math/math.h"
#include "math/rng.h"
#include "model/finite.h"

const char *const dt_generation_finish_names[] = {"length", "end", "stop", "interrupt", NULL};

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
    g->unchanged = dt_alloc((size_t)model->config.vocab_size, sizeof *g->unchanged);
    g->slots = slots;
    g->held = dt_alloc((size_t)slots, sizeof *g->held);
    *result = g;
    return 0;
}

void dt_generator_free(struct dt_generator *g)
{
    if (g == NULL)
        return;
    dt_decoder_free(g->decoder);
    dt_sampler_free(g->sampler);
    for (int64_t i = 0; g->held && i < g->slots; i++)
        dt_ids_release(&g->held[i]);
    free(g->held);
    free(g->logits);
    free(g->unchanged);
    free(g->seen);
    free(g);
}

void dt_continuation_release(struct dt_continuation *item)
{
    dt_ids_release(&item->ids);
    dt_buffer_release(&item->text);
    free(item->probabilities);
    item->probabilities = NULL;
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

/* --- log-probabilities ------------------------------------------------------------------------*/

/* The log of the sum of e^logit. */
static double log_of_sum(const float *logits, uint32_t size)
{
    double most = (double)logits[0], sum = 0;
    for (uint32_t i = 1; i < size; i++)
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (uint32_t i = 0; i < size; i++)
        sum += dt_math_exp((double)logits[i] - most);
    return most + dt_math_log(sum);
}

/* best: the count most probable tokens. */
static void find_best(const float *logits, uint32_t size, struct dt_token_probability *best,
                      int count)
{
    int found = 0;
    for (uint32_t id = 0; id < size; id++) {
        int at = found < count ? found++ : count;
        for (; at > 0 && (double)logits[id] > best[at - 1].log_probability; at--)
            if (at < count)
                best[at] = best[at - 1];
        if (at < count)
            best[at] = (struct dt_token_probability){id, (double)logits[id]};
    }
}

/* Makes room for those of the next token: its own is set when it is chosen. */
static void keep_probabilities(const struct dt_generator *g, struct dt_continuation *item,
                               const float *logits)
{
    int each = g->how.probabilities, best = each - 1;
    if (each == 0)
        return;
    size_t count = item->probability_count;
    item->probabilities =
        dt_realloc(item->probabilities, count + (size_t)each, sizeof *item->probabilities);
    struct dt_token_probability *own = item->probabilities + count;
    double total = log_of_sum(logits, g->size);
    memset(own, 0, (size_t)each * sizeof *own);
    find_best(logits, g->size, own + 1, best);
    for (int i = 1; i < each; i++)
        own[i].log_probability -= total;
    own->log_probability = -total;
    memcpy(g->unchanged, logits, g->size * sizeof *logits);
}

/* The next token is id. */
static void add_probabilities(const struct dt_generator *g, struct dt_continuation *item,
                              uint32_t id)
{
    if (g->how.probabilities == 0)
        return;
    struct dt_token_probability *own = item->probabilities + item->probability_count;
    own->id = id;
    own->log_probability += (double)g->unchanged[id];
    item->probability_count += (size_t)g->how.probabilities;
}

/* Those of tokens whose text a stop string begins or follows are not told. end: of all text. */
static void drop_probabilities(const struct dt_generator *g, struct dt_continuation *item,
                               size_t end, size_t stop)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    size_t each = (size_t)g->how.probabilities;
    while (end > stop && each > 0 && item->probability_count > 0) {
        text.size = 0;
        dt_generation_add_token_text(g, item->probabilities[item->probability_count - each].id,
                                     &text);
        if (text.size > end - stop)
            break;
        end -= text.size;
        item->probability_count -= each;
    }
    dt_buffer_release(&text);
}

/* --- sampling ---------------------------------------------------------------------------------*/

/* *id: the sampled token; UINT32_MAX at the end of text. */
static int choose(struct dt_generator *g, const struct growth *w, float *logits, uint32_t *id,
                  struct dt_error *err)
{
    struct dt_continuation *item = w->item;
    keep_probabilities(g, item, logits);
    dt_generation_penalize_text(g, logits, &item->ids, NULL);
    DT_TRY(dt_check_logits(g, item, logits, item->added, err));
    struct dt_random bits = dt_random(item->key, 0, item->added);
    double uniform = dt_rng_uniform_double(((uint64_t)bits.word[0] << 32) | bits.word[1]);
    *id = dt_sampler_choose(g->sampler, logits, uniform);
    if (dt_text_frame_ends(g->how.frame, *id))
        *id = UINT32_MAX;
    else
        add_probabilities(g, item, *id);
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
    if (stop != SIZE_MAX) {
        drop_probabilities(g, item, item->text.size, stop);
        item->text.size = stop;
    }
    *last = stop != SIZE_MAX || item->added == (size_t)g->how.tokens;
    return 0;
}

/* The prompts in the current batch. */
struct wave {
    const struct dt_generation_feed *feed;
    struct growth *all; /* unfinished continuations */
    size_t count;
    int64_t *free; /* slots */
    size_t free_count;
    int64_t *slots;
    uint32_t *ids;
    size_t *rows; /* row of logits of each continuation */
};

static int tell(const struct dt_generator *g, const struct wave *v, struct growth *w, bool last,
                struct dt_error *err)
{
    const struct dt_buffer *text = &w->item->text;
    size_t settled = last ? text->size : text->size - unsettled(g, text);
    if (v->feed->text == NULL || settled <= w->told)
        return 0;
    size_t from = w->told;
    w->told = settled;
    return v->feed->text(v->feed->context, w->item, text->data + from, settled - from, err);
}

static int finish(const struct wave *v, struct dt_continuation *item, struct dt_error *err)
{
    return v->feed->finish ? v->feed->finish(v->feed->context, item, err) : 0;
}

/* --- KV caches --------------------------------------------------------------------------------*/

/* Equal tokens at the beginning, of at most count. */
static size_t common_prefix(const struct dt_ids *held, const uint32_t *ids, size_t count)
{
    size_t n = 0;
    while (n < count && n < held->count && held->data[n] == ids[n])
        n++;
    return n;
}

/* The tokens of a prompt for which the KV cache has room: if it is full, the newer half. */
static const uint32_t *last_ids(const struct dt_generator *g, const struct dt_continuation *item,
                                size_t *count)
{
    size_t capacity = (size_t)g->capacity;
    *count = item->ids.count <= capacity ? item->ids.count : (capacity + 1) / 2;
    return item->ids.data + item->ids.count - *count;
}

/* Prefills a slot, after what another slot, or the same, holds of it. */
static void begin(struct dt_generator *g, const struct growth *w, float *logits)
{
    size_t count, most = 0;
    const uint32_t *ids = last_ids(g, w->item, &count);
    int64_t from = w->slot;
    for (int64_t i = -1; i < g->slots; i++) {
        int64_t slot = i < 0 ? w->slot : i;
        size_t common = common_prefix(&g->held[slot], ids, count - 1);
        if (common > most)
            most = common, from = slot;
    }
    int64_t shared = dt_decoder_share(g->decoder, w->slot, from, (int64_t)most);
    dt_decoder_feed(g->decoder, w->slot, ids + shared, (int64_t)count - shared, logits);
    g->held[w->slot].count = 0;
    dt_ids_append(&g->held[w->slot], ids, count);
}

/* Removes from the free slots the one that holds most of a prompt. */
static int64_t take_slot(const struct dt_generator *g, struct wave *v,
                         const struct dt_continuation *item)
{
    size_t count, best = v->free_count - 1, most = 0;
    const uint32_t *ids = last_ids(g, item, &count);
    for (size_t i = 0; i < v->free_count; i++) {
        size_t common = common_prefix(&g->held[v->free[i]], ids, count);
        if (common > most)
            most = common, best = i;
    }
    int64_t slot = v->free[best];
    v->free[best] = v->free[--v->free_count];
    return slot;
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
        dt_ids_add(&g->held[w->slot], v->ids[together - 1]);
    }
    dt_decoder_step(g->decoder, v->slots, v->ids, together, g->logits);
    for (size_t i = 0; i < v->count; i++) {
        if (v->rows[i] != SIZE_MAX)
            continue;
        v->rows[i] = (size_t)together++;
        begin(g, &v->all[i], g->logits + (int64_t)v->rows[i] * vocabulary);
    }
}

/* --- continuous batching ----------------------------------------------------------------------*/

/* Prefills a free slot with a prompt, and keeps it unless its first token is its last. */
static int start(struct dt_generator *g, struct wave *v, struct dt_continuation *item,
                 struct dt_error *err)
{
    struct growth w = {item, take_slot(g, v, item), item->ids.count, 0};
    bool last;
    begin(g, &w, g->logits);
    DT_TRY(grow(g, &w, g->logits, &last, err));
    DT_TRY(tell(g, v, &w, last, err));
    if (!last) {
        v->all[v->count++] = w;
        return 0;
    }
    v->free[v->free_count++] = w.slot;
    return finish(v, item, err);
}

/* Fills free slots with the prompts that are there; without any, waits for one. */
static int start_all(struct dt_generator *g, struct wave *v, struct dt_error *err)
{
    while (v->free_count > 0) {
        struct dt_continuation *item = NULL;
        DT_TRY(v->feed->next(v->feed->context, v->count == 0, &item, err));
        if (item == NULL)
            return 0;
        DT_TRY(start(g, v, item, err));
    }
    return 0;
}

static int step(struct dt_generator *g, struct wave *v, struct dt_error *err)
{
    bool interrupted = g->how.interrupt && *g->how.interrupt;
    size_t growing = v->count;
    if (!interrupted)
        look_ahead(g, v);
    v->count = 0;
    for (size_t i = 0; i < growing; i++) {
        struct growth w = v->all[i];
        float *logits = g->logits + (int64_t)v->rows[i] * g->model->config.vocab_size;
        bool last = interrupted;
        if (interrupted)
            w.item->finish = DT_FINISH_INTERRUPT;
        else
            DT_TRY(grow(g, &w, logits, &last, err));
        DT_TRY(tell(g, v, &w, last, err));
        if (!last) {
            v->all[v->count++] = w;
            continue;
        }
        v->free[v->free_count++] = w.slot;
        DT_TRY(finish(v, w.item, err));
    }
    return 0;
}

static int sample_all(struct dt_generator *g, const struct dt_generation_feed *feed,
                      struct dt_error *err)
{
    size_t slots = (size_t)g->how.slots;
    struct wave v = {.feed = feed,
                     .all = dt_alloc(slots, sizeof *v.all),
                     .free = dt_alloc(slots, sizeof *v.free),
                     .slots = dt_alloc(slots, sizeof *v.slots),
                     .ids = dt_alloc(slots, sizeof *v.ids),
                     .rows = dt_alloc(slots, sizeof *v.rows)};
    for (size_t slot = 0; slot < slots; slot++)
        v.free[v.free_count++] = (int64_t)(slots - 1 - slot);
    int rc = start_all(g, &v, err);
    while (rc == 0 && v.count > 0) {
        rc = step(g, &v, err);
        rc = rc < 0 ? rc : start_all(g, &v, err);
    }
    free(v.all), free(v.free), free(v.slots), free(v.ids), free(v.rows);
    return rc;
}

static int search_all(struct dt_generator *g, const struct dt_generation_feed *feed,
                      struct dt_error *err)
{
    for (;;) {
        struct dt_continuation *item = NULL;
        DT_TRY(feed->next(feed->context, true, &item, err));
        if (item == NULL)
            return 0;
        DT_TRY(dt_generation_beam_search(g, item, err));
        if (feed->text && item->text.size > 0)
            DT_TRY(feed->text(feed->context, item, item->text.data, item->text.size, err));
        if (feed->finish)
            DT_TRY(feed->finish(feed->context, item, err));
    }
}

int dt_generation_serve(struct dt_generator *g, const struct dt_generation_feed *feed,
                        struct dt_error *err)
{
    return g->how.beams > 1 ? search_all(g, feed, err) : sample_all(g, feed, err);
}

/* The prompts of an array, as a feed. */
struct array {
    struct dt_continuation *items;
    size_t count, next;
    dt_text_sink *sink;
    void *context;
};

static int next_of_array(void *context, bool wait, struct dt_continuation **item,
                         struct dt_error *err)
{
    struct array *a = context;
    (void)wait, (void)err;
    *item = a->next < a->count ? &a->items[a->next++] : NULL;
    return 0;
}

static int text_of_array(void *context, struct dt_continuation *item, const char *text, size_t size,
                         struct dt_error *err)
{
    const struct array *a = context;
    (void)item;
    return a->sink(a->context, text, size, err);
}

int dt_generation_run(struct dt_generator *g, struct dt_continuation *items, size_t count,
                      dt_text_sink *sink, void *context, struct dt_error *err)
{
    struct array a = {items, count, 0, sink, context};
    const struct dt_generation_feed feed = {
        .context = &a, .next = next_of_array, .text = sink && count == 1 ? text_of_array : NULL};
    return dt_generation_serve(g, &feed, err);
}
