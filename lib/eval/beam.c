/* SPDX-License-Identifier: MIT */
/* Beam search. A finished beam is ranked by log-probability / length^length_penalty, as in
 * transformers (Wu et al. 2016 use another form of the penalty). */
#include <stdlib.h>
#include <string.h>

#include "eval/generation-internal.h"
#include "math/math.h"

struct beam {
    struct dt_ids ids; /* generated ids */
    double score;      /* log-probability */
    int64_t slot;
};

struct extension {
    int parent;
    uint32_t id;
    double score;
};

struct search {
    struct dt_generator *g;
    struct dt_continuation *item;
    struct beam *live, *next;
    int count, width; /* live beams; beam width */
    struct extension *best;
    int best_count, most; /* most: of best */
    double *ranks;        /* ranks of up to width best finished beams, descending */
    int ranked;
    struct dt_ids answer_ids;
    double answer_score;
    enum dt_finish answer_finish;
};

static bool comes_before(const struct extension *a, const struct extension *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return a->parent != b->parent ? a->parent < b->parent : a->id < b->id;
}

/* Keeps the best extensions, descending. */
static void offer(struct search *s, struct extension e)
{
    int most = s->most, at = s->best_count;
    if (at == most && !comes_before(&e, &s->best[at - 1]))
        return;
    if (at < most)
        s->best_count++;
    else
        at--;
    for (; at > 0 && comes_before(&e, &s->best[at - 1]); at--)
        s->best[at] = s->best[at - 1];
    s->best[at] = e;
}

/* The largest of the logits of tokens, and the sum of the exponentials of their differences from
 * it. */
static double largest_of(const float *logits, uint32_t size, double *sum)
{
    double most = (double)logits[0];
    *sum = 0;
    for (uint32_t i = 1; i < size; i++)
        most = (double)logits[i] > most ? (double)logits[i] : most;
    for (uint32_t i = 0; i < size; i++)
        *sum += dt_math_exp((double)logits[i] - most);
    return most;
}

/* The repetition penalty is of log-probabilities, which then do not sum to 1, as in
 * transformers. */
static void penalize(const struct search *s, const struct beam *beam, float *logits, double *most,
                     double *sum)
{
    if (s->g->how.repetition_penalty == 1)
        return;
    for (uint32_t i = 0; i < s->g->size; i++)
        logits[i] = (float)((double)logits[i] - *most - dt_math_log(*sum));
    dt_generation_penalize_text(s->g, logits, &s->item->ids, &beam->ids);
    *most = 0;
    *sum = 1;
}

static int extend_all(struct search *s, size_t added, struct dt_error *err)
{
    int64_t vocabulary = s->g->model->config.vocab_size;
    s->best_count = 0;
    for (int b = 0; b < s->count; b++) {
        float *logits = s->g->logits + b * vocabulary;
        double sum, most;
        DT_TRY(dt_check_logits(s->g, s->item, logits, added, err));
        most = largest_of(logits, s->g->size, &sum);
        penalize(s, &s->live[b], logits, &most, &sum);
        for (uint32_t i = 0; i < s->g->size; i++)
            offer(s, (struct extension){
                         b, i, s->live[b].score + (double)logits[i] - most - dt_math_log(sum)});
    }
    return 0;
}

/* Adds a finished beam; tokens: its length with the final token. */
static void finish(struct search *s, const struct dt_ids *ids, double score, size_t tokens,
                   enum dt_finish how)
{
    double rank = score / dt_math_pow((double)tokens, s->g->how.length_penalty);
    int at = s->ranked;
    if (at == s->width && rank <= s->ranks[at - 1])
        return;
    at = at < s->width ? s->ranked++ : at - 1;
    for (; at > 0 && rank > s->ranks[at - 1]; at--)
        s->ranks[at] = s->ranks[at - 1];
    s->ranks[at] = rank;
    if (at > 0)
        return;
    s->answer_score = score;
    s->answer_finish = how;
    s->answer_ids.count = 0;
    if (ids->count > 0)
        dt_ids_append(&s->answer_ids, ids->data, ids->count);
}

static bool stops(const struct search *s, const struct dt_ids *ids)
{
    struct dt_buffer text = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < ids->count && s->g->how.stop_count > 0; i++)
        dt_generation_add_token_text(s->g, ids->data[i], &text);
    bool found = dt_generation_find_stop(s->g, &text, 0) != SIZE_MAX;
    dt_buffer_release(&text);
    return found;
}

/* The best extensions become live or finished beams. */
static void take_best(struct search *s)
{
    int taken = 0;
    int64_t free_slot = s->live[0].slot < s->width ? s->width : 0;
    for (int i = 0; i < s->best_count && taken < s->width; i++) {
        const struct extension *e = &s->best[i];
        const struct beam *parent = &s->live[e->parent];
        struct beam *child = &s->next[taken];
        if (dt_text_frame_ends(s->g->how.frame, e->id)) {
            if (i < s->width) /* as in transformers: only the first width */
                finish(s, &parent->ids, e->score, parent->ids.count + 1, DT_FINISH_END);
            continue;
        }
        child->ids.count = 0;
        if (parent->ids.count > 0)
            dt_ids_append(&child->ids, parent->ids.data, parent->ids.count);
        dt_ids_add(&child->ids, e->id);
        child->score = e->score;
        if (stops(s, &child->ids)) {
            finish(s, &child->ids, child->score, child->ids.count, DT_FINISH_STOP);
            continue;
        }
        child->slot = free_slot + taken++;
        dt_decoder_copy(s->g->decoder, child->slot, parent->slot);
    }
    struct beam *swap = s->live;
    s->live = s->next;
    s->next = swap;
    s->count = taken;
}

static void look_ahead(struct search *s)
{
    int64_t *slots = dt_alloc((size_t)s->count, sizeof *slots);
    uint32_t *ids = dt_alloc((size_t)s->count, sizeof *ids);
    for (int i = 0; i < s->count; i++) {
        slots[i] = s->live[i].slot;
        ids[i] = s->live[i].ids.data[s->live[i].ids.count - 1];
    }
    dt_decoder_step(s->g->decoder, slots, ids, s->count, s->g->logits);
    free(slots);
    free(ids);
}

static bool is_interrupted(const struct search *s)
{
    return s->g->how.interrupt && *s->g->how.interrupt;
}

/* Whether to continue: until width beams have finished, and no live beam, at its current length,
 * ranks above the last of them. */
static bool is_open(const struct search *s, size_t added, size_t most)
{
    if (s->count == 0 || added == most || (added > 0 && is_interrupted(s)))
        return false;
    if (s->ranked < s->width || added == 0)
        return true;
    double rank = s->live[0].score / dt_math_pow((double)added, s->g->how.length_penalty);
    return rank > s->ranks[s->width - 1];
}

static void answer(struct search *s)
{
    struct dt_continuation *item = s->item;
    if (s->answer_ids.count > 0)
        dt_ids_append(&item->ids, s->answer_ids.data, s->answer_ids.count);
    for (size_t i = 0; i < s->answer_ids.count; i++)
        dt_generation_add_token_text(s->g, s->answer_ids.data[i], &item->text);
    size_t stop = dt_generation_find_stop(s->g, &item->text, 0);
    if (stop != SIZE_MAX)
        item->text.size = stop;
    item->added = s->answer_ids.count;
    item->log_probability = s->answer_score;
    item->finish = s->answer_finish;
}

int dt_generation_beam_search(struct dt_generator *g, struct dt_continuation *item,
                              struct dt_error *err)
{
    size_t width = (size_t)g->how.beams, capacity = (size_t)g->capacity, added = 0;
    size_t wanted = (size_t)g->how.tokens, half = capacity / 2;
    size_t keep =
        capacity -
        (wanted < half ? wanted : half); /* leaves positions for new tokens after a long prompt */
    keep = item->ids.count < keep ? item->ids.count : keep;
    size_t most = wanted < capacity - keep ? wanted : capacity - keep;
    /* Each beam may end in as many ways as there are ends, and width others are left. */
    size_t best = (size_t)(g->how.frame->tokens.end_count + 1) * width;
    best = best < 2 * width ? 2 * width : best;
    struct search s = {.g = g, .item = item, .count = 1, .width = (int)width, .most = (int)best};
    s.live = dt_alloc(width, sizeof *s.live);
    s.next = dt_alloc(width, sizeof *s.next);
    s.best = dt_alloc(best, sizeof *s.best);
    s.ranks = dt_alloc(width, sizeof *s.ranks);
    dt_decoder_reset(g->decoder, 0);
    dt_decoder_feed(g->decoder, 0, item->ids.data + item->ids.count - keep, (int64_t)keep,
                    g->logits);
    int rc = 0;
    while (rc == 0 && is_open(&s, added, most)) {
        rc = extend_all(&s, added, err);
        if (rc < 0)
            break;
        take_best(&s);
        if (++added < most && s.count > 0)
            look_ahead(&s);
    }
    enum dt_finish how =
        is_interrupted(&s) && added < most ? DT_FINISH_INTERRUPT : DT_FINISH_LENGTH;
    for (int i = 0; rc == 0 && i < s.count; i++)
        finish(&s, &s.live[i].ids, s.live[i].score, s.live[i].ids.count, how);
    if (rc == 0)
        answer(&s);
    for (size_t i = 0; i < width; i++) {
        dt_ids_release(&s.live[i].ids);
        dt_ids_release(&s.next[i].ids);
    }
    dt_ids_release(&s.answer_ids);
    free(s.live), free(s.next), free(s.best), free(s.ranks);
    return rc;
}
