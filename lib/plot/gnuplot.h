/* SPDX-License-Identifier: MIT */
/* Running gnuplot: commands in, a drawing out. */
#ifndef DT_PLOT_GNUPLOT_H
#define DT_PLOT_GNUPLOT_H

#include "base/buffer.h"
#include "base/error.h"

/* Runs gnuplot on script, with the user's start-up files left out, and appends
 * what it writes to drawing. DT_EMISSING if it is not installed; DT_EIO with
 * its first line of complaint if it fails, or if the drawing lacks its end. */
int dt_gnuplot_run(const struct dt_buffer *script, struct dt_buffer *drawing,
                   struct dt_error *err) DT_MUST_CHECK;

/* Appends NAME = "text" with all but letters and spaces as octal escapes, so
 * that nothing in text can end the string or run a command. (gnuplot 5.4 takes
 * a doubled quote at the start of a '...' string for its end, and a digit behind
 * an octal escape for a part of it.) Control characters become spaces. */
void dt_gnuplot_set_string(struct dt_buffer *script, const char *name, const char *text);

#endif
