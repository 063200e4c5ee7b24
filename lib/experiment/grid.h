/* SPDX-License-Identifier: MIT */
/*
 * A table of strings, printed with aligned columns, as Markdown, or tab-separated.
 *
 *     struct dt_grid g = {.columns = 2};
 *     dt_grid_add(&g, "layers");
 *     dt_grid_add(&g, "tokens/s");
 *     dt_grid_add(&g, "2");
 *     dt_grid_add(&g, dt_grid_number(81234.5, text));
 *     dt_grid_print(&g, DT_GRID_MARKDOWN, &out);
 *     dt_grid_release(&g);
 */
#ifndef DT_EXPERIMENT_GRID_H
#define DT_EXPERIMENT_GRID_H

#include <stdbool.h>

#include "base/buffer.h"

enum dt_grid_format { DT_GRID_TEXT, DT_GRID_MARKDOWN, DT_GRID_TSV };

struct dt_grid {
    int columns;  /* per row; the first row is the heading */
    int together; /* text wider than 80 breaks after multiples of this many columns; 0: never */
    int leading;  /* columns repeated after a break */
    char **texts; /* row-major */
    size_t count, capacity;
};

void dt_grid_add(struct dt_grid *grid, const char *text);
void dt_grid_printf(struct dt_grid *grid, const char *fmt, ...) DT_PRINTF(2, 3);
/* Whether all texts of a column but its heading are numbers or empty. */
bool dt_grid_is_numeric(const struct dt_grid *grid, int column);
/* Numeric columns are right-aligned. Tabs and line feeds in a text become spaces; '|' is escaped in
 * Markdown. */
void dt_grid_print(const struct dt_grid *grid, enum dt_grid_format format, struct dt_buffer *out);
void dt_grid_release(struct dt_grid *grid);

/* Four digits: "0.01234", "12.34", "81.23k", "1.5M", and from 1e22 on "1e+22"; "-" for NAN. Returns
 * text. */
#define DT_SHORT_NUMBER 32
char *dt_grid_number(double x, char text[DT_SHORT_NUMBER]);

#endif
