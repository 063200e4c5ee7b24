/* SPDX-License-Identifier: MIT */
/*
 * Drawings of what dt-bench matrix measured: scaling, bars, roofline.
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
    const char *title;         /* NULL for none */
    const char *axis;          /* of scaling: what goes to the right; NULL: the first */
    const char *const *values; /* names; count 0: what each says below */
    int value_count;
    double peak;      /* of a roofline, GFLOP/s; 0: the largest gemm_gflops measured */
    double bandwidth; /* GB/s; 0: the largest memory_gb_per_second measured */
};

/* A value (default tokens_per_second) over an axis of numbers, a line for each
 * combination of the other axes, beside the straight line from the first point; how much
 * of that is reached; and mfu, if it was measured. */
int dt_plot_scaling(const struct dt_chart *chart, const struct dt_results *results,
                    struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

/* Medians of a value (default peak_bytes) with their quartiles as bars, one for each value
 * of the last axis in a group for each combination of the others. Several values: those
 * of a cell on top of each other. */
int dt_plot_bars(const struct dt_chart *chart, const struct dt_results *results,
                 struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

/* gflops over flops_per_byte of each cell, below what processor and memory allow
 * (Williams, Waterman and Patterson 2009). */
int dt_plot_roofline(const struct dt_chart *chart, const struct dt_results *results,
                     struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

/* Bars of given numbers, NAN for none, such as times to a loss. */
int dt_plot_named_bars(const struct dt_chart *chart, const char *label, const char *const *names,
                       const double *values, int count, struct dt_output *out,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
