/* SPDX-License-Identifier: MIT */
/*
 * Charts of the results of dt-bench matrix: scaling, bars, roofline.
 *
 *     struct dt_chart chart = {.format = DT_PLOT_SVG, .axis = "ranks"};
 *     DT_TRY(dt_plot_scaling(&chart, &results, &out, err));
 */
#ifndef DT_PLOT_CHARTS_H
#define DT_PLOT_CHARTS_H

#include "experiment/results.h"
#include "plot/figure.h"

struct dt_chart {
    enum dt_plot_format format;
    const char *title;         /* or NULL */
    const char *axis;          /* scaling: the x axis; NULL: the first axis */
    const char *const *values; /* names of values; count 0: the defaults below */
    int value_count;
    bool log_x, log_y; /* points: logarithmic axes; bars: points on one, without bars */
    double peak;       /* of a roofline, GFLOP/s; 0: the largest gemm_gflops measured */
    double bandwidth;  /* GB/s; 0: the largest memory_gb_per_second measured */
};

/* Draws a value (default tokens_per_second) over a numeric axis, with a line per combination of the
 * other axes and the line of linear scaling from the lowest value of the axis that was measured;
 * the efficiency relative to that; and mfu, if measured. */
int dt_plot_scaling(const struct dt_chart *chart, const struct dt_results *results,
                    struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Draws medians of a value (default peak_bytes) with quartiles as bars: a group per combination of
 * the axes except the last, a bar per value of the last axis. Several values are stacked per cell.
 * On a logarithmic axis, which has no 0 for a bar to begin at, they are points. Says so if the
 * lowest loss is at the edge of a numeric axis. */
int dt_plot_bars(const struct dt_chart *chart, const struct dt_results *results,
                 struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Draws the second of two values over the first: medians with quartiles, a point per cell. */
int dt_plot_points(const struct dt_chart *chart, const struct dt_results *results,
                   struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Draws the roofline (Williams, Waterman and Patterson 2009), and gflops over flops_per_byte of
 * each cell. */
int dt_plot_roofline(const struct dt_chart *chart, const struct dt_results *results,
                     struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Draws given numbers as bars, such as times to a loss; NAN: missing. */
int dt_plot_named_bars(const struct dt_chart *chart, const char *label, const char *const *names,
                       const double *values, int count, struct dt_buffer *out,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
