/* SPDX-License-Identifier: MIT */
/* Heat maps of what dt-train measures of each tensor (RUN/tensors.jsonl, dt-metrics(5)): a row for
 * each layer, and for each tensor outside of the layers, a column for each measured step. */
#ifndef DT_PLOT_INSIDE_H
#define DT_PLOT_INSIDE_H

#include "plot/figure.h"

/* value: parameter_norm, gradient_norm, update_norm (of a layer's tensors together) or update_ratio
 * (the quotient of two of these). NULL: update_ratio. Colours are logarithmic. DT_EMISSING if the
 * run has no such file; DT_EINVALID for another value. */
int dt_plot_inside(enum dt_plot_format format, const char *title, const char *run,
                   const char *value, struct dt_buffer *out, struct dt_error *err) DT_MUST_CHECK;

#endif
