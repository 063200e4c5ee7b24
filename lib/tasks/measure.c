/* SPDX-License-Identifier: MIT */
#include "tasks/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/generation.h"
#include "eval/text-coder.h"
#include "tasks/filter.h"
#include "unicode/utf8.h"

/* --- likelihoods ------------------------------------------------------------------------------*/

static void add_text(struct dt_likelihoods *l, const struct dt_text_coder *c, const char *text)
{
    struct dt_ids ids = DT_IDS_EMPTY;
    dt_text_coder_encode(c, text, strlen(text), &ids);
    dt_likelihoods_add_rolling(l, dt_likelihoods_item(l), dt_text_coder_prefix(c), ids.data,
                               ids.count);
    dt_ids_release(&ids);
}

static char *name_answer(const void *data, size_t number)
{
    const struct dt_task_items *all = data;
    const struct dt_task_item *item = all->items;
    for (; number >= (size_t)item->count; item++)
        number -= (size_t)item->count;
    return dt_asprintf("%s: document %zu: answer %zu", all->task->name, item->number + 1,
                       number + 1);
}

/* number: of the answer among those of all items. */
static int add_answer(struct dt_likelihoods *l, const struct dt_text_coder *c,
                      const struct dt_task_items *all, const struct dt_task_item *item, int k,
                      size_t number, struct dt_error *err)
{
    if (all->task->output == DT_TASK_OUTPUT_ROLLING) {
        add_text(l, c, item->answers[k]);
        return 0;
    }
    if (dt_text_coder_add_answer(c, item->contexts[item->has_contexts ? k : 0], item->answers[k], l,
                                 err) == 0)
        return 0;
    char *name = name_answer(all, number);
    dt_fail_context(err, "%s", name);
    free(name);
    return err->code;
}

static int measure_answers(struct dt_task_result *r, const struct dt_text_coder *c, long batch,
                           struct dt_progress *progress, struct dt_error *err)
{
    const struct dt_task_items *all = r->items;
    const struct dt_item_names names = {name_answer, all};
    struct dt_likelihoods *l =
        dt_likelihoods_new(c->subject->model, c->subject->ranks, batch, &names, progress);
    int rc = 0;
    for (size_t i = 0; i < all->count; i++)
        for (int k = 0; rc == 0 && k < all->items[i].count; k++)
            rc = add_answer(l, c, all, &all->items[i], k, r->answer_count++, err);
    rc = rc < 0 ? rc : dt_likelihoods_run(l, 1, err);
    r->answers = dt_alloc(r->answer_count + 1, sizeof *r->answers);
    for (size_t i = 0; rc == 0 && i < r->answer_count; i++)
        r->answers[i] = *dt_likelihoods_of(l, i);
    dt_likelihoods_free(l);
    return rc;
}

/* --- generated texts --------------------------------------------------------------------------*/

/* The last tokens of a prompt for which there is room. */
static int set_prompt(const struct dt_task_result *r, const struct dt_text_coder *c, size_t i,
                      size_t room, struct dt_continuation *prompt, struct dt_error *err)
{
    const char *context = r->items->items[i].contexts[0], *name = r->items->task->name;
    struct dt_ids ids = DT_IDS_EMPTY;
    dt_text_coder_encode(c, context, strlen(context), &ids);
    if (ids.count == 0 && dt_text_coder_prefix(c) != DT_NO_TOKEN)
        dt_ids_add(&ids, dt_text_coder_prefix(c));
    size_t kept = ids.count < room ? ids.count : room;
    if (kept > 0)
        dt_ids_append(&prompt->ids, ids.data + ids.count - kept, kept);
    prompt->place = name;
    dt_ids_release(&ids);
    return kept > 0
               ? 0
               : dt_fail(err, DT_EFORMAT,
                         "%s: document %zu: the prompt has no token, nor has the tokenizer one "
                         "that begins a text",
                         name, r->items->items[i].number + 1);
}

static size_t first_stop(const struct dt_task *t, const struct dt_buffer *text)
{
    size_t first = text->size;
    for (size_t i = 0; i < t->until_count; i++) {
        const char *at = memmem(text->data, first, t->until[i], strlen(t->until[i]));
        first = at ? (size_t)(at - text->data) : first;
    }
    return first;
}

/* As in lm-evaluation-harness, the new tokens are decoded without the prompt and without special
 * tokens: some decoders remove the space before the first. */
static int set_text(const struct dt_task_result *r, const struct dt_text_coder *c,
                    const struct dt_continuation *item, struct dt_buffer *text,
                    struct dt_error *err)
{
    const struct dt_tokenizer *tokenizer = c->subject->tokenizer;
    struct dt_buffer all = DT_BUFFER_EMPTY;
    struct dt_ids ids = DT_IDS_EMPTY;
    for (size_t i = item->ids.count - item->added; i < item->ids.count; i++)
        if (!dt_tokenizer_is_special(tokenizer, item->ids.data[i]))
            dt_ids_add(&ids, item->ids.data[i]);
    int rc = dt_tokenizer_decode(tokenizer, ids.data, ids.count, &all, err);
    if (rc == 0 && all.size > 0)
        dt_utf8_repair(all.data, first_stop(r->items->task, &all), text);
    dt_buffer_release(&all);
    dt_ids_release(&ids);
    return rc;
}

static int generate(struct dt_task_result *r, const struct dt_text_coder *c, struct dt_generator *g,
                    size_t room, struct dt_error *err)
{
    size_t count = r->items->count;
    struct dt_continuation *all = dt_alloc(count, sizeof *all);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = set_prompt(r, c, i, room, &all[i], err);
    rc = rc < 0 ? rc : dt_generation_run(g, all, count, NULL, NULL, err);
    for (size_t i = 0; i < count; i++) {
        rc = rc < 0 ? rc : set_text(r, c, &all[i], &r->texts[i], err);
        dt_continuation_release(&all[i]);
    }
    free(all);
    return rc;
}

static int measure_texts(struct dt_task_result *r, const struct dt_text_coder *c, long batch,
                         struct dt_error *err)
{
    const struct dt_task *t = r->items->task;
    long positions = c->subject->model->config.max_seq_len;
    const struct dt_generation how = {.repetition_penalty = 1,
                                      .tokens = t->max_tokens,
                                      .slots = batch,
                                      .beams = 1,
                                      .frame = &c->frame,
                                      .stops = t->until,
                                      .stop_count = (int)t->until_count};
    struct dt_generator *g;
    if (t->max_tokens >= positions)
        return dt_fail(err, DT_EINVALID,
                       "%s: max_gen_toks is %ld, which leaves no room for a prompt: %s has %ld "
                       "positions",
                       t->path, t->max_tokens, c->subject->directory, positions);
    r->texts = dt_alloc(r->items->count, sizeof *r->texts);
    DT_TRY(dt_generator_new(&g, c->subject->model, c->subject->tokenizer, &how, err));
    int rc = generate(r, c, g, (size_t)(positions - t->max_tokens), err);
    dt_generator_free(g);
    return rc;
}

/* --- scores -----------------------------------------------------------------------------------*/

static double length_of(const char *text, enum dt_task_metric_kind kind)
{
    double points = 0;
    for (const char *p = text; *p; p++)
        points += ((unsigned char)*p & 0xc0) != 0x80;
    return kind == DT_TASK_METRIC_ACC_NORM    ? points
           : kind == DT_TASK_METRIC_ACC_BYTES ? (double)strlen(text)
                                              : 1;
}

/* The answer with the highest probability, the first of ties. */
static int pick(const struct dt_task_item *item, const struct dt_likelihood *answers,
                enum dt_task_metric_kind kind)
{
    int best = 0;
    double most = 0;
    for (int k = 0; k < item->count; k++) {
        double score = -answers[k].nats / length_of(item->choices[k], kind);
        if (k == 0 || score > most) {
            best = k;
            most = score;
        }
    }
    return best;
}

static struct dt_task_score score_choice(const struct dt_task_item *item,
                                         const struct dt_likelihood *answers,
                                         enum dt_task_metric_kind kind)
{
    bool right = false;
    int answer = pick(item, answers, kind);
    for (int i = 0; i < item->gold_count; i++)
        right |= kind == DT_TASK_METRIC_EXACT_MATCH ? answers[item->gold[i]].greedy
                                                    : item->gold[i] == answer;
    if (kind == DT_TASK_METRIC_F1)
        return (struct dt_task_score){item->gold[0], answer};
    return (struct dt_task_score){right, 1};
}

static struct dt_task_score score_likelihood(const struct dt_task_item *item,
                                             const struct dt_likelihood *answer,
                                             enum dt_task_metric_kind kind)
{
    if (kind == DT_TASK_METRIC_ACC)
        return (struct dt_task_score){answer->greedy, 1};
    return (struct dt_task_score){
        -answer->nats, kind == DT_TASK_METRIC_WORD_PERPLEXITY ? item->words : item->bytes};
}

static struct dt_task_score score_text(const struct dt_task_item *item,
                                       const struct dt_task_column *c, const struct dt_buffer *text)
{
    struct dt_buffer filtered = DT_BUFFER_EMPTY;
    const char *bytes = text->size ? text->data : "";
    bool right = false;
    if (c->filter)
        dt_task_filter_apply(c->filter, bytes, text->size, &filtered);
    else
        dt_buffer_append(&filtered, bytes, text->size);
    for (int i = 0; i < item->right_count && !right; i++)
        right = dt_task_matches(c->metric, filtered.size ? filtered.data : "", filtered.size,
                                item->right[i]);
    dt_buffer_release(&filtered);
    return (struct dt_task_score){right, 1};
}

static void score_column(const struct dt_task_result *r, struct dt_task_column *c)
{
    const struct dt_task_items *all = r->items;
    const struct dt_likelihood *answers = r->answers;
    enum dt_task_metric_kind kind = (enum dt_task_metric_kind)c->metric->kind;
    c->scores = dt_alloc(all->count, sizeof *c->scores);
    for (size_t i = 0; i < all->count; i++) {
        const struct dt_task_item *item = &all->items[i];
        if (all->task->output == DT_TASK_OUTPUT_CHOICE)
            c->scores[i] = score_choice(item, answers, kind);
        else if (all->task->output == DT_TASK_OUTPUT_GENERATE)
            c->scores[i] = score_text(item, c, &r->texts[i]);
        else
            c->scores[i] = score_likelihood(item, answers, kind);
        answers += item->count;
    }
}

static void score_all(struct dt_task_result *r)
{
    const struct dt_task *t = r->items->task;
    size_t filters = t->filter_count ? t->filter_count : 1;
    r->columns = dt_alloc(filters * t->metric_count, sizeof *r->columns);
    for (size_t f = 0; f < filters; f++)
        for (size_t i = 0; i < t->metric_count; i++) {
            struct dt_task_column *c = &r->columns[r->column_count++];
            c->metric = &t->metrics[i];
            c->filter = t->filter_count ? &t->filters[f] : NULL;
            score_column(r, c);
        }
}

int dt_task_measure(struct dt_task_result *r, const struct dt_task_items *items,
                    struct dt_scored_model *subject, long batch, struct dt_progress *progress,
                    struct dt_error *err)
{
    struct dt_text_coder c;
    *r = (struct dt_task_result){.directory = dt_strdup(subject->directory), .items = items};
    int rc = dt_text_coder_open(&c, subject, err);
    if (rc == 0 && items->task->output == DT_TASK_OUTPUT_GENERATE)
        rc = measure_texts(r, &c, batch, err);
    else if (rc == 0)
        rc = measure_answers(r, &c, batch, progress, err);
    if (rc == 0)
        score_all(r);
    dt_text_coder_release(&c);
    return rc;
}

void dt_task_result_release(struct dt_task_result *r)
{
    for (size_t i = 0; r->texts && i < r->items->count; i++)
        dt_buffer_release(&r->texts[i]);
    for (size_t i = 0; i < r->column_count; i++)
        free(r->columns[i].scores);
    free(r->columns);
    free(r->texts);
    free(r->answers);
    free(r->directory);
    *r = (struct dt_task_result){0};
}
