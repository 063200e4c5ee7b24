/* SPDX-License-Identifier: MIT */
/*
 * A trace drawn as lanes: the JSON of Chrome's trace event format, as Perfetto and
 * dt-plan --trace have it. Complete events (ph "X") become boxes over ts and dur; a lane
 * is a thread of a process, named by metadata events where there are any; the colour is
 * that of the first word of the name.
 */
#ifndef DT_PLOT_TIMELINE_H
#define DT_PLOT_TIMELINE_H

#include "plot/figure.h"

/* Text: 80 columns, the first letter of what fills most of each. DT_EFORMAT if the
 * file is no trace or has no complete event. */
int dt_plot_timeline(enum dt_plot_format format, const char *title, const char *path,
                     struct dt_output *out, struct dt_error *err) DT_MUST_CHECK;

#endif
