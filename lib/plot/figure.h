/* SPDX-License-Identifier: MIT */
/*
 * A drawing through gnuplot: settings and data as commands, then share/plots/style.gnuplot
 * and a template that tells how it looks.
 */
#ifndef DT_PLOT_FIGURE_H
#define DT_PLOT_FIGURE_H

#include "base/buffer.h"
#include "base/file.h"

enum dt_plot_format { DT_PLOT_TEXT, DT_PLOT_SVG, DT_PLOT_PNG };

struct dt_figure {
    enum dt_plot_format format;
    const char *title;    /* NULL for none */
    const char *template; /* "loss": share/plots/loss.gnuplot */
    int panels;           /* drawings side by side */
};

/* Runs gnuplot and writes what it draws to out. DT_EMISSING if it is not installed. */
int dt_figure_draw(const struct dt_figure *figure, const struct dt_buffer *settings,
                   struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

/* A list of texts as a gnuplot array NAME, whose values are never taken for commands. */
void dt_figure_set_array(struct dt_buffer *settings, const char *name, const char *const *texts,
                         int count);
/* The same of labels on an axis, where gnuplot would take %s for a format of numbers. */
void dt_figure_set_ticks(struct dt_buffer *settings, const char *name, const char *const *texts,
                         int count);

#endif
