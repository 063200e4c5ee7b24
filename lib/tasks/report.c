/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eval/confidence.h"
#include "tasks/filter.h"
#include "tasks/measure.h"
#include "json/json-number.h"

/* "exact_match,strict-match", as lm-evaluation-harness names it; without a filter the metric. */
static char *name_of(const struct dt_task_column *c)
{
    return dt_asprintf("%s%s%s", c->metric->name, c->filter ? "," : "",
                       c->filter ? c->filter->name : "");
}

/* --- estimates --------------------------------------------------------------------------------*/

static struct dt_task_estimate estimate_of(const struct dt_task_result *r,
                                           const struct dt_task_column *c, size_t group, bool all,
                                           size_t *count, long resamples)
{
    struct dt_task_score *scores = dt_alloc(r->items->count, sizeof *scores);
    *count = 0;
    for (size_t i = 0; i < r->items->count; i++)
        if (all || r->items->items[i].group == group)
            scores[(*count)++] = c->scores[i];
    struct dt_task_estimate e =
        dt_task_estimate(scores, *count, (enum dt_task_aggregation)c->metric->aggregation,
                         r->items->labels, resamples);
    free(scores);
    return e;
}

/* The metric of all items; the error of a mean over groups is pooled. */
static struct dt_task_estimate estimate_all(const struct dt_task_result *r,
                                            const struct dt_task_column *c, long resamples)
{
    size_t groups = r->items->group_count, count;
    struct dt_task_estimate e = estimate_of(r, c, 0, true, &count, resamples);
    if (groups < 2 || c->metric->aggregation != DT_TASK_AGGREGATION_MEAN)
        return e;
    double *errors = dt_alloc(groups, sizeof *errors);
    size_t *counts = dt_alloc(groups, sizeof *counts);
    for (size_t i = 0; i < groups; i++) {
        errors[i] = estimate_of(r, c, i, false, &counts[i], 1).error;
        errors[i] = isnan(errors[i]) ? 0 : errors[i];
    }
    e.error = dt_task_pooled_error(errors, counts, groups);
    free(errors);
    free(counts);
    return e;
}

/* p-value of the difference from the first model, paired by item; NAN of metrics that are not
 * means. */
static double p_value(const struct dt_task_result *results, int i, size_t column)
{
    const struct dt_task_column *a = &results[0].columns[column], *b = &results[i].columns[column];
    int aggregation = a->metric->aggregation;
    size_t n = results[0].items->count;
    if (aggregation == DT_TASK_AGGREGATION_BINARY_F1 || aggregation == DT_TASK_AGGREGATION_MACRO_F1)
        return NAN;
    double *x = dt_alloc(n, sizeof *x), *y = dt_alloc(n, sizeof *y);
    for (size_t k = 0; k < n; k++) {
        x[k] = a->scores[k].value;
        y[k] = b->scores[k].value;
    }
    double p = dt_confidence_paired_p(x, y, n);
    free(x);
    free(y);
    return p;
}

/* --- JSON -------------------------------------------------------------------------------------*/

static void add_real(struct dt_buffer *b, const char *name, const char *suffix, double x)
{
    char *whole = dt_asprintf("%s%s", name, suffix);
    dt_json_add_real(b, whole, x, 9);
    free(whole);
}

static void add_text(struct dt_buffer *b, const char *name, const char *text)
{
    dt_buffer_printf(b, "\"%s\":", name);
    dt_json_add_string(b, text, strlen(text));
}

static void add_bound(struct dt_buffer *b, double x)
{
    if (isfinite(x))
        dt_buffer_printf(b, "%.9g", x);
    else
        dt_buffer_add_string(b, "null");
}

static void add_estimate(struct dt_buffer *b, const char *name, const struct dt_task_estimate *e)
{
    add_real(b, name, "", e->value);
    add_real(b, name, "_stderr", e->error);
    char *interval = dt_asprintf("%s_interval", name);
    dt_buffer_add_char(b, ',');
    dt_json_add_string(b, interval, strlen(interval));
    free(interval);
    dt_buffer_add_string(b, ":[");
    add_bound(b, e->low);
    dt_buffer_add_char(b, ',');
    add_bound(b, e->high);
    dt_buffer_add_char(b, ']');
}

static void add_groups(const struct dt_task_result *r, long resamples, struct dt_buffer *b)
{
    const struct dt_task_items *items = r->items;
    dt_buffer_add_string(b, ",\"groups\":{");
    for (size_t g = 0; g < items->group_count; g++) {
        size_t count = 0;
        for (size_t i = 0; i < items->count; i++)
            count += items->items[i].group == g;
        dt_buffer_add_string(b, g ? "," : "");
        dt_json_add_string(b, items->groups[g], strlen(items->groups[g]));
        dt_buffer_printf(b, ":{\"items\":%zu", count);
        for (size_t i = 0; i < r->column_count; i++) {
            char *name = name_of(&r->columns[i]);
            struct dt_task_estimate e = estimate_of(r, &r->columns[i], g, false, &count, resamples);
            add_estimate(b, name, &e);
            free(name);
        }
        dt_buffer_add_string(b, "}");
    }
    dt_buffer_add_string(b, "}");
}

static uint64_t tokens_of(const struct dt_task_result *r)
{
    uint64_t tokens = 0;
    for (size_t i = 0; i < r->answer_count; i++)
        tokens += r->answers[i].tokens;
    return tokens;
}

static void report_json(const struct dt_task_result *results, int count, long resamples,
                        struct dt_buffer *b)
{
    for (int i = 0; i < count; i++) {
        const struct dt_task_result *r = &results[i];
        dt_buffer_add_string(b, "{");
        add_text(b, "model", r->directory);
        dt_buffer_add_string(b, ",");
        add_text(b, "task", r->items->task->name);
        dt_buffer_printf(b, ",\"items\":%zu", r->items->count);
        if (r->answer_count > 0)
            dt_buffer_printf(b, ",\"tokens\":%llu", (unsigned long long)tokens_of(r));
        for (size_t k = 0; k < r->column_count; k++) {
            char *name = name_of(&r->columns[k]);
            struct dt_task_estimate e = estimate_all(r, &r->columns[k], resamples);
            add_estimate(b, name, &e);
            if (i > 0)
                add_real(b, name, "_p", p_value(results, i, k));
            free(name);
        }
        if (r->items->task->group_by)
            add_groups(r, resamples, b);
        dt_buffer_add_string(b, "}\n");
    }
}

void dt_task_add_metrics(const struct dt_task_result *r, long resamples, struct dt_buffer *b)
{
    for (size_t k = 0; k < r->column_count; k++) {
        char *metric = name_of(&r->columns[k]);
        char *name = dt_asprintf("%s/%s", r->items->task->name, metric);
        struct dt_task_estimate e = estimate_all(r, &r->columns[k], resamples);
        add_real(b, name, "", e.value);
        add_real(b, name, "_stderr", e.error);
        free(name);
        free(metric);
    }
}

/* --- text -------------------------------------------------------------------------------------*/

static void add_line(struct dt_buffer *b, const struct dt_task_estimate *e)
{
    dt_buffer_printf(b, "  %.4f", e->value);
    if (isnan(e->error))
        dt_buffer_printf(b, " %9s", "");
    else
        dt_buffer_printf(b, " ± %.4f", e->error);
    if (!isnan(e->low))
        dt_buffer_printf(b, "  [%.4f, %.4f]", e->low, e->high);
}

static void report_groups(const struct dt_task_result *results, int count, size_t column,
                          long resamples, struct dt_buffer *b)
{
    const struct dt_task_items *items = results[0].items;
    for (size_t g = 0; items->task->group_by && g < items->group_count; g++)
        for (int i = 0; i < count; i++) {
            size_t n;
            struct dt_task_estimate e =
                estimate_of(&results[i], &results[i].columns[column], g, false, &n, resamples);
            dt_buffer_add_string(b, "  ");
            add_line(b, &e);
            dt_buffer_printf(b, "  %s (%zu)", items->groups[g], n);
            dt_buffer_printf(b, "%s%s\n", count > 1 ? "  " : "",
                             count > 1 ? results[i].directory : "");
        }
}

static void report_text(const struct dt_task_result *results, int count, long resamples,
                        struct dt_buffer *b)
{
    dt_buffer_printf(b, "%s  %zu items\n", results->items->task->name, results->items->count);
    for (size_t k = 0; k < results->column_count; k++) {
        char *name = name_of(&results->columns[k]);
        dt_buffer_printf(b, "%s\n", name);
        for (int i = 0; i < count; i++) {
            struct dt_task_estimate e =
                estimate_all(&results[i], &results[i].columns[k], resamples);
            double p = i > 0 ? p_value(results, i, k) : NAN;
            add_line(b, &e);
            if (i > 0 && !isnan(p))
                dt_buffer_printf(b, "  p = %.4f%s", p, p < 0.05 ? " *" : "  ");
            else if (count > 1)
                dt_buffer_printf(b, "  %12s", "");
            dt_buffer_printf(b, "  %s\n", results[i].directory);
        }
        report_groups(results, count, k, resamples, b);
        free(name);
    }
}

void dt_task_report(const struct dt_task_result *results, int count, bool json, long resamples,
                    struct dt_buffer *text)
{
    (json ? report_json : report_text)(results, count, resamples, text);
}

/* --- items ------------------------------------------------------------------------------------*/

static void add_answers(const struct dt_task_item *item, const struct dt_likelihood *answers,
                        struct dt_buffer *b)
{
    dt_buffer_add_string(b, ",\"answers\":[");
    for (int k = 0; k < item->count; k++) {
        dt_buffer_add_string(b, k ? ",{" : "{");
        dt_json_add_real(b, "log_likelihood", -answers[k].nats, 9);
        dt_buffer_printf(b, ",\"is_greedy\":%s,\"tokens\":%llu}",
                         answers[k].greedy ? "true" : "false",
                         (unsigned long long)answers[k].tokens);
    }
    dt_buffer_add_string(b, "]");
}

static void add_item(const struct dt_task_result *r, size_t number,
                     const struct dt_likelihood *answers, struct dt_buffer *b)
{
    const struct dt_task_item *item = &r->items->items[number];
    dt_buffer_add_string(b, "{");
    add_text(b, "model", r->directory);
    dt_buffer_add_string(b, ",");
    add_text(b, "task", r->items->task->name);
    dt_buffer_printf(b, ",\"item\":%zu", item->number);
    if (r->items->task->group_by) {
        dt_buffer_add_string(b, ",");
        add_text(b, "group", r->items->groups[item->group]);
    }
    for (size_t k = 0; k < r->column_count; k++) {
        const struct dt_task_column *c = &r->columns[k];
        char *name = name_of(c);
        if (c->metric->aggregation == DT_TASK_AGGREGATION_MEAN)
            add_real(b, name, "", c->scores[number].value);
        free(name);
    }
    if (r->texts) {
        dt_buffer_add_string(b, ",\"text\":");
        dt_json_add_string(b, r->texts[number].size ? r->texts[number].data : "",
                           r->texts[number].size);
    } else {
        add_answers(item, answers, b);
    }
    dt_buffer_add_string(b, "}\n");
}

void dt_task_items_report(const struct dt_task_result *results, int count, struct dt_buffer *lines)
{
    for (int m = 0; m < count; m++) {
        const struct dt_likelihood *answers = results[m].answers;
        for (size_t i = 0; i < results[m].items->count; i++) {
            add_item(&results[m], i, answers, lines);
            answers += results[m].items->items[i].count;
        }
    }
}
