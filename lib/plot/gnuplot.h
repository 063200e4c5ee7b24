/* SPDX-License-Identifier: MIT */
/* Runs gnuplot: commands in, a drawing out. */
#ifndef DT_PLOT_GNUPLOT_H
#define DT_PLOT_GNUPLOT_H

#include "base/buffer.h"
#include "base/error.h"

/* Runs gnuplot on script, without the user's start-up files, and appends its output to drawing.
 * DT_EMISSING if it is not installed; DT_EIO with its error line if it fails, or if the drawing is
 * incomplete. */
int dt_gnuplot_run(const struct dt_buffer *script, struct dt_buffer *drawing,
                   struct dt_error *err) DT_MUST_CHECK;

/* Appends NAME = "text" with everything except letters and spaces as octal escapes, so that text
 * cannot end the string or run a command. (gnuplot 5.4 misreads a doubled quote at the start of a
 * '...' string, and a digit after an octal escape.) Control characters become spaces. */
void dt_gnuplot_set_string(struct dt_buffer *script, const char *name, const char *text);

#endif
