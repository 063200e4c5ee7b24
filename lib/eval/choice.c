/* SPDX-License-Identifier: MIT */
#include "eval/choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/confidence.h"
#include "eval/text-coder.h"
#include "json/json-number.h"
#include "json/json.h"

static const char *const rule_names[DT_CHOICE_RULES] = {"acc", "acc_norm", "acc_bytes"};

/* --- scoring ----------------------------------------------------------------------------------*/

static int add_answer(struct dt_likelihoods *l, const struct dt_text_coder *coder,
                      const struct dt_choice_item *item, int choice, struct dt_error *err)
{
    char *answer = dt_asprintf("%s%s", item->delimiter, item->choices[choice]);
    int rc = dt_text_coder_add_answer(coder, item->context, answer, l, err);
    free(answer);
    return rc < 0 ? dt_fail_context(err, "item '%s': choice %d", item->id, choice + 1) : 0;
}

static double length_of(const char *text, enum dt_choice_rule rule)
{
    double bytes = (double)strlen(text), points = 0;
    for (const char *p = text; *p; p++)
        points += ((unsigned char)*p & 0xc0) != 0x80;
    return rule == DT_CHOICE_ACC ? 1 : rule == DT_CHOICE_ACC_NORM ? points : bytes;
}

static int pick(const struct dt_choice_item *item, const struct dt_likelihood *answers,
                enum dt_choice_rule rule)
{
    int best = 0;
    double most = 0;
    for (int c = 0; c < item->count; c++) {
        double score = -answers[c].nats / length_of(item->choices[c], rule);
        if (c == 0 || score > most) {
            best = c;
            most = score;
        }
    }
    return best;
}

static void judge(struct dt_choice_result *r)
{
    const struct dt_likelihood *answers = r->answers;
    for (size_t i = 0; i < r->data->count; i++) {
        const struct dt_choice_item *item = &r->data->items[i];
        for (int rule = 0; rule < DT_CHOICE_RULES; rule++)
            r->right[rule][i] = item->count == 1
                                    ? answers->greedy
                                    : pick(item, answers, (enum dt_choice_rule)rule) == item->gold;
        r->nats[i] = answers[item->gold].nats;
        answers += item->count;
    }
}

static void allocate(struct dt_choice_result *r, size_t answers)
{
    r->answers = dt_alloc(answers, sizeof *r->answers);
    r->nats = dt_alloc(r->data->count, sizeof *r->nats);
    for (int rule = 0; rule < DT_CHOICE_RULES; rule++)
        r->right[rule] = dt_alloc(r->data->count, sizeof *r->right[rule]);
}

/* The items of dt_likelihoods are the choices, in order. */
static char *name_choice(const void *data, size_t number)
{
    const struct dt_choice_item *item = ((const struct dt_choice_data *)data)->items;
    for (; number >= (size_t)item->count; item++)
        number -= (size_t)item->count;
    return dt_asprintf("item '%s': choice %zu", item->id, number + 1);
}

int dt_choice_measure(struct dt_choice_result *r, struct dt_scored_model *s,
                      const struct dt_choice_data *data, const char *tokenizer, long batch,
                      struct dt_progress *progress, struct dt_error *err)
{
    size_t answers = 0;
    struct dt_text_coder coder;
    *r = (struct dt_choice_result){.directory = dt_strdup(s->directory), .data = data};
    DT_TRY(dt_scored_model_need_tokenizer(s, tokenizer, err));
    int rc = dt_text_coder_open(&coder, s, err);
    const struct dt_item_names names = {name_choice, data};
    struct dt_likelihoods *l = dt_likelihoods_new(s->model, s->ranks, batch, &names, progress);
    for (size_t i = 0; rc == 0 && i < data->count; i++)
        for (int c = 0; rc == 0 && c < data->items[i].count; c++, answers++)
            rc = add_answer(l, &coder, &data->items[i], c, err);
    rc = rc < 0 ? rc : dt_likelihoods_run(l, 1, err);
    if (rc == 0) {
        allocate(r, answers);
        for (size_t i = 0; i < answers; i++)
            r->answers[i] = *dt_likelihoods_of(l, i);
        judge(r);
    }
    dt_likelihoods_free(l);
    dt_text_coder_release(&coder);
    return rc;
}

void dt_choice_release(struct dt_choice_result *r)
{
    free(r->directory);
    free(r->answers);
    free(r->nats);
    for (int rule = 0; rule < DT_CHOICE_RULES; rule++)
        free(r->right[rule]);
    *r = (struct dt_choice_result){0};
}

/* --- reports ----------------------------------------------------------------------------------*/

static bool is_guessing(const struct dt_choice_result *r)
{
    return r->data->items[0].count == 1;
}

static uint64_t tokens_of(const struct dt_choice_result *r)
{
    const struct dt_likelihood *a = r->answers;
    uint64_t tokens = 0;
    for (size_t i = 0; i < r->data->count; i++)
        for (int c = 0; c < r->data->items[i].count; c++)
            tokens += (a++)->tokens;
    return tokens;
}

static void add_rule(struct dt_buffer *b, int rule, const char *suffix, double x)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", rule_names[rule], suffix);
    dt_json_add_real(b, name, x, 9);
}

static void report_json(const struct dt_choice_result *results, int count, struct dt_buffer *b)
{
    for (int i = 0; i < count; i++) {
        const struct dt_choice_result *r = &results[i];
        size_t n = r->data->count;
        dt_buffer_add_string(b, "{\"model\":");
        dt_json_add_string(b, r->directory, strlen(r->directory));
        dt_buffer_printf(b, ",\"items\":%zu,\"tokens\":%llu", n, (unsigned long long)tokens_of(r));
        for (int rule = 0; rule < (is_guessing(r) ? 1 : DT_CHOICE_RULES); rule++) {
            const double *right = r->right[rule];
            add_rule(b, rule, "", dt_confidence_mean(right, n));
            add_rule(b, rule, "_stderr", dt_confidence_standard_error(right, n));
            if (i > 0)
                add_rule(b, rule, "_p", dt_confidence_paired_p(results[0].right[rule], right, n));
        }
        if (is_guessing(r))
            dt_json_add_real(b, "perplexity", exp(dt_confidence_mean(r->nats, n)), 9);
        dt_buffer_add_string(b, "}\n");
    }
}

static void report_text(const struct dt_choice_result *results, int count, struct dt_buffer *b)
{
    int rules = is_guessing(results) ? 1 : DT_CHOICE_RULES;
    dt_buffer_printf(b, "items  %zu\n", results->data->count);
    for (int rule = 0; rule < rules; rule++) {
        dt_buffer_printf(b, "%s\n", rule_names[rule]);
        for (int i = 0; i < count; i++) {
            const double *right = results[i].right[rule];
            size_t n = results[i].data->count;
            dt_confidence_add(b, right, n);
            if (i > 0) {
                double p = dt_confidence_paired_p(results[0].right[rule], right, n);
                dt_buffer_printf(b, "  p = %.4f%s", p, p < 0.05 ? " *" : "  ");
            } else if (count > 1) {
                dt_buffer_printf(b, "  %12s", "");
            }
            if (rules == 1)
                dt_buffer_printf(b, "  perplexity %.5g",
                                 exp(dt_confidence_mean(results[i].nats, n)));
            dt_buffer_printf(b, "  %s\n", results[i].directory);
        }
    }
}

void dt_choice_report(const struct dt_choice_result *results, int count, bool json,
                      struct dt_buffer *text)
{
    (json ? report_json : report_text)(results, count, text);
}

static void add_item(const struct dt_choice_result *r, size_t number,
                     const struct dt_likelihood *answers, struct dt_buffer *b)
{
    const struct dt_choice_item *item = &r->data->items[number];
    dt_buffer_add_string(b, "{\"model\":");
    dt_json_add_string(b, r->directory, strlen(r->directory));
    dt_buffer_add_string(b, ",\"id\":");
    dt_json_add_string(b, item->id, strlen(item->id));
    dt_buffer_printf(b, ",\"gold\":%d", item->gold);
    for (int rule = 0; rule < (item->count == 1 ? 1 : DT_CHOICE_RULES); rule++)
        add_rule(b, rule, "", r->right[rule][number]);
    dt_buffer_add_string(b, ",\"choices\":[");
    for (int c = 0; c < item->count; c++) {
        dt_buffer_add_string(b, c ? ",{" : "{");
        dt_json_add_real(b, "log_likelihood", -answers[c].nats, 9);
        dt_buffer_printf(b, ",\"is_greedy\":%s,\"tokens\":%llu}",
                         answers[c].greedy ? "true" : "false",
                         (unsigned long long)answers[c].tokens);
    }
    dt_buffer_add_string(b, "]}\n");
}

void dt_choice_items(const struct dt_choice_result *results, int count, struct dt_buffer *lines)
{
    for (int m = 0; m < count; m++) {
        const struct dt_likelihood *answers = results[m].answers;
        for (size_t i = 0; i < results[m].data->count; i++) {
            add_item(&results[m], i, answers, lines);
            answers += results[m].data->items[i].count;
        }
    }
}
