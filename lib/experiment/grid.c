/* SPDX-License-Identifier: MIT */
#include "experiment/grid.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_WIDTH 80

void dt_grid_add(struct dt_grid *grid, const char *text)
{
    DT_GROW(grid->texts, grid->count, grid->capacity);
    grid->texts[grid->count++] = dt_strdup(text);
}

void dt_grid_printf(struct dt_grid *grid, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    dt_grid_add(grid, text);
}

void dt_grid_release(struct dt_grid *grid)
{
    for (size_t i = 0; i < grid->count; i++)
        free(grid->texts[i]);
    free(grid->texts);
    *grid = (struct dt_grid){0};
}

/* Display width of a text, one column per character. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xC0) != 0x80;
    return width;
}

static bool is_numeric(const char *text)
{
    size_t size = strlen(text);
    return size == 0 || isdigit((unsigned char)text[0]) ||
           (strchr("+-.", text[0]) &&
            (size == 1 || isdigit((unsigned char)text[1]) || text[1] == '.'));
}

bool dt_grid_is_numeric(const struct dt_grid *grid, int column)
{
    for (size_t i = (size_t)(grid->columns + column); i < grid->count; i += (size_t)grid->columns)
        if (!is_numeric(grid->texts[i]))
            return false;
    return true;
}

struct column {
    int width;
    bool numeric;
};

static struct column measure(const struct dt_grid *grid, int c)
{
    struct column column = {3, dt_grid_is_numeric(grid, c)};
    for (size_t i = (size_t)c; i < grid->count; i += (size_t)grid->columns) {
        int width = width_of(grid->texts[i]);
        column.width = width > column.width ? width : column.width;
    }
    return column;
}

static void add_plain(struct dt_buffer *out, const char *text, bool markdown)
{
    for (; *text; text++) {
        if (markdown && *text == '|')
            dt_buffer_add_char(out, '\\');
        dt_buffer_add_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static void add_spaces(struct dt_buffer *out, int count)
{
    for (int i = 0; i < count; i++)
        dt_buffer_add_char(out, ' ');
}

static void add_aligned(struct dt_buffer *out, const char *text, struct column column, bool last,
                        bool markdown)
{
    int room = column.width - width_of(text);
    if (column.numeric)
        add_spaces(out, room);
    add_plain(out, text, markdown);
    if (!column.numeric && !last)
        add_spaces(out, room);
}

static void add_rule(struct dt_buffer *out, const struct column *columns, int count)
{
    for (int c = 0; c < count; c++) {
        dt_buffer_add_string(out, c > 0 ? " | " : "| ");
        for (int i = 0; i < columns[c].width - columns[c].numeric; i++)
            dt_buffer_add_char(out, '-');
        dt_buffer_add_string(out, columns[c].numeric ? ":" : "");
    }
    dt_buffer_add_string(out, " |\n");
}

/* Prints the leading columns of a row, and columns [first, end). */
static void add_row(struct dt_buffer *out, const struct dt_grid *grid, const struct column *columns,
                    char *const *texts, int first, int end, bool markdown)
{
    for (int c = 0; c < end; c = c + 1 == grid->leading ? first : c + 1) {
        dt_buffer_add_string(out, markdown ? (c > 0 ? " | " : "| ") : c > 0 ? "  " : "");
        add_aligned(out, texts[c], columns[c], c == end - 1 && !markdown, markdown);
    }
    dt_buffer_add_string(out, markdown ? " |\n" : "\n");
}

/* End of the columns from first on that fit next to the leading ones. */
static int end_of_text(const struct dt_grid *grid, const struct column *columns, int first)
{
    int width = -2, end = first;
    for (int c = 0; c < grid->leading; c++)
        width += 2 + columns[c].width;
    for (int c = first; c < grid->columns; c++) {
        width += 2 + columns[c].width;
        bool whole = (c + 1 - grid->leading) % grid->together == 0;
        if (width > LINE_WIDTH && end > first)
            return end;
        end = whole ? c + 1 : end;
    }
    return grid->columns;
}

static void print_text(const struct dt_grid *grid, const struct column *columns,
                       struct dt_buffer *out)
{
    int first = grid->leading, end;
    do {
        end = grid->together > 0 ? end_of_text(grid, columns, first) : grid->columns;
        if (first > grid->leading)
            dt_buffer_add_char(out, '\n');
        for (size_t i = 0; i < grid->count; i += (size_t)grid->columns)
            add_row(out, grid, columns, grid->texts + i, first, end, false);
        first = end;
    } while (first < grid->columns);
}

static void print_markdown(const struct dt_grid *grid, const struct column *columns,
                           struct dt_buffer *out)
{
    for (size_t i = 0; i < grid->count; i += (size_t)grid->columns) {
        add_row(out, grid, columns, grid->texts + i, grid->leading, grid->columns, true);
        if (i == 0)
            add_rule(out, columns, grid->columns);
    }
}

static void print_tsv(const struct dt_grid *grid, struct dt_buffer *out)
{
    for (size_t i = 0; i < grid->count; i++) {
        add_plain(out, grid->texts[i], false);
        dt_buffer_add_char(out, (i + 1) % (size_t)grid->columns == 0 ? '\n' : '\t');
    }
}

void dt_grid_print(const struct dt_grid *grid, enum dt_grid_format format, struct dt_buffer *out)
{
    struct column *columns = dt_alloc((size_t)grid->columns, sizeof *columns);
    for (int c = 0; c < grid->columns; c++)
        columns[c] = measure(grid, c);
    if (format == DT_GRID_TEXT)
        print_text(grid, columns, out);
    else if (format == DT_GRID_MARKDOWN)
        print_markdown(grid, columns, out);
    else
        print_tsv(grid, out);
    free(columns);
}

char *dt_grid_number(double x, char text[DT_SHORT_NUMBER])
{
    static const char units[] = "kMGTPE";
    double size = fabs(x);
    int unit = -1;
    if (isnan(x)) {
        snprintf(text, DT_SHORT_NUMBER, "-");
        return text;
    }
    if (size >= 9999.5 && size < 1e22)
        for (; size >= 999.95 && unit < 5; unit++, size /= 1000)
            x /= 1000;
    const char suffix[] = {unit >= 0 ? units[unit] : '\0', '\0'};
    snprintf(text, DT_SHORT_NUMBER, "%.4g%s", x, suffix);
    return text;
}
