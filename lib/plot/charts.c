/* SPDX-License-Identifier: MIT */
#include "plot/charts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "experiment/grid.h"
#include "plot/gnuplot.h"

#define BAR_COLUMNS 40 /* width of a bar drawn as text */

static bool was_measured(const struct dt_results *r, const char *name)
{
    for (int cell = 0; cell < r->matrix.cell_count; cell++)
        if (dt_results_summary(r, cell, name).count > 0)
            return true;
    return false;
}

/* A logarithmic axis needs a value above 0; others are not drawn. */
static int need_above_zero(const struct dt_results *r, const char *name, struct dt_error *err)
{
    for (int cell = 0; cell < r->matrix.cell_count; cell++)
        if (dt_results_summary(r, cell, name).median > 0)
            return 0;
    return dt_fail(err, DT_EINVALID, "%s: no '%s' is above 0, as a logarithmic axis needs", r->path,
                   name);
}

/* Label of a value: "bf16", but "layers 2" for a number. Owned by the caller. */
static char *value_name(const struct dt_axis *axis, int place)
{
    double number;
    const char *value = axis->values[place];
    return dt_program_parse_real(value, &number) == 0 ? dt_asprintf("%s %s", axis->name, value)
                                                      : dt_strdup(value);
}

/* Label of a cell's values on all axes except one, "a, b 2". Owned by the caller. */
static char *name_without(const struct dt_matrix *m, int cell, int without)
{
    struct dt_buffer name = DT_BUFFER_EMPTY;
    dt_buffer_add_string(&name, "");
    for (int a = 0; a < m->axis_count; a++)
        if (a != without) {
            char *value = value_name(&m->axes[a], dt_matrix_value(m, cell, a));
            dt_buffer_printf(&name, "%s%s", name.size > 0 ? ", " : "", value);
            free(value);
        }
    return name.data;
}

/* --- bars ----------------------------------------------------------------------------------- */

struct bars {
    int groups, series; /* bars: groups times series */
    char **group_names, **series_names;
    double *median, *low, *high; /* [groups][series]; NAN if missing */
    bool stacked;
};

static struct bars new_bars(int groups, int series)
{
    size_t count = (size_t)groups * (size_t)series;
    struct bars b = {.groups = groups, .series = series};
    b.group_names = dt_alloc((size_t)groups, sizeof *b.group_names);
    b.series_names = dt_alloc((size_t)series, sizeof *b.series_names);
    b.median = dt_alloc(3 * count, sizeof *b.median);
    b.low = b.median + count;
    b.high = b.low + count;
    return b;
}

static void release_bars(struct bars *b)
{
    for (int g = 0; g < b->groups; g++)
        free(b->group_names[g]);
    for (int s = 0; s < b->series; s++)
        free(b->series_names[s]);
    free(b->group_names);
    free(b->series_names);
    free(b->median);
}

/* Quartiles; of two or three values, which have none, the extremes. */
static double low_of(const struct dt_summary *s)
{
    return s->count == 2 || s->count == 3 ? s->least : s->low;
}

static double high_of(const struct dt_summary *s)
{
    return s->count == 2 || s->count == 3 ? s->most : s->high;
}

static void set_bar(struct bars *b, int group, int series, struct dt_summary s)
{
    int i = group * b->series + series;
    b->median[i] = s.median;
    b->low[i] = low_of(&s);
    b->high[i] = high_of(&s);
}

/* A group per combination of the axes except the last, whose values are the series; with one axis,
 * a group per cell. */
static struct bars bars_of_one_value(const struct dt_results *r, const char *name)
{
    const struct dt_matrix *m = &r->matrix;
    int last = m->axis_count > 1 ? m->axis_count - 1 : -1;
    int series = last >= 0 ? m->axes[last].count : 1;
    struct bars b = new_bars(m->cell_count / series, series);
    for (int s = 0; s < series; s++)
        b.series_names[s] = last >= 0 ? value_name(&m->axes[last], s) : dt_strdup(name);
    for (int g = 0; g < b.groups; g++)
        b.group_names[g] = name_without(m, g * series, last);
    for (int cell = 0; cell < m->cell_count; cell++)
        set_bar(&b, cell / series, cell % series, dt_results_summary(r, cell, name));
    return b;
}

static struct bars bars_of_values(const struct dt_results *r, const char *const *names, int count)
{
    struct bars b = new_bars(r->matrix.cell_count, count);
    b.stacked = true;
    for (int s = 0; s < count; s++)
        b.series_names[s] = dt_strdup(names[s]);
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        b.group_names[cell] = name_without(&r->matrix, cell, -1);
        for (int s = 0; s < count; s++)
            set_bar(&b, cell, s, dt_results_summary(r, cell, names[s]));
    }
    return b;
}

static void add_number(struct dt_buffer *b, double x)
{
    if (isfinite(x))
        dt_buffer_printf(b, " %.9g", x);
    else
        dt_buffer_add_string(b, " NaN");
}

/* A line per group: its index, then median, low and high of each series. */
static void add_bar_data(struct dt_buffer *script, const struct bars *b)
{
    dt_buffer_add_string(script, "$bars << end_of_data\n");
    for (int g = 0; g < b->groups; g++) {
        dt_buffer_printf(script, "%d", g);
        for (int i = g * b->series; i < (g + 1) * b->series; i++) {
            add_number(script, b->median[i]);
            add_number(script, b->low[i]);
            add_number(script, b->high[i]);
        }
        dt_buffer_add_string(script, "\n");
    }
    dt_buffer_add_string(script, "end_of_data\n");
}

/* Where an axis begins: 0, or if a logarithmic axis the power of ten below the smallest. */
static double base_of(const struct dt_chart *chart, const struct bars *b)
{
    double least = INFINITY;
    for (int i = 0; i < b->groups * b->series; i++)
        if (b->low[i] > 0)
            least = fmin(least, b->low[i]);
    return chart->log_y && isfinite(least) ? pow(10, floor(log10(least))) : 0;
}

/* The length of a bar of x as a fraction of one of largest. */
static double length_of(double x, double base, double largest)
{
    if (!isfinite(x) || largest <= 0 || x <= base)
        return 0;
    return base > 0 ? log(x / base) / log(largest / base) : x / largest;
}

/* Bars as text, one per line, instead of gnuplot's text terminal. */
static void write_text_bars(const struct bars *b, const char *title, const char *label, double base,
                            struct dt_buffer *out)
{
    double largest = 0;
    for (int i = 0; i < b->groups * b->series; i++)
        largest = fmax(largest, isfinite(b->median[i]) ? b->median[i] : 0);
    dt_buffer_printf(out, "%s%s%s%s\n", title ? title : "", title ? ": " : "", label,
                     base > 0 ? ", log scale" : "");
    for (int i = 0; i < b->groups * b->series; i++) {
        char number[DT_SHORT_NUMBER];
        const char *group = b->group_names[i / b->series], *series = b->series_names[i % b->series];
        char *name = b->series == 1 ? dt_strdup(group)
                                    : dt_asprintf("%s%s%s", group, *group ? ", " : "", series);
        double part = length_of(b->median[i], base, largest);
        dt_figure_add_label(out, name, 30);
        dt_buffer_add_string(out, " |");
        int length = (int)lround(part * BAR_COLUMNS);
        for (int c = 1; c <= length; c++)
            dt_buffer_add_char(out, base == 0 ? '#' : c == length ? 'o' : ' ');
        dt_buffer_printf(out, " %s\n", dt_grid_number(b->median[i], number));
        free(name);
    }
}

static int draw_bars(const struct dt_chart *chart, const struct bars *b, const char *label,
                     const char *note, struct dt_buffer *out, struct dt_error *err)
{
    struct dt_buffer script = DT_BUFFER_EMPTY;
    double most = 0, base = base_of(chart, b);
    if (chart->format == DT_PLOT_TEXT) {
        write_text_bars(b, chart->title, label, base, out);
        return 0;
    }
    for (int i = 0; i < b->groups * b->series; i++)
        most = b->median[i] > most ? b->median[i] : most;
    dt_gnuplot_set_string(&script, "y_label", label);
    dt_gnuplot_set_string(&script, "note", note ? note : "");
    dt_buffer_printf(&script, "groups = %d\nseries = %d\nstacked = %d\nmost = %.9g\nbase = %.9g\n",
                     b->groups, b->series, b->stacked, most, base);
    dt_figure_set_ticks(&script, "group", (const char *const *)b->group_names, b->groups);
    dt_figure_set_array(&script, "name", (const char *const *)b->series_names, b->series);
    add_bar_data(&script, b);
    int rc = dt_figure_draw(&(struct dt_figure){chart->format, chart->title, "bars", 1}, &script,
                            out, err);
    dt_buffer_release(&script);
    return rc;
}

/* Whether a value of an axis of numbers is its lowest or its highest. */
static bool is_edge(const struct dt_axis *axis, int place)
{
    double value, other;
    bool lowest = true, highest = true;
    if (dt_program_parse_real(axis->values[place], &value) < 0)
        return false;
    for (int i = 0; i < axis->count; i++) {
        if (dt_program_parse_real(axis->values[i], &other) < 0)
            return false;
        lowest = lowest && value <= other;
        highest = highest && value >= other;
    }
    return lowest || highest;
}

/* The value of a numeric axis, of three values at least, at which a loss is lowest, if that is its
 * lowest or highest: a lower loss may be beyond. Owned by the caller; NULL: none. */
static char *note_of_edge(const struct dt_results *r, const char *name)
{
    const struct dt_matrix *m = &r->matrix;
    double lowest = INFINITY;
    int best = -1;
    for (int cell = 0; cell < m->cell_count; cell++) {
        double x = dt_results_summary(r, cell, name).median;
        if (x < lowest) {
            lowest = x;
            best = cell;
        }
    }
    for (int a = 0; a < m->axis_count && best >= 0 && strstr(name, "loss"); a++) {
        int place = dt_matrix_value(m, best, a);
        if (m->axes[a].count >= 3 && is_edge(&m->axes[a], place))
            return dt_asprintf("lowest at the edge of the range, %s %s: the best may be beyond",
                               m->axes[a].name, m->axes[a].values[place]);
    }
    return NULL;
}

/* How many bars leave out runs, which lack the value. Owned by the caller; NULL: none. */
static char *note_of_missing(const struct dt_results *r, const char *const *names, int count)
{
    int bars = 0, partial = 0;
    for (int cell = 0; cell < r->matrix.cell_count; cell++)
        for (int i = 0; i < count; i++) {
            size_t found = dt_results_summary(r, cell, names[i]).count;
            bars += found > 0;
            partial += found > 0 && found < dt_results_runs(r, cell);
        }
    return partial == 0
               ? NULL
               : dt_asprintf("%d of %d bars leave out runs that lack the value", partial, bars);
}

/* Of a stack, a value that no run has leaves the others, which look like a smaller sum. Owned by
 * the caller; NULL: none. */
static char *note_of_parts(const struct dt_results *r, const char *const *names, int count)
{
    int lacking = 0;
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        int parts = 0;
        for (int i = 0; i < count; i++)
            parts += dt_results_summary(r, cell, names[i]).count > 0;
        lacking += parts > 0 && parts < count;
    }
    return lacking == 0
               ? NULL
               : dt_asprintf("%d of %d stacks lack a value", lacking, r->matrix.cell_count);
}

static char *join_notes(char *first, char *second)
{
    if (first == NULL || second == NULL)
        return first ? first : second;
    char *both = dt_asprintf("%s; %s", first, second);
    free(first);
    free(second);
    return both;
}

/* What the bars do not show. Owned by the caller; NULL: nothing. */
static char *note_of(const struct dt_results *r, const char *const *names, int count)
{
    char *note = count > 1 ? note_of_parts(r, names, count) : note_of_edge(r, names[0]);
    return join_notes(note, note_of_missing(r, names, count));
}

int dt_plot_bars(const struct dt_chart *chart, const struct dt_results *r, struct dt_buffer *out,
                 struct dt_error *err)
{
    static const char *const usual[] = {"peak_bytes"};
    const char *const *names = chart->value_count > 0 ? chart->values : usual;
    int count = chart->value_count > 0 ? chart->value_count : 1;
    for (int i = 0; i < count; i++)
        if (!was_measured(r, names[i]))
            return dt_fail(err, DT_EMISSING, "%s: no run has a value '%s'", r->path, names[i]);
    struct bars b = count > 1 ? bars_of_values(r, names, count) : bars_of_one_value(r, names[0]);
    const bool text = chart->format == DT_PLOT_TEXT;
    char *note = note_of(r, names, count);
    char *words = count > 1 ? dt_strdup("") : dt_figure_label(names[0]);
    char *label =
        dt_asprintf("%s%s%s", words, text && note && *words ? "; " : "", text && note ? note : "");
    int rc = draw_bars(chart, &b, label, text ? NULL : note, out, err);
    free(words);
    free(label);
    free(note);
    release_bars(&b);
    return rc;
}

int dt_plot_named_bars(const struct dt_chart *chart, const char *label, const char *const *names,
                       const double *values, int count, struct dt_buffer *out, struct dt_error *err)
{
    struct bars b = new_bars(count, 1);
    b.series_names[0] = dt_strdup(label);
    for (int g = 0; g < count; g++) {
        b.group_names[g] = dt_strdup(names[g]);
        set_bar(&b, g, 0,
                (struct dt_summary){.median = values[g], .low = values[g], .high = values[g]});
    }
    int rc = draw_bars(chart, &b, label, NULL, out, err);
    release_bars(&b);
    return rc;
}

/* --- points --------------------------------------------------------------------------------- */

int dt_plot_points(const struct dt_chart *chart, const struct dt_results *r, struct dt_buffer *out,
                   struct dt_error *err)
{
    const struct dt_matrix *m = &r->matrix;
    struct dt_buffer script = DT_BUFFER_EMPTY;
    for (int i = 0; i < 2; i++)
        if (!was_measured(r, chart->values[i]))
            return dt_fail(err, DT_EMISSING, "%s: no run has a value '%s'", r->path,
                           chart->values[i]);
        else if (i == 0 ? chart->log_x : chart->log_y)
            DT_TRY(need_above_zero(r, chart->values[i], err));
    dt_figure_set_label(&script, "x_label", chart->values[0]);
    dt_figure_set_label(&script, "y_label", chart->values[1]);
    dt_buffer_printf(&script, "log_x = %d\nlog_y = %d\npoints = %d\n$points << end_of_data\n",
                     chart->log_x, chart->log_y, m->cell_count);
    char **names = dt_alloc((size_t)m->cell_count, sizeof *names);
    for (int cell = 0; cell < m->cell_count; cell++) {
        names[cell] = name_without(m, cell, -1);
        for (int i = 0; i < 2; i++) {
            struct dt_summary s = dt_results_summary(r, cell, chart->values[i]);
            add_number(&script, s.median);
            add_number(&script, low_of(&s));
            add_number(&script, high_of(&s));
        }
        dt_buffer_add_char(&script, '\n');
    }
    dt_buffer_add_string(&script, "end_of_data\n");
    dt_figure_set_array(&script, "name", (const char *const *)names, m->cell_count);
    int rc = dt_figure_draw(&(struct dt_figure){chart->format, chart->title, "points", 1}, &script,
                            out, err);
    for (int cell = 0; cell < m->cell_count; cell++)
        free(names[cell]);
    free(names);
    dt_buffer_release(&script);
    return rc;
}

/* --- scaling -------------------------------------------------------------------------------- */

struct scaling {
    const struct dt_results *r;
    int axis;
    double *x;  /* values of the axis */
    int *order; /* their places, from the lowest value to the highest */
    const char *value;
};

static void sort_values(struct scaling *s, int count)
{
    s->order = dt_alloc((size_t)count, sizeof *s->order);
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && s->x[s->order[at - 1]] > s->x[i]; at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
}

static int find_axis(struct scaling *s, const struct dt_chart *chart, struct dt_error *err)
{
    const struct dt_matrix *m = &s->r->matrix;
    if (m->axis_count == 0)
        return dt_fail(err, DT_EINVALID, "%s: does not have an axis", s->r->path);
    for (s->axis = 0; chart->axis && s->axis < m->axis_count; s->axis++)
        if (strcmp(m->axes[s->axis].name, chart->axis) == 0)
            break;
    if (s->axis == m->axis_count)
        return dt_fail(err, DT_EMISSING, "%s: does not have an axis '%s'", s->r->path, chart->axis);
    const struct dt_axis *axis = &m->axes[s->axis];
    s->x = dt_alloc((size_t)axis->count, sizeof *s->x);
    for (int i = 0; i < axis->count; i++)
        if (dt_program_parse_real(axis->values[i], &s->x[i]) < 0 || s->x[i] <= 0)
            return dt_fail(err, DT_EINVALID,
                           "%s: the value '%s' of axis %s must be a number above 0", s->r->path,
                           axis->values[i], axis->name);
    sort_values(s, axis->count);
    return 0;
}

/* The cell that differs from another only in its index on the axis. */
static int cell_at(const struct scaling *s, int cell, int place)
{
    const struct dt_matrix *m = &s->r->matrix;
    int stride = 1;
    for (int a = m->axis_count - 1; a > s->axis; a--)
        stride *= m->axes[a].count;
    return cell + (place - dt_matrix_value(m, cell, s->axis)) * stride;
}

/* One line per point: x, median, low, high, fraction of linear scaling, mfu. */
static void add_line(struct dt_buffer *script, const struct scaling *s, int first)
{
    double unit = NAN;
    for (int k = 0; k < s->r->matrix.axes[s->axis].count; k++) {
        int i = s->order[k], cell = cell_at(s, first, i);
        struct dt_summary v = dt_results_summary(s->r, cell, s->value),
                          mfu = dt_results_summary(s->r, cell, "mfu");
        if (isnan(unit) && v.count > 0)
            unit = v.median / s->x[i];
        dt_buffer_printf(script, "%.9g", s->x[i]);
        add_number(script, v.median);
        add_number(script, low_of(&v));
        add_number(script, high_of(&v));
        add_number(script, 100 * v.median / (unit * s->x[i]));
        add_number(script, 100 * mfu.median);
        add_number(script, unit * s->x[i]);
        dt_buffer_add_string(script, "\n");
    }
    dt_buffer_add_string(script, "\n\n");
}

static int draw_scaling(const struct dt_chart *chart, const struct scaling *s,
                        struct dt_buffer *out, struct dt_error *err)
{
    const struct dt_matrix *m = &s->r->matrix;
    struct dt_buffer script = DT_BUFFER_EMPTY;
    char **names = dt_alloc((size_t)m->cell_count, sizeof *names);
    int lines = 0, panels = was_measured(s->r, "mfu") ? 3 : 2;
    dt_buffer_add_string(&script, "$lines << end_of_data\n");
    for (int cell = 0; cell < m->cell_count; cell++)
        if (dt_matrix_value(m, cell, s->axis) == 0) {
            names[lines++] = name_without(m, cell, s->axis);
            add_line(&script, s, cell);
        }
    dt_buffer_printf(&script, "end_of_data\nlines = %d\n", lines);
    dt_figure_set_array(&script, "name", (const char *const *)names, lines);
    dt_gnuplot_set_string(&script, "x_label", m->axes[s->axis].name);
    dt_figure_set_label(&script, "y_label", s->value);
    int rc = dt_figure_draw(&(struct dt_figure){chart->format, chart->title, "scaling",
                                                chart->format == DT_PLOT_TEXT ? 1 : panels},
                            &script, out, err);
    for (int i = 0; i < lines; i++)
        free(names[i]);
    free(names);
    dt_buffer_release(&script);
    return rc;
}

int dt_plot_scaling(const struct dt_chart *chart, const struct dt_results *r, struct dt_buffer *out,
                    struct dt_error *err)
{
    struct scaling s = {.r = r,
                        .value = chart->value_count > 0 ? chart->values[0] : "tokens_per_second"};
    int rc = find_axis(&s, chart, err);
    if (rc == 0 && !was_measured(r, s.value))
        rc = dt_fail(err, DT_EMISSING, "%s: no run has a value '%s'", r->path, s.value);
    rc = rc < 0 ? rc : need_above_zero(r, s.value, err);
    if (rc == 0)
        rc = draw_scaling(chart, &s, out, err);
    free(s.x);
    free(s.order);
    return rc;
}

/* --- roofline ------------------------------------------------------------------------------- */

static double largest(const struct dt_results *r, const char *name)
{
    double most = 0;
    for (int cell = 0; cell < r->matrix.cell_count; cell++) {
        double x = dt_results_summary(r, cell, name).median;
        most = x > most ? x : most;
    }
    return most;
}

int dt_plot_roofline(const struct dt_chart *chart, const struct dt_results *r,
                     struct dt_buffer *out, struct dt_error *err)
{
    const struct dt_matrix *m = &r->matrix;
    double peak = chart->peak > 0 ? chart->peak : largest(r, "gemm_gflops");
    double bandwidth = chart->bandwidth > 0 ? chart->bandwidth : largest(r, "memory_gb_per_second");
    if (!was_measured(r, "gflops") || !was_measured(r, "flops_per_byte"))
        return dt_fail(err, DT_EMISSING,
                       "%s: a roofline needs the values gflops and flops_per_byte", r->path);
    if (peak == 0 || bandwidth == 0)
        return dt_fail(err, DT_EMISSING, "%s: the roofline is unknown: give --peak and --bandwidth",
                       r->path);
    struct dt_buffer script = DT_BUFFER_EMPTY;
    char **names = dt_alloc((size_t)m->cell_count, sizeof *names);
    dt_buffer_printf(&script,
                     "peak = %.9g\nbandwidth = %.9g\npoints = %d\n$points << end_of_data\n", peak,
                     bandwidth, m->cell_count);
    for (int cell = 0; cell < m->cell_count; cell++) {
        names[cell] = name_without(m, cell, -1);
        dt_buffer_printf(&script, "%d", cell + 1);
        add_number(&script, dt_results_summary(r, cell, "flops_per_byte").median);
        add_number(&script, dt_results_summary(r, cell, "gflops").median);
        dt_buffer_add_string(&script, "\n");
    }
    dt_buffer_add_string(&script, "end_of_data\n");
    dt_figure_set_array(&script, "name", (const char *const *)names, m->cell_count);
    int rc = dt_figure_draw(&(struct dt_figure){chart->format, chart->title, "roofline", 1},
                            &script, out, err);
    for (int cell = 0; cell < m->cell_count; cell++)
        free(names[cell]);
    free(names);
    dt_buffer_release(&script);
    return rc;
}
