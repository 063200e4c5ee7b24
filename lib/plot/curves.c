/* SPDX-License-Identifier: MIT */
#include "plot/curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/statistics.h"
#include "plot/gnuplot.h"

enum { MOST_POINTS = 2000 };

/* The x axis, in a unit that keeps its labels short. */
struct axis {
    enum dt_plot_x x;
    double unit;
    const char *label;
};

static double position(const struct axis *axis, const struct dt_metric *point)
{
    double value = axis->x == DT_PLOT_STEP     ? point->step
                   : axis->x == DT_PLOT_TOKENS ? point->tokens
                                               : point->time;
    return value / axis->unit;
}

/* Whether logarithmic axes can show it. */
static bool is_shown(const struct dt_plot *plot, const struct dt_metric *m)
{
    const struct axis axis = {plot->x, 1, NULL};
    return !(plot->log_x && position(&axis, m) <= 0) && !(plot->log_y && m->loss <= 0);
}

static size_t drop_below_zero(struct dt_curve *curve, const struct dt_plot *plot)
{
    size_t kept = 0, count = curve->count;
    for (size_t i = 0; i < count; i++)
        if (is_shown(plot, &curve->items[i]))
            curve->items[kept++] = curve->items[i];
    curve->count = kept;
    return count - kept;
}

size_t dt_plot_drop_below_zero(const struct dt_plot *plot, struct dt_run_metrics *runs, int count)
{
    size_t dropped = 0;
    for (int r = 0; r < count; r++)
        dropped += drop_below_zero(&runs[r].train, plot) + drop_below_zero(&runs[r].valid, plot);
    return dropped;
}

static int largest_position(const struct axis *axis, const struct dt_run_metrics *run,
                            double *largest, struct dt_error *err)
{
    const struct dt_curve *const curves[] = {&run->train, &run->valid};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < curves[k]->count; i++) {
            double value = position(axis, &curves[k]->items[i]);
            if (!isfinite(value))
                return dt_fail(err, DT_EMISSING, "run '%s' lacks '%s' at step %.0f", run->name,
                               axis->label, curves[k]->items[i].step);
            *largest = fmax(*largest, value);
        }
    return 0;
}

static void choose_unit(struct axis *axis, double largest)
{
    static const struct {
        enum dt_plot_x x;
        double from, unit;
        const char *label;
    } units[] = {
        {DT_PLOT_TIME, 2 * 3600, 3600, "time (hours)"},
        {DT_PLOT_TIME, 2 * 60, 60, "time (minutes)"},
        {DT_PLOT_TIME, 0, 1, "time (seconds)"},
        {DT_PLOT_TOKENS, 2e9, 1e9, "tokens (billions)"},
        {DT_PLOT_TOKENS, 2e6, 1e6, "tokens (millions)"},
        {DT_PLOT_TOKENS, 0, 1, "tokens"},
        {DT_PLOT_STEP, 0, 1, "step"},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].x == axis->x && largest >= units[i].from) {
            axis->unit = units[i].unit;
            axis->label = units[i].label;
            return;
        }
}

static int choose_axis(struct axis *axis, enum dt_plot_x x, const struct dt_run_metrics *runs,
                       int count, struct dt_error *err)
{
    static const char *const members[] = {"step", "tokens", "time"};
    double largest = 0;
    *axis = (struct axis){x, 1, members[x]};
    for (int r = 0; r < count; r++)
        DT_TRY(largest_position(axis, &runs[r], &largest, err));
    choose_unit(axis, largest);
    return 0;
}

/* A data set of a gnuplot data block, ended by two empty lines. An empty one gets a NaN point, so
 * that the indices of the others are kept. */
static void add_curve(struct dt_buffer *script, const struct axis *axis,
                      const struct dt_curve *curve)
{
    if (curve->count == 0)
        dt_buffer_add_string(script, "NaN NaN\n");
    for (size_t i = 0; i < curve->count; i++)
        dt_buffer_printf(script, "%.9g %.9g\n", position(axis, &curve->items[i]),
                         curve->items[i].loss);
    dt_buffer_add_string(script, "\n\n");
}

static struct dt_metric thinned(const struct dt_curve *curve, size_t i)
{
    size_t interval = curve->count / MOST_POINTS + 1;
    return curve->items[i * interval];
}

/* A data set: position, mean, low, high. */
static void add_band(struct dt_buffer *script, const struct dt_plot *plot, const struct axis *axis,
                     const struct dt_curve *mean, const struct dt_curve *low,
                     const struct dt_curve *high)
{
    if (low->count == 0)
        dt_buffer_add_string(script, "NaN NaN NaN NaN\n");
    for (size_t i = 0; i * (low->count / MOST_POINTS + 1) < low->count; i++) {
        struct dt_metric m = thinned(mean, i);
        double bottom = thinned(low, i).loss;
        if (plot->log_y && bottom <= 0) /* the axis has no place for it */
            bottom = m.loss / 100;
        dt_buffer_printf(script, "%.9g %.9g %.9g %.9g\n", position(axis, &m), m.loss, bottom,
                         thinned(high, i).loss);
    }
    dt_buffer_add_string(script, "\n\n");
}

static const struct dt_band *band_of(const struct dt_plot *plot, int run)
{
    static const struct dt_band none;
    return plot->bands ? &plot->bands[run] : &none;
}

static void add_bands(struct dt_buffer *script, const struct dt_plot *plot, const struct axis *axis,
                      const struct dt_run_metrics *runs, int count)
{
    dt_buffer_add_string(script, "$band << end_of_data\n");
    for (int r = 0; r < count; r++)
        add_band(script, plot, axis, &runs[r].train, &band_of(plot, r)->train_low,
                 &band_of(plot, r)->train_high);
    dt_buffer_add_string(script, "end_of_data\n$valid_band << end_of_data\n");
    for (int r = 0; r < count; r++)
        add_band(script, plot, axis, &runs[r].valid, &band_of(plot, r)->valid_low,
                 &band_of(plot, r)->valid_high);
    dt_buffer_add_string(script, "end_of_data\n");
}

static bool is_mean(const struct dt_plot *plot, int run)
{
    return band_of(plot, run)->train_low.count + band_of(plot, run)->valid_low.count > 0;
}

static void add_thinned(struct dt_buffer *script, const struct axis *axis, struct dt_curve curve)
{
    struct dt_curve thin = dt_curve_thin(&curve, MOST_POINTS);
    add_curve(script, axis, &thin);
    free(thin.items);
}

/* Values of a schedule are exact, and are not smoothed. */
static bool is_noisy(const char *member)
{
    static const char *const exact[] = {"lr", "batch_tokens", "loss_scale", "skipped"};
    for (size_t i = 0; member && i < sizeof exact / sizeof *exact; i++)
        if (strcmp(member, exact[i]) == 0)
            return false;
    return true;
}

static void release_curve(struct dt_curve *curve)
{
    free(curve->items);
    *curve = (struct dt_curve){.items = NULL};
}

void dt_band_release(struct dt_band *band)
{
    release_curve(&band->train_low);
    release_curve(&band->train_high);
    release_curve(&band->valid_low);
    release_curve(&band->valid_high);
}

/* Appends the mean of points of the same step, and its interval unless there is one point. That of
 * numbers from 0 on ends at 0. */
static void add_mean(const struct dt_metric *points, int count, struct dt_curve *mean,
                     struct dt_curve *low, struct dt_curve *high)
{
    double *values = dt_alloc((size_t)count, sizeof *values);
    struct dt_metric m = {.step = points->step};
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        values[i] = points[i].loss;
        least = fmin(least, values[i]);
        m.tokens += points[i].tokens / count;
        m.time += points[i].time / count;
    }
    double center = dt_statistics_mean(values, (size_t)count),
           margin = dt_statistics_margin(values, (size_t)count);
    struct dt_curve *const curves[] = {mean, low, high};
    double bottom = least >= 0 ? fmax(center - margin, 0) : center - margin;
    const double losses[] = {center, bottom, center + margin};
    for (int k = 0; k < (count > 1 ? 3 : 1); k++) {
        m.loss = losses[k];
        DT_GROW(curves[k]->items, curves[k]->count, curves[k]->capacity);
        curves[k]->items[curves[k]->count++] = m;
    }
    free(values);
}

/* Returns the number of steps with a point that cannot be shown. */
static size_t average(const struct dt_plot *plot, const struct dt_curve *curves, int count,
                      struct dt_curve *mean, struct dt_curve *low, struct dt_curve *high)
{
    struct dt_metric *points = dt_alloc((size_t)count, sizeof *points);
    size_t *next = dt_alloc((size_t)count, sizeof *next), left_out = 0;
    for (size_t i = 0; i < curves[0].count; i++) {
        double step = curves[0].items[i].step;
        bool all = true, shown = true;
        for (int r = 0; r < count; r++) {
            while (next[r] < curves[r].count && curves[r].items[next[r]].step < step)
                next[r]++;
            all = all && next[r] < curves[r].count && curves[r].items[next[r]].step == step;
            if (all)
                points[r] = curves[r].items[next[r]];
            shown = shown && all && is_shown(plot, &points[r]);
        }
        left_out += all && !shown;
        if (shown)
            add_mean(points, count, mean, low, high);
    }
    free(points);
    free(next);
    return left_out;
}

size_t dt_plot_average(const struct dt_plot *plot, const struct dt_run_metrics *const *runs,
                       int count, const char *name, struct dt_run_metrics *mean,
                       struct dt_band *band)
{
    struct dt_curve *train = dt_alloc((size_t)count, sizeof *train),
                    *valid = dt_alloc((size_t)count, sizeof *valid);
    bool smoothed = count > 1 && is_noisy(plot->member);
    *mean = (struct dt_run_metrics){.name = dt_strdup(name)};
    *band = (struct dt_band){.train_low = {.items = NULL}};
    for (int r = 0; r < count; r++) {
        train[r] = smoothed ? dt_curve_smooth(&runs[r]->train) : runs[r]->train;
        valid[r] = runs[r]->valid;
    }
    size_t left_out =
        average(plot, train, count, &mean->train, &band->train_low, &band->train_high) +
        average(plot, valid, count, &mean->valid, &band->valid_low, &band->valid_high);
    for (int r = 0; smoothed && r < count; r++)
        free(train[r].items);
    free(train);
    free(valid);
    return left_out;
}

static void add_data(struct dt_buffer *script, const struct dt_plot *plot, const struct axis *axis,
                     const struct dt_run_metrics *runs, int count)
{
    dt_buffer_add_string(script, "$train << end_of_data\n");
    for (int r = 0; r < count; r++)
        add_thinned(script, axis, runs[r].train);
    dt_buffer_add_string(script, "end_of_data\n$smooth << end_of_data\n");
    for (int r = 0; r < count; r++) {
        bool smoothed = is_noisy(plot->member) && !is_mean(plot, r);
        struct dt_curve smooth =
            smoothed ? dt_curve_smooth(&runs[r].train) : (struct dt_curve){.items = NULL};
        add_thinned(script, axis, smoothed ? smooth : runs[r].train);
        free(smooth.items);
    }
    dt_buffer_add_string(script, "end_of_data\n$valid << end_of_data\n");
    for (int r = 0; r < count; r++)
        add_curve(script, axis, &runs[r].valid);
    dt_buffer_add_string(script, "end_of_data\n");
    add_bands(script, plot, axis, runs, count);
}

/* The range of positions and losses. */
struct range {
    double left, right, low, high;
};

static struct range range_of(const struct dt_plot *plot, const struct axis *axis,
                             const struct dt_run_metrics *runs, int count)
{
    struct range range = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (int r = 0; r < count; r++)
        for (int k = 0; k < 2; k++) {
            const struct dt_curve *curve = k == 0 ? &runs[r].train : &runs[r].valid;
            for (size_t i = 0; i < curve->count; i++) {
                range.left = fmin(range.left, position(axis, &curve->items[i]));
                range.right = fmax(range.right, position(axis, &curve->items[i]));
                range.low = fmin(range.low, curve->items[i].loss);
                range.high = fmax(range.high, curve->items[i].loss);
            }
        }
    if (isfinite(plot->floor)) {
        range.low = fmin(range.low, 0.95 * plot->floor); /* the picture has room below it */
        range.high = fmax(range.high, plot->floor);
    }
    return range;
}

/* Whether a curve is drawn twice: each point, and the running mean. */
static bool is_smoothed(const struct dt_plot *plot, const struct dt_run_metrics *run, int index)
{
    return is_noisy(plot->member) && !is_mean(plot, index) && dt_curve_reach(run->train.count) > 0;
}

/* Of a report, a run may be empty, so that the others keep their colours. */
static int count_drawn(const struct dt_run_metrics *runs, int count)
{
    int drawn = 0;
    for (int r = 0; r < count; r++)
        drawn += !dt_run_metrics_is_empty(&runs[r]);
    return drawn;
}

static void add_settings(struct dt_buffer *script, const struct dt_plot *plot,
                         const struct axis *axis, const struct dt_run_metrics *runs, int count)
{
    dt_gnuplot_set_string(script, "x_label", axis->label);
    const struct range range = range_of(plot, axis, runs, count);
    dt_figure_set_label(script, "y_label", plot->member ? plot->member : "loss");
    dt_buffer_printf(script, "of_loss = %d\nlog_x = %d\nlog_y = %d\nruns = %d\nkeyed = %d\n",
                     plot->member == NULL, plot->log_x, plot->log_y, count,
                     count_drawn(runs, count) <= DT_MOST_NAMED);
    if (plot->log_x)
        dt_buffer_printf(script, "leftmost = %.9g\nrightmost = %.9g\n", range.left, range.right);
    if (plot->log_y)
        dt_buffer_printf(script, "lowest = %.9g\nhighest = %.9g\n", range.low, range.high);
    const char **names = dt_alloc((size_t)count, sizeof *names);
    for (int r = 0; r < count; r++) {
        names[r] = runs[r].name;
        dt_buffer_printf(script, "has_train_%d = %d\nhas_valid_%d = %d\nis_mean_%d = %d\n", r + 1,
                         runs[r].train.count > 0, r + 1, runs[r].valid.count > 0, r + 1,
                         is_mean(plot, r));
        dt_buffer_printf(script, "is_smoothed_%d = %d\npoints_%d = %zu\n", r + 1,
                         is_smoothed(plot, &runs[r], r), r + 1,
                         runs[r].train.count < MOST_POINTS ? runs[r].train.count : MOST_POINTS);
    }
    dt_figure_set_array(script, "name", names, count);
    free(names);
    if (isfinite(plot->floor))
        dt_buffer_printf(script, "floor_level = %.9g\n", plot->floor);
}

int dt_plot_loss(const struct dt_plot *plot, const struct dt_run_metrics *runs, int count,
                 struct dt_buffer *out, struct dt_error *err)
{
    struct axis axis;
    struct dt_buffer script = DT_BUFFER_EMPTY;
    if (count_drawn(runs, count) == 0)
        return dt_fail(err, DT_EINVALID, "nothing to draw: no point is above 0");
    DT_TRY(choose_axis(&axis, plot->x, runs, count, err));
    add_settings(&script, plot, &axis, runs, count);
    add_data(&script, plot, &axis, runs, count);
    int rc = dt_figure_draw(&(struct dt_figure){plot->format, plot->title, "loss", 1}, &script, out,
                            err);
    dt_buffer_release(&script);
    return rc;
}
