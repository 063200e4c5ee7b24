/* SPDX-License-Identifier: MIT */
#include "tasks/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "tasks/python-random.h"
#include "tasks/task-internal.h"

#define CHUNK      1000 /* resamples of one seed, as lm-evaluation-harness draws them */
#define RESAMPLES  1000
#define BOOTSTRAPS 100000

#define OF(output) (1 << DT_TASK_OUTPUT_##output)

static const struct {
    const char *name;
    int outputs; /* of which tasks */
    enum dt_task_aggregation aggregation;
    bool is_loss;
} metrics[DT_TASK_METRIC_COUNT] = {
    {"acc", OF(CHOICE) | OF(LIKELIHOOD), DT_TASK_AGGREGATION_MEAN, false},
    {"acc_norm", OF(CHOICE), DT_TASK_AGGREGATION_MEAN, false},
    {"acc_bytes", OF(CHOICE), DT_TASK_AGGREGATION_MEAN, false},
    {"exact_match", OF(CHOICE) | OF(GENERATE), DT_TASK_AGGREGATION_MEAN, false},
    {"f1", OF(CHOICE), DT_TASK_AGGREGATION_BINARY_F1, false},
    {"perplexity", OF(LIKELIHOOD), DT_TASK_AGGREGATION_MEAN_PERPLEXITY, true},
    {"word_perplexity", OF(ROLLING), DT_TASK_AGGREGATION_WEIGHTED_PERPLEXITY, true},
    {"byte_perplexity", OF(ROLLING), DT_TASK_AGGREGATION_WEIGHTED_PERPLEXITY, true},
    {"bits_per_byte", OF(ROLLING), DT_TASK_AGGREGATION_WEIGHTED_BITS, true},
};

bool dt_task_metric_is_loss(enum dt_task_metric_kind kind)
{
    return metrics[kind].is_loss;
}

/* --- aggregation ------------------------------------------------------------------------------*/

/* The scores of a resample; chosen NULL: all, in order. */
struct sample {
    const struct dt_task_score *scores;
    const size_t *chosen;
    size_t count;
    int labels;
};

static const struct dt_task_score *score(const struct sample *s, size_t i)
{
    return &s->scores[s->chosen ? s->chosen[i] : i];
}

static double sum(const struct sample *s)
{
    double total = 0;
    for (size_t i = 0; i < s->count; i++)
        total += score(s, i)->value;
    return total;
}

static double mean(const struct sample *s)
{
    return sum(s) / (double)s->count;
}

static double mean_perplexity(const struct sample *s)
{
    return exp(-mean(s));
}

static double weighted(const struct sample *s)
{
    double weights = 0;
    for (size_t i = 0; i < s->count; i++)
        weights += score(s, i)->other;
    return sum(s) / weights;
}

static double weighted_perplexity(const struct sample *s)
{
    return exp(-weighted(s));
}

static double weighted_bits(const struct sample *s)
{
    return -weighted(s) / M_LN2;
}

static double f1_of(const struct sample *s, int label)
{
    double both = 0, either = 0;
    for (size_t i = 0; i < s->count; i++) {
        bool right = (int)score(s, i)->value == label, answered = (int)score(s, i)->other == label;
        both += right && answered;
        either += (double)right + (double)answered;
    }
    return either > 0 ? 2 * both / either : 0;
}

static double binary_f1(const struct sample *s)
{
    return f1_of(s, 1);
}

static double macro_f1(const struct sample *s)
{
    double total = 0;
    for (int label = 0; label < s->labels; label++)
        total += f1_of(s, label);
    return total / s->labels;
}

static const struct {
    const char *name;
    double (*compute)(const struct sample *s);
    bool bootstraps; /* its standard error in lm-evaluation-harness */
} aggregations[DT_TASK_AGGREGATION_COUNT] = {
    {"mean", mean, false},
    {"perplexity", mean_perplexity, true},
    {"weighted_perplexity", weighted_perplexity, false},
    {"bits_per_byte", weighted_bits, false},
    {"f1", binary_f1, true},
    {"macro_f1", macro_f1, true},
};

/* --- standard errors --------------------------------------------------------------------------*/

static double deviation(const double *x, size_t n)
{
    double total = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        total += x[i];
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - total / (double)n) * (x[i] - total / (double)n);
    return n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
}

static double error_of_mean(const struct sample *s)
{
    double *x = dt_alloc(s->count, sizeof *x);
    for (size_t i = 0; i < s->count; i++)
        x[i] = s->scores[i].value;
    double result = deviation(x, s->count) / sqrt((double)s->count);
    free(x);
    return result;
}

/* NaN, as of a resample without a byte, is last. */
static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return isnan(x) || isnan(y) ? (isnan(x) != 0) - (isnan(y) != 0) : (x > y) - (x < y);
}

/* Fills the interval; returns the standard deviation of the resamples. */
static double bootstrap(const struct sample *all, double (*compute)(const struct sample *s),
                        size_t resamples, struct dt_task_estimate *e)
{
    size_t chunk = resamples < CHUNK ? resamples : CHUNK, made = 0;
    size_t *chosen = dt_alloc(all->count, sizeof *chosen);
    double *values = dt_alloc(resamples, sizeof *values);
    struct sample s = *all;
    s.chosen = chosen;
    for (size_t seed = 0; seed < resamples / chunk; seed++) {
        struct dt_python_random random;
        dt_python_random_seed(&random, seed);
        for (size_t i = 0; i < chunk; i++) {
            dt_python_random_choices(&random, all->count, chosen);
            values[made++] = compute(&s);
        }
    }
    double error = deviation(values, made);
    qsort(values, made, sizeof *values, compare_reals);
    e->low = values[(size_t)(0.025 * (double)(made - 1))];
    e->high = values[(size_t)ceil(0.975 * (double)(made - 1))];
    free(values);
    free(chosen);
    return error;
}

struct dt_task_estimate dt_task_estimate(const struct dt_task_score *scores, size_t count,
                                         enum dt_task_aggregation aggregation, int labels,
                                         long resamples)
{
    const struct sample s = {scores, NULL, count, labels};
    bool bootstraps = aggregations[aggregation].bootstraps;
    struct dt_task_estimate e = {.value = aggregations[aggregation].compute(&s)};
    size_t wanted = resamples > 0 ? (size_t)resamples : bootstraps ? BOOTSTRAPS : RESAMPLES;
    e.error = bootstrap(&s, aggregations[aggregation].compute, wanted, &e);
    if (aggregation == DT_TASK_AGGREGATION_MEAN)
        e.error = error_of_mean(&s);
    if (count < 2)
        e.error = e.low = e.high = NAN;
    return e;
}

double dt_task_pooled_error(const double *errors, const size_t *counts, size_t groups)
{
    double total = 0, all = 0;
    for (size_t i = 0; i < groups; i++) {
        double n = (double)counts[i];
        total += (n - 1) * errors[i] * errors[i] * n;
        all += n;
    }
    return sqrt(total / (all - (double)groups) / all);
}

/* --- metric_list ------------------------------------------------------------------------------*/

static int find_metric(const struct dt_task *t, struct dt_task_metric *m, struct dt_error *err)
{
    for (int i = 0; i < DT_TASK_METRIC_COUNT; i++) {
        if (strcmp(m->name, metrics[i].name) != 0)
            continue;
        m->kind = i;
        m->aggregation = (int)metrics[i].aggregation;
        if (metrics[i].outputs & 1 << t->output)
            return 0;
        return dt_fail(err, DT_EINVALID, "%s: the metric '%s' is not of tasks of the kind %s",
                       t->path, m->name, dt_task_outputs[t->output]);
    }
    return dt_fail(err, DT_EINVALID,
                   "%s: the metric '%s' is not known; known are acc, acc_norm, acc_bytes, "
                   "exact_match, f1, perplexity, word_perplexity, byte_perplexity and "
                   "bits_per_byte",
                   t->path, m->name);
}

static int set_aggregation(const struct dt_task *t, struct dt_task_metric *m, const char *name,
                           struct dt_error *err)
{
    bool f1 = m->kind == DT_TASK_METRIC_F1 && strcmp(name, "macro_f1") == 0;
    if (!f1 && strcmp(name, aggregations[m->aggregation].name) != 0)
        return dt_fail(err, DT_EINVALID, "%s: the metric %s has the aggregation %s, not '%s'",
                       t->path, m->name, aggregations[m->aggregation].name, name);
    m->aggregation = f1 ? DT_TASK_AGGREGATION_MACRO_F1 : m->aggregation;
    return 0;
}

static int read_ignored(const struct dt_task *t, struct dt_task_metric *m, struct json_object *list,
                        struct dt_error *err)
{
    if (!json_object_is_type(list, json_type_array))
        return dt_task_fail(t, "regexes_to_ignore", "must be a list", err);
    size_t count = json_object_array_length(list);
    m->ignored = dt_alloc(count + 1, sizeof *m->ignored);
    for (size_t i = 0; i < count; i++, m->ignored_count++)
        DT_TRY(dt_regex_new_python(&m->ignored[i], dt_json_text(json_object_array_get_idx(list, i)),
                                   t->path, err));
    return 0;
}

static int read_metric_key(struct dt_task *t, struct dt_task_metric *m, const char *key,
                           struct json_object *value, struct dt_error *err)
{
    bool higher,
        exact = t->output == DT_TASK_OUTPUT_GENERATE && m->kind == DT_TASK_METRIC_EXACT_MATCH;
    if (strcmp(key, "metric") == 0)
        return 0;
    if (strcmp(key, "aggregation") == 0)
        return set_aggregation(t, m, dt_json_text(value), err);
    if (strcmp(key, "higher_is_better") == 0) {
        DT_TRY(dt_task_bool(t, key, value, &higher, err));
        return higher != metrics[m->kind].is_loss
                   ? 0
                   : dt_fail(err, DT_EINVALID, "%s: higher_is_better of the metric %s is %s",
                             t->path, m->name, metrics[m->kind].is_loss ? "false" : "true");
    }
    if (exact && strcmp(key, "ignore_case") == 0)
        return dt_task_bool(t, key, value, &m->ignore_case, err);
    if (exact && strcmp(key, "ignore_punctuation") == 0)
        return dt_task_bool(t, key, value, &m->ignore_punctuation, err);
    if (exact && strcmp(key, "ignore_numbers") == 0)
        return dt_task_bool(t, key, value, &m->ignore_numbers, err);
    if (exact && strcmp(key, "regexes_to_ignore") == 0)
        return read_ignored(t, m, value, err);
    return dt_fail(err, DT_EINVALID, "%s: the metric %s has no key '%s'", t->path, m->name, key);
}

static int read_metric(struct dt_task *t, struct dt_task_metric *m, struct json_object *entry,
                       struct dt_error *err)
{
    struct json_object *name = NULL;
    if (!json_object_is_type(entry, json_type_object) ||
        !json_object_object_get_ex(entry, "metric", &name))
        return dt_task_fail(t, "metric_list", "an entry has no metric", err);
    m->name = dt_json_text(name);
    DT_TRY(find_metric(t, m, err));
    json_object_object_foreach(entry, key, value)
    {
        DT_TRY(read_metric_key(t, m, key, value, err));
    }
    return 0;
}

int dt_task_read_metrics(struct dt_task *t, const char *key, struct json_object *list,
                         struct dt_error *err)
{
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) == 0)
        return dt_task_fail(t, key, "must be a list", err);
    size_t count = json_object_array_length(list);
    t->metrics = dt_alloc(count, sizeof *t->metrics);
    t->metric_count = count;
    for (size_t i = 0; i < count; i++)
        DT_TRY(read_metric(t, &t->metrics[i], json_object_array_get_idx(list, i), err));
    return 0;
}

int dt_task_default_metrics(struct dt_task *t, struct dt_error *err)
{
    static const char *const defaults[DT_TASK_OUTPUT_COUNT][3] = {
        {"acc", "acc_norm"},
        {"perplexity", "acc"},
        {"word_perplexity", "byte_perplexity", "bits_per_byte"},
        {"exact_match"},
    };
    if (t->metric_count > 0)
        return 0;
    t->metrics = dt_alloc(3, sizeof *t->metrics);
    for (int i = 0; i < 3 && defaults[t->output][i]; i++) {
        t->metrics[i].name = defaults[t->output][i];
        DT_TRY(find_metric(t, &t->metrics[t->metric_count++], err));
    }
    return 0;
}

void dt_task_free_metrics(struct dt_task *t)
{
    for (size_t i = 0; i < t->metric_count; i++) {
        for (size_t k = 0; k < t->metrics[i].ignored_count; k++)
            dt_regex_free(t->metrics[i].ignored[k]);
        free(t->metrics[i].ignored);
    }
    free(t->metrics);
}
