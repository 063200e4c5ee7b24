/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/statistics.h"
#include "report/report-internal.h"

#define MOST_COLUMNS 6 /* of values of a configuration */

/* --- values of a run; NAN if it has none --------------------------------------------------- */

static double last_validation(const struct dt_run_metrics *m)
{
    return m->valid.count > 0 && !m->valid.lost ? m->valid.items[m->valid.count - 1].loss : NAN;
}

static double best_validation(const struct dt_run_metrics *m)
{
    double best = NAN;
    for (size_t i = 0; i < m->valid.count; i++)
        best = fmin(best, m->valid.items[i].loss);
    return best;
}

/* The mean over the last 1/50 of the lines, of one at least. */
static double last_training(const struct dt_run_metrics *m)
{
    const struct dt_curve *train = &m->train;
    size_t count = train->count / 50 + (train->count > 0);
    double sum = 0;
    for (size_t i = train->count - count; i < train->count; i++)
        sum += train->items[i].loss;
    return count > 0 && !train->lost ? sum / (double)count : NAN;
}

static double median(const struct dt_run_metrics *m)
{
    double *values = dt_alloc(m->train.count + 1, sizeof *values);
    for (size_t i = 0; i < m->train.count; i++)
        values[i] = m->train.items[i].loss;
    double middle = dt_summary_of(values, m->train.count).median;
    free(values);
    return middle;
}

struct value {
    const char *name;
    double (*of)(const struct dt_run_metrics *metrics);
    int curve;       /* index; -1: the loss */
    bool is_outcome; /* of the training, not of the machine */
};

/* The values of a report: those of all reports, then of each further validation the last. */
struct values {
    struct value *items;
    size_t count, capacity;
    char **names; /* of the further ones */
};

static void add_value(struct values *all, struct value value)
{
    DT_GROW(all->items, all->count, all->capacity);
    all->items[all->count++] = value;
}

/* The label of a member without its unit, which a name of no known meaning lacks. Owned by the
 * caller. */
static char *words_of(const char *member)
{
    char *label = dt_figure_label(member), *unit = strrchr(label, '(');
    if (unit && strcmp(label, member) != 0)
        unit[-1] = 0;
    return label;
}

static struct values values_of(const struct dt_reported *r)
{
    const size_t further = r->curve_count - DT_REPORTED_CURVES;
    struct values all = {.names = dt_alloc(further + 1, sizeof *all.names)};
    add_value(&all, (struct value){"last validation loss", last_validation, -1, true});
    add_value(&all, (struct value){"best validation loss", best_validation, -1, true});
    add_value(&all, (struct value){"last training loss", last_training, -1, true});
    for (size_t i = 0; i < further; i++) {
        const int curve = (int)i + DT_REPORTED_CURVES;
        char *label = words_of(r->members[curve]);
        all.names[i] = dt_asprintf("last %s", label);
        free(label);
        add_value(&all, (struct value){all.names[i], last_validation, curve, true});
    }
    add_value(&all, (struct value){"tokens per second", median, DT_REPORTED_CURVE_SPEED, false});
    return all;
}

static void release_values(struct values *all)
{
    for (char **name = all->names; *name; name++)
        free(*name);
    free(all->names);
    free(all->items);
}

static double value_of(const struct value *value, const struct dt_reported_run *run)
{
    return value->of(value->curve < 0 ? &run->loss : &run->curves[value->curve]);
}

/* --- means --------------------------------------------------------------------------------- */

/* Of the runs that have the value. Returns their number. */
static size_t collect(const struct dt_reported *r, int configuration, const struct value *value,
                      double *found)
{
    const struct dt_configuration *c = &r->configurations[configuration];
    size_t count = 0;
    for (int i = 0; i < c->count; i++) {
        double x = value_of(value, &r->runs[c->runs[i]]);
        if (isfinite(x))
            found[count++] = x;
    }
    return count;
}

static void add_mean(struct dt_grid *g, const double *found, size_t count, size_t runs)
{
    char of[64] = "";
    double mean = dt_statistics_mean(found, count), margin = dt_statistics_margin(found, count);
    if (count < runs)
        snprintf(of, sizeof of, " (%zu of %zu runs)", count, runs);
    if (count == 0)
        dt_grid_add(g, "-");
    else if (count == 1)
        dt_grid_printf(g, "%.5g%s", mean, of);
    else
        dt_grid_printf(g, "%.5g \302\261 %.2g%s", mean, margin, of);
}

static void add_mean_of(struct dt_grid *g, const struct dt_reported *r, int configuration,
                        const struct value *value)
{
    double *found = dt_alloc((size_t)r->count, sizeof *found);
    add_mean(g, found, collect(r, configuration, value, found),
             (size_t)r->configurations[configuration].count);
    free(found);
}

/* A row for each configuration. */
static void add_rows(struct dt_grid *g, const struct dt_reported *r, const struct values *values)
{
    g->columns = 2 + (int)values->count;
    dt_grid_add(g, "configuration");
    dt_grid_add(g, "runs");
    for (size_t v = 0; v < values->count; v++)
        dt_grid_add(g, values->items[v].name);
    for (int c = 0; c < r->configuration_count; c++) {
        dt_grid_add(g, r->configurations[c].label);
        dt_grid_printf(g, "%d", r->configurations[c].count);
        for (size_t v = 0; v < values->count; v++)
            add_mean_of(g, r, c, &values->items[v]);
    }
}

/* A column for each configuration. */
static void add_columns(struct dt_grid *g, const struct dt_reported *r, const struct values *values)
{
    g->columns = 1 + r->configuration_count;
    dt_grid_add(g, "value");
    for (int c = 0; c < r->configuration_count; c++)
        dt_grid_add(g, r->configurations[c].label);
    dt_grid_add(g, "runs");
    for (int c = 0; c < r->configuration_count; c++)
        dt_grid_printf(g, "%d", r->configurations[c].count);
    for (size_t v = 0; v < values->count; v++) {
        dt_grid_add(g, values->items[v].name);
        for (int c = 0; c < r->configuration_count; c++)
            add_mean_of(g, r, c, &values->items[v]);
    }
}

/* A page has no room for many columns. */
static void add_means(struct dt_page *page, const struct dt_reported *r,
                      const struct values *values)
{
    struct dt_grid g = {.columns = 0};
    if (values->count > MOST_COLUMNS && (size_t)r->configuration_count < values->count)
        add_columns(&g, r, values);
    else
        add_rows(&g, r, values);
    dt_page_table(page, &g);
    dt_grid_release(&g);
}

/* --- tests --------------------------------------------------------------------------------- */

struct test {
    int configuration;
    const struct value *value;
    size_t pairs;
    double *differences;
    double mean, margin;      /* of the differences; half its 95% interval */
    double p, chance, needed; /* chance: that p, before correction, has to be below */
    double ranks;             /* dt_statistics_signed_rank_sum */
    bool equal;               /* all differences are 0 */
    const struct test *same;  /* an earlier test of the same numbers; NULL: none */
};

/* The value of the configuration's run with this seed; NAN without one. */
static double with_seed(const struct dt_reported *r, int configuration, const struct value *value,
                        const char *seed)
{
    const struct dt_configuration *c = &r->configurations[configuration];
    for (int i = 0; i < c->count; i++)
        if (strcmp(dt_reported_fact(&r->runs[c->runs[i]], "training.seed"), seed) == 0)
            return value_of(value, &r->runs[c->runs[i]]);
    return NAN;
}

/* Pairs of runs with equal seeds; the baseline is the first configuration. */
static struct test test_of(const struct dt_reported *r, int configuration,
                           const struct value *value)
{
    const struct dt_configuration *c = &r->configurations[configuration];
    struct test t = {
        .configuration = configuration, .value = value, .chance = DT_CHANCE, .equal = true};
    double *base = dt_alloc(2 * (size_t)c->count, sizeof *base), *own = base + c->count,
           *difference = dt_alloc((size_t)c->count, sizeof *difference);
    for (int i = 0; i < c->count; i++) {
        const struct dt_reported_run *run = &r->runs[c->runs[i]];
        const char *seed = dt_reported_fact(run, "training.seed");
        base[t.pairs] = *seed ? with_seed(r, 0, value, seed) : NAN;
        own[t.pairs] = value_of(value, run);
        difference[t.pairs] = own[t.pairs] - base[t.pairs];
        t.equal = t.equal && !(fabs(difference[t.pairs]) > 0);
        t.pairs += isfinite(difference[t.pairs]);
    }
    if (t.pairs > 0) {
        t.mean = dt_statistics_mean(difference, t.pairs);
        t.margin = dt_statistics_margin(difference, t.pairs);
        t.p = dt_statistics_signed_rank_test(base, own, t.pairs);
        t.ranks = dt_statistics_signed_rank_sum(base, own, t.pairs);
    }
    t.differences = difference;
    free(base);
    return t;
}

static void add_verdict(struct dt_grid *g, const struct test *t)
{
    if (t->same && !t->equal)
        dt_grid_printf(g, "the same numbers as the %s", t->same->value->name);
    else if (t->p < DT_CHANCE)
        dt_grid_printf(g, "%s%s", t->ranks < 0 ? "lower" : "higher",
                       t->ranks * t->mean > 0 ? "" : ", but not the mean: few pairs differ much");
    else if (t->equal)
        dt_grid_add(g, "no difference in any pair");
    else if (t->mean == 0)
        dt_grid_add(g, "~ not decided; no number of pairs would do: the mean difference is 0");
    else if (t->needed > 1e6)
        dt_grid_add(g, "~ not decided; more than 1000000 pairs would be needed");
    else if (t->needed > 0)
        dt_grid_printf(g, "~ not decided; about %.0f pairs would be needed", t->needed);
    else
        dt_grid_printf(g, "~ not decided; at least %zu pairs are needed",
                       dt_statistics_least_pairs(t->chance));
}

static void add_test(struct dt_grid *g, const struct dt_reported *r, const struct test *t)
{
    dt_grid_add(g, r->configurations[t->configuration].label);
    dt_grid_add(g, t->value->name);
    dt_grid_printf(g, "%zu", t->pairs);
    if (t->pairs > 1)
        dt_grid_printf(g, "%+.4g \302\261 %.2g", t->mean, t->margin);
    else
        dt_grid_printf(g, "%+.4g", t->mean);
    dt_grid_printf(g, "%.2g", t->p);
    add_verdict(g, t);
}

/* An earlier test of the same numbers, so that this one proves nothing more. */
static const struct test *find_same(const struct test *tests, size_t index)
{
    const struct test *t = &tests[index];
    for (size_t i = 0; i < index && t->value->is_outcome; i++)
        if (tests[i].pairs == t->pairs &&
            memcmp(tests[i].differences, t->differences, t->pairs * sizeof *t->differences) == 0)
            return &tests[i];
    return NULL;
}

/* Whether a value is that of the main comparison, if the first pairs have it. */
static bool is_main(const struct value *value)
{
    return value->curve < 0 && value->of != best_validation;
}

/* Corrects the tests of outcomes of one configuration, except its main one, the first. By Holm's
 * method, tests that are decided do not count for the others. */
static void correct(struct test *tests, size_t count)
{
    double *p = dt_alloc(count + 1, sizeof *p);
    size_t *which = dt_alloc(count + 1, sizeof *which), family = 0, undecided = 0;
    for (size_t i = 0; i < count; i++) {
        tests[i].same = find_same(tests, i);
        if ((i > 0 || !is_main(tests[i].value)) && tests[i].value->is_outcome &&
            tests[i].same == NULL)
            which[family++] = i;
    }
    for (size_t k = 0; k < family; k++)
        p[k] = tests[which[k]].p;
    dt_statistics_adjust_holm(p, family);
    for (size_t k = 0; k < family; k++)
        undecided += p[k] >= DT_CHANCE;
    for (size_t k = 0; k < family; k++) {
        tests[which[k]].p = p[k];
        tests[which[k]].chance = DT_CHANCE / fmax(1, (double)undecided);
    }
    for (size_t i = 0; i < count; i++) {
        tests[i].p = tests[i].same ? tests[i].same->p : tests[i].p;
        tests[i].needed =
            dt_statistics_needed(tests[i].differences, tests[i].pairs, tests[i].chance);
    }
    free(p);
    free(which);
}

/* Returns the number of tests: of the values that pairs of runs have. */
static size_t test_all(struct test *tests, const struct dt_reported *r, const struct values *values)
{
    size_t count = 0;
    for (int c = 1; c < r->configuration_count; c++) {
        size_t first = count;
        for (size_t v = 0; v < values->count; v++) {
            tests[count] = test_of(r, c, &values->items[v]);
            if (tests[count].pairs > 0)
                count++;
            else
                free(tests[count].differences);
        }
        correct(tests + first, count - first);
    }
    return count;
}

static void explain_tests(struct dt_page *page, const struct dt_reported *r)
{
    dt_page_paragraph(
        page,
        "Pairs of runs with the same seed, compared with %s: mean difference with its 95%% "
        "interval, and p of the signed rank test. A difference counts with p below %g. The main "
        "comparison is the last validation loss, or without validation the last training loss: "
        "its p is not corrected, and dt-bench matrix gives the same. p of the other outcomes of a "
        "configuration is Holm-corrected for their number; those with the numbers of another do "
        "not count. The speed is a property of the machine, and its p is not corrected. Nothing "
        "is corrected for the number of configurations: of 20 without an effect about one counts "
        "by chance. Of a difference that is not decided, the number of pairs with which this "
        "test, with its correction, finds one of this size and spread in 80%% of cases.",
        r->configurations[0].label, DT_CHANCE);
}

static void add_tests(struct dt_page *page, const struct dt_reported *r,
                      const struct values *values)
{
    static const char *const headings[] = {
        "configuration", "value", "pairs", "difference from the first", "p", "verdict"};
    struct dt_grid g = {.columns = 6};
    struct test *tests = dt_alloc((size_t)r->configuration_count * values->count, sizeof *tests);
    size_t count = test_all(tests, r, values);
    for (int i = 0; i < 6; i++)
        dt_grid_add(&g, headings[i]);
    for (size_t i = 0; i < count; i++)
        add_test(&g, r, &tests[i]);
    if (count == 0) {
        dt_page_paragraph(page, "No run shares a seed with %s, so nothing is paired.",
                          r->configurations[0].label);
    } else {
        explain_tests(page, r);
        dt_page_table(page, &g);
    }
    for (size_t i = 0; i < count; i++)
        free(tests[i].differences);
    dt_grid_release(&g);
    free(tests);
}

void dt_report_values(struct dt_page *page, const struct dt_reported *r)
{
    dt_page_heading(page, "Final values");
    dt_page_paragraph(page, "Losses in nats per token: the last validation, the best one, and the "
                            "mean over the last 1/50 of the logged steps; of each further "
                            "validation the last; the median speed. Of "
                            "several runs the mean with its 95%% interval by Student's t, which "
                            "covers seeds alone. '-' is a value that a run lacks, or "
                            "that is not finite at its end.");
    struct values values = values_of(r);
    add_means(page, r, &values);
    if (r->configuration_count > 1)
        add_tests(page, r, &values);
    release_values(&values);
}
