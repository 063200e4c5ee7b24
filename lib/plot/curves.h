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

#include "io/run-metrics.h"
#include "plot/figure.h"

/* The interval around a curve that is a mean of runs: its lower and upper edge, at the same steps;
 * empty if the curve is of one run. */
struct dt_band {
    struct dt_curve train_low, train_high, valid_low, valid_high;
};

enum dt_plot_x { DT_PLOT_STEP, DT_PLOT_TOKENS, DT_PLOT_TIME };

struct dt_plot {
    enum dt_plot_format format;
    enum dt_plot_x x;
    bool log_x, log_y;
    double floor;       /* horizontal line, nats per token; NAN: none */
    const char *title;  /* or NULL */
    const char *member; /* member of the metrics, which decides the y label; NULL: the loss */
    const struct dt_band *bands; /* one for each run; NULL: none */
};

/* Most runs with labelled curves; more are drawn without labels. */
#define DT_MOST_NAMED 24

/* Removes points that logarithmic axes cannot show; returns their number. */
size_t dt_plot_drop_below_zero(const struct dt_plot *plot, struct dt_run_metrics *runs, int count);

/* Appends a drawing of the curves of the runs to out. DT_EMISSING if gnuplot is not installed or a
 * run lacks the member of the x axis; DT_EINVALID if no point remains. */
int dt_plot_loss(const struct dt_plot *plot, const struct dt_run_metrics *runs, int count,
                 struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* The mean of repetitions and its 95% interval, at the steps that all of them have and that the
 * axes of the plot can show; returns the number of those they cannot. Training curves are smoothed
 * first if plot->member is noisy. One run is copied, without a band. The caller owns *mean
 * (dt_run_metrics_release), named name, and *band. */
size_t dt_plot_average(const struct dt_plot *plot, const struct dt_run_metrics *const *runs,
                       int count, const char *name, struct dt_run_metrics *mean,
                       struct dt_band *band);
void dt_band_release(struct dt_band *band);

/* Smooths a curve by a running mean over about 1/50 of its points: as many before each as after it,
 * so that it does not lag, and therefore fewer near both ends. The first and the last point, and
 * curves of fewer than 100, stay as they are. The result is owned by the caller (free items). */
struct dt_curve dt_curve_smooth(const struct dt_curve *curve);
/* Most points before and after one that are in its mean. */
size_t dt_curve_reach(size_t count);

/* Reduces a curve to about limit points: the minimum and the maximum of each interval. The result
 * is owned by the caller (free items). */
struct dt_curve dt_curve_thin(const struct dt_curve *curve, size_t limit);

#endif
