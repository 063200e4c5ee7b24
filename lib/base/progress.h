/* SPDX-License-Identifier: MIT */
/* A line of progress on stderr, rewritten in place; silent where stderr is not a terminal, so that
 * logs and pipes stay clean, and where stdout is a pipe, so that of a pipeline the last program
 * alone has the line. */
#ifndef DT_BASE_PROGRESS_H
#define DT_BASE_PROGRESS_H

#include <stdbool.h>

#include "base/error.h"

struct dt_progress {
    bool shown;  /* stderr is a terminal, and quiet is false */
    double next; /* when the line may change again */
    int width;   /* width of the line on the screen */
};

/* quiet: the user asked for it, or the output is on the terminal that the line
 * would be drawn over. */
void dt_progress_init(struct dt_progress *p, bool quiet);
/* True at most five times a second: ask before computing what to show. */
bool dt_progress_due(struct dt_progress *p);
void dt_progress_show(struct dt_progress *p, const char *fmt, ...) DT_PRINTF(2, 3);
/* Clears the line, before other output and at the end. A signal that ends the program does so, too.
 */
void dt_progress_clear(struct dt_progress *p);

/* "512 bytes", "1.50 KiB", "3.25 GiB": three digits of the largest unit that fits, into
 * text; returns text. */
#define DT_PROGRESS_BYTES 32
char *dt_progress_bytes(double bytes, char text[DT_PROGRESS_BYTES]);

#endif
