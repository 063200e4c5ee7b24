/* SPDX-License-Identifier: MIT */
/*
 * Curves of the loss, or of another member of metrics, drawn by gnuplot. gnuplot runs without a
 * shell and reads commands and data from stdin; text of the caller is never interpreted.
 *
 *     struct dt_plot plot = {.format = DT_PLOT_SVG, .title = "demo", .floor = NAN};
 *     DT_TRY(dt_plot_loss(&plot, runs, count, &out, err));
 *
 * share/plots/loss.gnuplot and style.gnuplot define the style.
 */
#ifndef DT_PLOT_CURVES_H
#define DT_PLOT_CURVES_H

#include <stdbool.h>

#include "base/file.h"
#include "io/run-metrics.h"
#include "plot/figure.h"

enum dt_plot_x { DT_PLOT_STEP, DT_PLOT_TOKENS, DT_PLOT_TIME };

struct dt_plot {
    enum dt_plot_format format;
    enum dt_plot_x x;
    bool log_x, log_y;
    double floor;       /* horizontal line, nats per token; NAN: none */
    const char *title;  /* or NULL */
    const char *member; /* member of the metrics, the y label; NULL: the loss */
};

/* Most runs with labelled curves; more are drawn without labels. */
#define DT_MOST_NAMED 24

/* Removes points that logarithmic axes cannot show; returns their number. */
size_t dt_plot_drop_below_zero(const struct dt_plot *plot, struct dt_run_metrics *runs, int count);

/* Draws the curves of the runs into out. DT_EMISSING if gnuplot is not installed or a run lacks the
 * member of the x axis; DT_EINVALID if no point remains. */
int dt_plot_loss(const struct dt_plot *plot, const struct dt_run_metrics *runs, int count,
                 struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

/* Smooths a curve by a centered running mean over about 1/50 of its points, without lag; over fewer
 * at the start, where losses fall fast. The result is owned by the caller (free items). */
struct dt_curve dt_curve_smooth(const struct dt_curve *curve);

/* Reduces a curve to about limit points: the minimum and the maximum of each interval. The result
 * is owned by the caller (free items). */
struct dt_curve dt_curve_thin(const struct dt_curve *curve, size_t limit);

#endif
