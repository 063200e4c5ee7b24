/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/grid.h"
#include "experiment/reference.h"
#include "experiment/statistics.h"
#include "experiment/table.h"
#include "json/json-number.h"

struct comparison {
    int cell; /* index in the second results */
    const char *name;
    double before, after; /* medians */
    double ratio, superiority, p;
    size_t before_runs, after_runs; /* that have the value */
    size_t before_all, after_all;
    bool changed;
};

struct comparisons {
    double before_reference, after_reference; /* NAN: times are not corrected */
    struct comparison *items;
    size_t count, capacity;
};

/* The values of all rounds. Times and rates are scaled to a processor that runs the reference loop
 * in the given seconds, unless that is NAN. */
static size_t collect(const struct dt_results *r, int cell, const char *name, double reference,
                      double **values)
{
    int power = isnan(reference) ? 0 : dt_reference_power(name);
    *values = dt_alloc((size_t)r->matrix.repeats, sizeof **values);
    dt_results_values(r, cell, name, *values);
    size_t used = 0;
    for (long i = 0; i < r->matrix.repeats; i++) {
        const struct dt_row *row = dt_results_row(r, cell, i + 1);
        if (!isnan((*values)[i]))
            (*values)[used++] =
                power == 0 ? (*values)[i] : (*values)[i] * pow(reference / row->reference, power);
    }
    return used;
}

/* Median time of the reference loop over all rows; NAN if a row lacks it. */
static double reference_of(const struct dt_results *r)
{
    double *seconds = dt_alloc((size_t)r->count + 1, sizeof *seconds), median = NAN;
    size_t used = 0;
    for (int i = 0; i < r->count; i++)
        if (r->rows[i].reference > 0)
            seconds[used++] = r->rows[i].reference;
    if (used == (size_t)r->count)
        median = dt_summary_of(seconds, used).median;
    free(seconds);
    return median;
}

static void add(struct comparisons *all, const struct dt_results *before, int before_cell,
                const struct dt_results *after, int after_cell, const char *name)
{
    double *a, *b;
    size_t n = collect(before, before_cell, name, all->before_reference, &a);
    size_t m = collect(after, after_cell, name, all->before_reference, &b);
    if (n > 0 && m > 0) {
        struct comparison c = {.cell = after_cell,
                               .name = name,
                               .before_runs = n,
                               .after_runs = m,
                               .before_all = dt_results_runs(before, before_cell),
                               .after_all = dt_results_runs(after, after_cell)};
        c.ratio = dt_statistics_shift_ratio(a, n, b, m);
        c.superiority = dt_statistics_superiority(a, n, b, m);
        c.p = dt_statistics_rank_sum_test(a, n, b, m);
        c.before = dt_summary_of(a, n).median;
        c.after = dt_summary_of(b, m).median;
        DT_GROW(all->items, all->count, all->capacity);
        all->items[all->count++] = c;
    }
    free(a);
    free(b);
}

static int compare_cells(struct comparisons *all, const struct dt_results *before,
                         const struct dt_results *after, struct json_object *names,
                         struct dt_error *err)
{
    for (int cell = 0; cell < after->matrix.cell_count; cell++) {
        struct json_object *object = dt_matrix_cell(&after->matrix, cell);
        int other = dt_matrix_find(&before->matrix, object);
        json_object_put(object);
        for (size_t i = 0; other >= 0 && i < json_object_array_length(names); i++)
            add(all, before, other, after, cell, dt_json_text(json_object_array_get_idx(names, i)));
    }
    return all->count > 0 ? 0
                          : dt_fail(err, DT_EINVALID, "'%s' and '%s' do not share a measured cell",
                                    before->path, after->path);
}

/* Without a ratio (values not above 0), any difference beyond chance counts. */
static int judge(struct comparisons *all, double least)
{
    double *p = dt_alloc(all->count, sizeof *p);
    int changed = 0;
    for (size_t i = 0; i < all->count; i++)
        p[i] = all->items[i].p;
    dt_statistics_adjust_holm(p, all->count);
    for (size_t i = 0; i < all->count; i++) {
        struct comparison *c = &all->items[i];
        double size = isnan(c->ratio) ? INFINITY : fabs(c->ratio - 1);
        c->p = p[i];
        c->changed = c->p < DT_CHANCE && size >= least;
        changed += c->changed;
    }
    free(p);
    return changed;
}

/* Whether the groups are too small for any significant difference. */
static bool too_few(const struct comparison *c, size_t tests)
{
    double ways = 1;
    for (size_t i = 1; i <= c->after_runs; i++)
        ways *= (double)(c->before_runs + i) / (double)i;
    return 2 / ways * (double)tests >= DT_CHANCE;
}

static void print_grid(const struct comparisons *all, const struct dt_results *after,
                       enum dt_grid_format format, struct dt_buffer *out)
{
    static const char *const columns[] = {"value", "before", "after", "ratio", "p", "verdict"};
    struct dt_grid g = {.columns = after->matrix.axis_count + 6};
    char text[DT_SHORT_NUMBER];
    for (int a = 0; a < after->matrix.axis_count; a++)
        dt_grid_add(&g, after->matrix.axes[a].name);
    for (int i = 0; i < 6; i++)
        dt_grid_add(&g, columns[i]);
    for (size_t i = 0; i < all->count; i++) {
        const struct comparison *c = &all->items[i];
        for (int a = 0; a < after->matrix.axis_count; a++)
            dt_grid_add(&g, dt_matrix_text(&after->matrix, c->cell, a));
        dt_grid_add(&g, c->name);
        dt_grid_add(&g, dt_grid_number(c->before, text));
        dt_grid_add(&g, dt_grid_number(c->after, text));
        if (isnan(c->ratio))
            dt_grid_add(&g, "-");
        else
            dt_grid_printf(&g, "%.4f", c->ratio);
        dt_grid_printf(&g, "%.2g", c->p);
        if (c->changed && !isnan(c->ratio))
            dt_grid_printf(&g, "%+.1f%%", 100 * (c->ratio - 1));
        else
            dt_grid_add(&g, c->changed               ? "changed"
                            : too_few(c, all->count) ? "too few runs to tell"
                                                     : "no change");
    }
    dt_grid_print(&g, format, out);
    dt_grid_release(&g);
}

/* Values that only some runs have, as a target that not all reach. */
static void print_missing(const struct comparisons *all, const struct dt_results *after,
                          struct dt_buffer *out)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct comparison *c = &all->items[i];
        struct dt_buffer cell = DT_BUFFER_EMPTY;
        dt_matrix_name(&after->matrix, c->cell, &cell);
        if (c->before_runs < c->before_all || c->after_runs < c->after_all)
            dt_buffer_printf(out,
                             "%s%s%s is of %zu of %zu and %zu of %zu runs: the others lack it\n",
                             cell.size > 0 ? cell.data : "", cell.size > 0 ? ": " : "", c->name,
                             c->before_runs, c->before_all, c->after_runs, c->after_all);
        dt_buffer_release(&cell);
    }
}

static struct json_object *comparison_json(const struct comparison *c,
                                           const struct dt_results *after)
{
    struct json_object *object = dt_json_new_object();
    dt_json_object_add(object, "cell", dt_matrix_cell(&after->matrix, c->cell));
    dt_json_object_add(object, "value", dt_json_new_string(c->name));
    dt_json_object_add(object, "before", dt_json_number(c->before));
    dt_json_object_add(object, "after", dt_json_number(c->after));
    if (!isnan(c->ratio))
        dt_json_object_add(object, "ratio", dt_json_number(c->ratio));
    dt_json_object_add(object, "superiority", dt_json_number(c->superiority));
    dt_json_object_add(object, "p", dt_json_number(c->p));
    dt_json_object_add(object, "changed", dt_json_new_boolean(c->changed));
    dt_json_object_add(object, "before_count", dt_json_new_int((int64_t)c->before_runs));
    dt_json_object_add(object, "after_count", dt_json_new_int((int64_t)c->after_runs));
    return object;
}

static void print_json(const struct comparisons *all, const struct dt_results *after, int changed,
                       struct dt_buffer *out)
{
    struct json_object *top = dt_json_new_object(), *items = dt_json_new_array();
    for (size_t i = 0; i < all->count; i++)
        dt_json_array_add(items, comparison_json(&all->items[i], after));
    dt_json_object_add(top, "changed", dt_json_new_int(changed));
    dt_json_object_add(top, "comparisons", items);
    dt_json_add_value(out, top, DT_JSON_INDENTED);
    dt_buffer_add_char(out, '\n');
    json_object_put(top);
}

/* Facts of the last machine of each that differ. */
static void print_differences(const struct dt_results *before, const struct dt_results *after,
                              struct dt_buffer *out)
{
    static const char *const facts[] = {"host", "cpu", "processors", "memory_bytes", "kernel"};
    size_t n = json_object_array_length(before->machines);
    size_t m = json_object_array_length(after->machines);
    struct json_object *x, *y;
    if (n == 0 || m == 0)
        return;
    struct json_object *a = json_object_array_get_idx(before->machines, n - 1);
    struct json_object *b = json_object_array_get_idx(after->machines, m - 1);
    for (int i = 0; i < 5; i++)
        if (json_object_object_get_ex(a, facts[i], &x) &&
            json_object_object_get_ex(b, facts[i], &y) && !json_object_equal(x, y))
            dt_buffer_printf(out, "the machines differ: %s %s and %s\n", facts[i], dt_json_text(x),
                             dt_json_text(y));
    if (json_object_object_get_ex(a, "program_hash", &x) &&
        json_object_object_get_ex(b, "program_hash", &y) && json_object_equal(x, y))
        dt_buffer_add_string(out, "both ran the same program file\n");
}

int dt_results_compare(const struct dt_results *before, const struct dt_results *after,
                       const struct dt_table_options *options, struct dt_buffer *out,
                       struct dt_error *err)
{
    struct json_object *names;
    struct comparisons all = {reference_of(before), reference_of(after), NULL, 0, 0};
    if (isnan(all.after_reference))
        all.before_reference = NAN;
    DT_TRY(dt_results_choose_names(after, options, &names, err));
    int rc = compare_cells(&all, before, after, names, err);
    if (rc == 0) {
        int changed = judge(&all, options->least);
        if (options->format == DT_TABLE_JSON)
            print_json(&all, after, changed, out);
        else
            print_grid(&all, after, (enum dt_grid_format)options->format, out);
        if (options->format == DT_TABLE_TEXT || options->format == DT_TABLE_MARKDOWN) {
            dt_buffer_add_string(out, options->format == DT_TABLE_MARKDOWN ? "\n" : "");
            print_missing(&all, after, out);
            print_differences(before, after, out);
            if (!isnan(all.before_reference))
                dt_buffer_printf(out,
                                 "the reference loop took %.4f of its earlier time; times and "
                                 "rates are corrected for that\n",
                                 all.after_reference / all.before_reference);
            dt_buffer_printf(out, "%d of %zu values changed beyond noise\n", changed, all.count);
        }
    }
    free(all.items);
    json_object_put(names);
    return rc;
}
