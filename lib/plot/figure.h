/* SPDX-License-Identifier: MIT */
/*
 * A drawing by gnuplot: settings and data as commands, then share/plots/style.gnuplot and a
 * template.
 */
#ifndef DT_PLOT_FIGURE_H
#define DT_PLOT_FIGURE_H

#include "base/buffer.h"

enum dt_plot_format { DT_PLOT_TEXT, DT_PLOT_SVG, DT_PLOT_PNG, DT_PLOT_PDF, DT_PLOT_EPS };

struct dt_figure {
    enum dt_plot_format format;
    const char *title;    /* or NULL */
    const char *template; /* "loss": share/plots/loss.gnuplot */
    int panels;           /* panels, from left to right */
};

/* Runs gnuplot and appends the drawing to out. DT_EMISSING if it is not installed. */
int dt_figure_draw(const struct dt_figure *figure, const struct dt_buffer *settings,
                   struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Words and unit of a number of dt-metrics(5) or dt-bench(1), for an axis; other names as they are.
 * Owned by the caller. */
char *dt_figure_label(const char *name);
/* Sets a variable of gnuplot's to this label. */
void dt_figure_set_label(struct dt_buffer *settings, const char *variable, const char *name);

/* Appends the first `width` characters of a text, and spaces for those that it lacks. */
void dt_figure_add_label(struct dt_buffer *out, const char *text, int width);

/* Appends strings as a gnuplot array NAME, quoted so that they are never interpreted. */
void dt_figure_set_array(struct dt_buffer *settings, const char *name, const char *const *texts,
                         int count);
/* As above, for axis labels, in which gnuplot would interpret %s as a number format. */
void dt_figure_set_ticks(struct dt_buffer *settings, const char *name, const char *const *texts,
                         int count);

#endif
