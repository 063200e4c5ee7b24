/* SPDX-License-Identifier: MIT */
/*
 * Draws a trace in Chrome's trace event format (JSON), as written by dt-plan --trace and Perfetto.
 * Complete events (ph "X") become boxes from ts to ts + dur. A lane is a thread of a process, named
 * by metadata events; the first word of an event's name selects its colour, and those that take
 * the least time share one.
 */
#ifndef DT_PLOT_TIMELINE_H
#define DT_PLOT_TIMELINE_H

#include "plot/figure.h"

/* As text: 80 columns, each with the letter of the kind that fills most of it. DT_EFORMAT if the
 * file is not a trace or lacks complete events. */
int dt_plot_timeline(enum dt_plot_format format, const char *title, const char *path,
                     struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

/* Tables of the operations and of the phases of a planned step (dt-plan --trace) and of measured
 * ones (training.timeline_steps), those that differ most first. An operation is planned from what
 * was recorded of it, by the rates of the plan. */
int dt_plot_difference(const char *planned, const char *measured, struct dt_buffer *out,
                       struct dt_error *err) DT_MUST_CHECK;

#endif
