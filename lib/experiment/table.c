/* SPDX-License-Identifier: MIT */
#include "experiment/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/grid.h"
#include "json/json-number.h"

#define MOST_CHOSEN 6

/* Statistics of one value in one cell. */
struct entry {
    struct dt_summary value, ratio;
    double p;      /* of the pairs with the baseline; NAN without pairs */
    double needed; /* pairs that would decide (dt_statistics_needed) */
};

/* Default columns. */
static struct json_object *choose(struct json_object *all)
{
    static const char *const usual[] = {"wall_s", "cpu_s", "peak_bytes"};
    struct json_object *chosen = dt_json_new_array();
    size_t others = 0;
    for (size_t i = 0; i < json_object_array_length(all); i++) {
        const char *name = dt_json_text(json_object_array_get_idx(all, i));
        if (strcmp(name, "user_s") == 0 || strcmp(name, "system_s") == 0)
            continue;
        dt_json_array_add(chosen, dt_json_new_string(name));
        others++;
    }
    if (others <= MOST_CHOSEN)
        return chosen;
    json_object_put(chosen);
    chosen = dt_json_new_array();
    for (int i = 0; i < 3; i++)
        if (dt_results_has_name(all, usual[i]))
            dt_json_array_add(chosen, dt_json_new_string(usual[i]));
    return chosen;
}

int dt_results_choose_names(const struct dt_results *results,
                            const struct dt_table_options *options, struct json_object **names,
                            struct dt_error *err)
{
    struct json_object *all = dt_results_names(results), *wanted;
    if (options->count > 0) {
        *names = dt_json_new_array();
        for (int i = 0; i < options->count; i++)
            dt_json_array_add(*names, dt_json_new_string(options->names[i]));
    } else if (json_object_object_get_ex(results->matrix.design, "values", &wanted)) {
        *names = json_object_get(wanted);
    } else {
        *names = choose(all);
    }
    int rc = dt_results_check_names(*names, all, results->path, err);
    json_object_put(all);
    if (rc < 0)
        json_object_put(*names);
    return rc;
}

static struct entry look_up(const struct dt_results *r, int cell, const char *name)
{
    long rounds = r->matrix.repeats;
    double *own = dt_alloc(4 * (size_t)rounds, sizeof *own), *base = own + rounds;
    double *a = base + rounds, *b = a + rounds;
    int baseline = dt_matrix_baseline(&r->matrix, cell);
    struct entry e = {.p = NAN};
    size_t pairs = 0;
    dt_results_values(r, cell, name, own);
    if (baseline >= 0)
        dt_results_values(r, baseline, name, base);
    for (long i = 0; baseline >= 0 && i < rounds; i++)
        if (!isnan(own[i]) && !isnan(base[i]) && base[i] != 0) {
            a[pairs] = base[i];
            b[pairs++] = own[i];
        }
    if (baseline >= 0 && pairs > 0)
        e.p = dt_statistics_signed_rank_test(a, b, pairs);
    for (size_t i = 0; i < pairs; i++)
        a[i] = b[i] / a[i];
    for (size_t i = 0; i < pairs; i++)
        b[i] = a[i] - 1;
    e.needed = dt_statistics_needed(b, pairs, DT_CHANCE);
    e.ratio = dt_summary_of(a, pairs);
    e.value = dt_results_summary(r, cell, name);
    free(own);
    return e;
}

static const char *complaint_of(const struct dt_results *r, int cell)
{
    for (long round = r->matrix.repeats; round > 0; round--) {
        const struct dt_row *row = dt_results_row(r, cell, round);
        if (row && row->status != 0)
            return row->error && *row->error ? row->error : "failed";
    }
    return NULL;
}

/* --- text and Markdown ---------------------------------------------------------------------- */

static void add_heading(struct dt_grid *g, const struct dt_results *r, struct json_object *names)
{
    for (int a = 0; a < r->matrix.axis_count; a++)
        dt_grid_add(g, r->matrix.axes[a].name);
    dt_grid_add(g, "runs");
    for (size_t i = 0; i < json_object_array_length(names); i++) {
        dt_grid_add(g, dt_json_text(json_object_array_get_idx(names, i)));
        dt_grid_add(g, "spread");
        if (r->matrix.has_baseline)
            dt_grid_add(g, "ratio");
    }
}

/* Mark of a ratio: "~" if it is not significant, "?" if the rounds are too few for any significant
 * difference. */
static const char *mark(const struct entry *e)
{
    if (e->p < DT_CHANCE || (e->ratio.least == 1 && e->ratio.most == 1))
        return "";
    return dt_statistics_signed_rank_least(e->ratio.count) < DT_CHANCE ? "~" : "?";
}

static void add_entry(struct dt_grid *g, const struct dt_results *r, const struct entry *e)
{
    char text[DT_SHORT_NUMBER];
    dt_grid_add(g, dt_grid_number(e->value.median, text));
    if (e->value.count > 1)
        dt_grid_printf(g, "%.1f%%", 100 * dt_summary_spread(&e->value));
    else
        dt_grid_add(g, "-");
    if (!r->matrix.has_baseline)
        return;
    if (e->ratio.count == 0)
        dt_grid_add(g, "-");
    else
        dt_grid_printf(g, "%.3f%s", e->ratio.median, mark(e));
}

static void add_rows(struct dt_grid *g, const struct dt_results *r, struct json_object *names)
{
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        for (int a = 0; a < r->matrix.axis_count; a++)
            dt_grid_add(g, dt_matrix_text(&r->matrix, cell, a));
        dt_grid_printf(g, "%zu", dt_results_runs(r, cell));
        for (size_t i = 0; i < json_object_array_length(names); i++) {
            const char *name = dt_json_text(json_object_array_get_idx(names, i));
            struct entry e = look_up(r, cell, name);
            add_entry(g, r, &e);
        }
    }
}

static void add_failures(struct dt_buffer *out, const struct dt_results *r, bool markdown)
{
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        struct dt_buffer name = DT_BUFFER_EMPTY;
        const char *complaint = complaint_of(r, cell);
        dt_matrix_name(&r->matrix, cell, &name);
        if (complaint)
            dt_buffer_printf(out, "%sfailed: %s: %s\n", markdown ? "\n" : "",
                             name.data ? name.data : "the command", complaint);
        dt_buffer_release(&name);
    }
}

/* Of each cell the values that only some of its runs have, as a target that not all reach. */
static void add_missing(struct dt_buffer *out, const struct dt_results *r,
                        struct json_object *names, bool markdown)
{
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        struct dt_buffer line = DT_BUFFER_EMPTY;
        const size_t runs = dt_results_runs(r, cell);
        dt_matrix_name(&r->matrix, cell, &line);
        for (size_t i = 0; i < json_object_array_length(names); i++) {
            const char *name = dt_json_text(json_object_array_get_idx(names, i));
            const size_t count = dt_results_summary(r, cell, name).count;
            if (count > 0 && count < runs)
                dt_buffer_printf(out, "%s%s%s%s is of %zu of %zu runs: the others lack it\n",
                                 markdown ? "\n" : "", line.data ? line.data : "",
                                 line.size > 0 ? ": " : "", name, count, runs);
        }
        dt_buffer_release(&line);
    }
}

static const char *fact(struct json_object *machine, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(machine, name, &value) && value ? dt_json_text(value) : "?";
}

static void add_machine(struct dt_buffer *out, const struct dt_results *r, bool markdown)
{
    size_t count = json_object_array_length(r->machines);
    struct json_object *machine = json_object_array_get_idx(r->machines, count - 1);
    if (count == 0)
        return;
    dt_buffer_printf(out, "%son %s, %s processors, %.1f GiB;\nmedians of %ld round%s",
                     markdown ? "\n" : "", fact(machine, "cpu"), fact(machine, "processors"),
                     strtod(fact(machine, "memory_bytes"), NULL) / (1 << 30), r->matrix.repeats,
                     dt_plural((uint64_t)r->matrix.repeats));
    if (!r->matrix.has_baseline)
        dt_buffer_add_string(out, "\n");
    else if (dt_statistics_signed_rank_least((size_t)r->matrix.repeats) < DT_CHANCE)
        dt_buffer_add_string(out, "; ratios of pairs, ~: within chance\n");
    else
        dt_buffer_printf(out,
                         "; ratios of pairs, ?: too few rounds to tell from chance (%zu needed)\n",
                         dt_statistics_least_pairs(DT_CHANCE));
    for (size_t i = 0; i + 1 < count; i++) {
        struct json_object *other = json_object_array_get_idx(r->machines, i);
        if (strcmp(fact(machine, "host"), fact(other, "host")) != 0 ||
            strcmp(fact(machine, "program_hash"), fact(other, "program_hash")) != 0) {
            dt_buffer_add_string(out, "some rounds ran on another machine or build\n");
            break;
        }
    }
}

/* Of each cell the values whose ratio is not decided, with the rounds that would do. */
static void add_needed(struct dt_buffer *out, const struct dt_results *r, struct json_object *names,
                       bool markdown)
{
    bool begun = false;
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        struct dt_buffer line = DT_BUFFER_EMPTY;
        dt_matrix_name(&r->matrix, cell, &line);
        size_t size = line.size;
        for (size_t i = 0; i < json_object_array_length(names); i++) {
            const char *name = dt_json_text(json_object_array_get_idx(names, i));
            struct entry e = look_up(r, cell, name);
            char text[DT_SHORT_NUMBER];
            if (e.ratio.count > 0 && *mark(&e) && e.needed > 0)
                dt_buffer_printf(&line, "%s %s %s", line.size > size ? "," : ":", name,
                                 dt_grid_number(e.needed, text));
        }
        if (line.size > size) {
            if (!begun)
                dt_buffer_printf(out,
                                 "%srounds that would decide, in 80%% of cases, if ratios and "
                                 "spread stay as they are:\n%s",
                                 markdown ? "\n" : "", markdown ? "\n" : "");
            dt_buffer_printf(out, "%s%s\n", markdown ? "- " : "", line.data);
            begun = true;
        }
        dt_buffer_release(&line);
    }
}

static void print_for_people(const struct dt_results *r, struct json_object *names,
                             enum dt_table_format format, struct dt_buffer *out)
{
    int each = r->matrix.has_baseline ? 3 : 2, leading = r->matrix.axis_count + 1;
    struct dt_grid g = {.columns = leading + each * (int)json_object_array_length(names),
                        .together = each,
                        .leading = leading};
    bool markdown = format == DT_TABLE_MARKDOWN;
    add_heading(&g, r, names);
    add_rows(&g, r, names);
    dt_grid_print(&g, markdown ? DT_GRID_MARKDOWN : DT_GRID_TEXT, out);
    add_failures(out, r, markdown);
    add_missing(out, r, names, markdown);
    add_machine(out, r, markdown);
    if (r->matrix.has_baseline)
        add_needed(out, r, names, markdown);
    dt_grid_release(&g);
}

/* --- TSV and JSON --------------------------------------------------------------------------- */

static void add_real(struct dt_grid *g, double x)
{
    if (isnan(x))
        dt_grid_add(g, "");
    else
        dt_grid_printf(g, "%.9g", x);
}

static void print_tsv(const struct dt_results *r, struct json_object *names, struct dt_buffer *out)
{
    static const char *const columns[] = {"value",     "runs",       "median", "low",
                                          "high",      "least",      "most",   "ratio",
                                          "ratio_low", "ratio_high", "p"};
    const int count = sizeof columns / sizeof *columns;
    struct dt_grid g = {.columns = r->matrix.axis_count + count};
    for (int a = 0; a < r->matrix.axis_count; a++)
        dt_grid_add(&g, r->matrix.axes[a].name);
    for (int c = 0; c < count; c++)
        dt_grid_add(&g, columns[c]);
    for (int cell = 0; cell < r->matrix.cell_count; cell++)
        for (size_t i = 0; i < json_object_array_length(names); i++) {
            const char *name = dt_json_text(json_object_array_get_idx(names, i));
            struct entry e = look_up(r, cell, name);
            const double numbers[] = {e.value.median, e.value.low,  e.value.high,
                                      e.value.least,  e.value.most, e.ratio.median,
                                      e.ratio.low,    e.ratio.high, e.p};
            for (int a = 0; a < r->matrix.axis_count; a++)
                dt_grid_add(&g, dt_matrix_text(&r->matrix, cell, a));
            dt_grid_add(&g, name);
            dt_grid_printf(&g, "%zu", e.value.count);
            for (int c = 0; c < count - 2; c++)
                add_real(&g, numbers[c]);
        }
    dt_grid_print(&g, DT_GRID_TSV, out);
    dt_grid_release(&g);
}

static void add_member(struct json_object *object, const char *name, double x)
{
    if (isfinite(x))
        dt_json_object_add(object, name, dt_json_number(x));
}

static struct json_object *summary_json(const struct dt_summary *s)
{
    struct json_object *object = dt_json_new_object();
    dt_json_object_add(object, "count", dt_json_new_int((int64_t)s->count));
    add_member(object, "median", s->median);
    add_member(object, "low", s->low);
    add_member(object, "high", s->high);
    add_member(object, "least", s->least);
    add_member(object, "most", s->most);
    return object;
}

static struct json_object *cell_json(const struct dt_results *r, int cell,
                                     struct json_object *names)
{
    struct json_object *object = dt_json_new_object(), *values = dt_json_new_object();
    const char *complaint = complaint_of(r, cell);
    dt_json_object_add(object, "cell", dt_matrix_cell(&r->matrix, cell));
    if (complaint)
        dt_json_object_add(object, "error", dt_json_new_string(complaint));
    for (size_t i = 0; i < json_object_array_length(names); i++) {
        const char *name = dt_json_text(json_object_array_get_idx(names, i));
        struct entry e = look_up(r, cell, name);
        if (e.value.count == 0)
            continue;
        struct json_object *value = summary_json(&e.value);
        if (e.ratio.count > 0) {
            struct json_object *ratio = summary_json(&e.ratio);
            add_member(ratio, "p", e.p);
            dt_json_object_add(value, "ratio", ratio);
        }
        dt_json_object_add(values, name, value);
    }
    dt_json_object_add(object, "values", values);
    return object;
}

static void print_json(const struct dt_results *r, struct json_object *names, struct dt_buffer *out)
{
    struct json_object *top = dt_json_new_object(), *cells = dt_json_new_array();
    for (int cell = 0; cell < r->matrix.cell_count; cell++)
        dt_json_array_add(cells, cell_json(r, cell, names));
    dt_json_object_add(top, "design", json_object_get(r->matrix.design));
    dt_json_object_add(top, "machines", json_object_get(r->machines));
    dt_json_object_add(top, "cells", cells);
    dt_json_add_value(out, top, DT_JSON_INDENTED);
    dt_buffer_add_char(out, '\n');
    json_object_put(top);
}

int dt_results_table(const struct dt_results *results, const struct dt_table_options *options,
                     struct dt_buffer *out, struct dt_error *err)
{
    struct json_object *names;
    if (options->format == DT_TABLE_JSON && options->count == 0)
        names = dt_results_names(results);
    else
        DT_TRY(dt_results_choose_names(results, options, &names, err));
    if (options->format == DT_TABLE_JSON)
        print_json(results, names, out);
    else if (options->format == DT_TABLE_TSV)
        print_tsv(results, names, out);
    else
        print_for_people(results, names, options->format, out);
    json_object_put(names);
    return 0;
}
