/* SPDX-License-Identifier: MIT */
/*
 * Curves of the loss, or of another member of metrics, through gnuplot, which is run without a
 * shell: the commands and the data go to its standard input, and no text of the caller is ever
 * interpreted.
 *
 *     struct dt_plot plot = {.format = DT_PLOT_SVG, .title = "demo", .floor = NAN};
 *     DT_TRY(dt_plot_loss(&plot, runs, count, &out, err));
 *
 * How a plot looks is told by share/plots/loss.gnuplot and style.gnuplot.
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
    double floor;       /* a level to draw as a line, nats a token; NAN for none */
    const char *title;  /* NULL for none */
    const char *member; /* what the curves show, for the y axis; NULL: the loss */
};

/* Runs whose names fit beside their curves; more are drawn without names. */
#define DT_MOST_NAMED 24

/* Takes from the curves what the logarithmic axes cannot have; returns how many points. */
size_t dt_plot_drop_below_zero(const struct dt_plot *plot, struct dt_run_metrics *runs, int count);

/* Draws the curves of the runs into out. DT_EMISSING if gnuplot is not
 * installed or a run lacks what x asks for; DT_EINVALID if there is no point. */
int dt_plot_loss(const struct dt_plot *plot, const struct dt_run_metrics *runs, int count,
                 struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

/* The curve smoothed by a running mean over about a fiftieth of its points, as
 * many before as behind, so that it does not lag; at the start, where losses
 * fall fast, over fewer. The result is owned by the caller (free items). */
struct dt_curve dt_curve_smooth(const struct dt_curve *curve);

/* At most about limit points that look like the whole curve: of each stretch
 * the lowest and the highest point. Owned by the caller (free items). */
struct dt_curve dt_curve_thin(const struct dt_curve *curve, size_t limit);

#endif
