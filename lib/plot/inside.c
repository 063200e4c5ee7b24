/* SPDX-License-Identifier: MIT */
#include "plot/inside.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "io/input.h"
#include "plot/gnuplot.h"
#include "json/json.h"

enum { PARAMETER, GRADIENT, UPDATE, SUMS, TEXT_COLUMNS = 56, MOST_TICKS = 40 };

static const char *const members[SUMS] = {"parameter_norm", "gradient_norm", "update_norm"};
static const char *const labels[] = {"L2 norm of the parameters", "L2 norm of the gradients",
                                     "L2 norm of the updates",
                                     "norm of the update / norm of the parameters"};
#define RATIO SUMS

struct cell {
    double squares[SUMS];
};

struct map {
    int what;    /* a member, or RATIO */
    char **rows; /* names, in the order of the file */
    int row_count, row_capacity;
    long *steps;
    int step_count, step_capacity;
    struct cell *cells; /* step by step; most_rows for each */
    size_t cell_count, cell_capacity;
};

#define MOST_ROWS 512

/* "layer 3" of a tensor with ".3." in its name; otherwise the name. */
static char *row_name(const char *tensor)
{
    for (const char *c = tensor; (c = strchr(c, '.')) != NULL; c++) {
        size_t digits = strspn(c + 1, "0123456789");
        if (digits > 0 && c[1 + digits] == '.')
            return dt_asprintf("layer %.*s", (int)digits, c + 1);
    }
    return dt_strdup(tensor);
}

static int row_of(struct map *m, const char *tensor, const char *subject, int *row,
                  struct dt_error *err)
{
    char *name = row_name(tensor);
    for (*row = 0; *row < m->row_count && strcmp(m->rows[*row], name) != 0; ++*row)
        ;
    if (*row < m->row_count) {
        free(name);
        return 0;
    }
    if (m->row_count == MOST_ROWS) {
        free(name);
        return dt_fail(err, DT_EINVALID, "%s: more than %d layers cannot be drawn", subject,
                       MOST_ROWS);
    }
    DT_GROW(m->rows, m->row_count, m->row_capacity);
    m->rows[m->row_count++] = name;
    return 0;
}

static struct cell *cell_at(const struct map *m, int step, int row)
{
    return &m->cells[(size_t)step * MOST_ROWS + (size_t)row];
}

static void begin_step(struct map *m, long step)
{
    DT_GROW(m->steps, m->step_count, m->step_capacity);
    m->steps[m->step_count++] = step;
    size_t needed = (size_t)m->step_count * MOST_ROWS;
    if (needed > m->cell_capacity) {
        struct cell *larger = dt_alloc(2 * needed, sizeof *larger);
        if (m->cells)
            memcpy(larger, m->cells, m->cell_count * sizeof *larger);
        free(m->cells);
        m->cells = larger;
        m->cell_capacity = 2 * needed;
    }
    m->cell_count = needed;
}

static int add_line(struct map *m, struct json_object *line, const char *subject,
                    struct dt_error *err)
{
    int64_t step;
    const char *tensor;
    int row;
    DT_TRY(dt_json_get_int(line, "step", subject, &step, err));
    DT_TRY(dt_json_get_string(line, "tensor", subject, &tensor, err));
    if (m->step_count == 0 || m->steps[m->step_count - 1] != step)
        begin_step(m, (long)step);
    DT_TRY(row_of(m, tensor, subject, &row, err));
    for (int k = 0; k < SUMS; k++) {
        double norm;
        DT_TRY(dt_json_get_real(line, members[k], subject, &norm, err));
        cell_at(m, m->step_count - 1, row)->squares[k] += norm * norm;
    }
    return 0;
}

static int read_lines(struct map *m, struct dt_input *in, const char *path, struct dt_error *err)
{
    struct dt_buffer line = DT_BUFFER_EMPTY;
    bool found = true;
    int rc = 0;
    for (long number = 1; rc == 0 && found; number++) {
        struct json_object *object;
        dt_buffer_clear(&line);
        rc = dt_input_read_until(in, '\n', &line, &found, err);
        if (rc < 0 || line.size == 0)
            break;
        char *subject = dt_asprintf("%s:%ld", path, number);
        rc = dt_json_parse(line.data, line.size, subject, &object, err);
        if (rc == 0) {
            rc = add_line(m, object, subject, err);
            json_object_put(object);
        }
        free(subject);
    }
    dt_buffer_release(&line);
    if (rc == 0 && m->step_count == 0)
        rc = dt_fail(err, DT_EFORMAT, "%s: has no line", path);
    return rc;
}

static int read_map(struct map *m, const char *run, struct dt_error *err)
{
    struct dt_input *in;
    char *path = dt_path_join(run, "tensors.jsonl");
    int rc = dt_file_probe(path, err);
    if (rc == 0)
        rc = dt_fail(err, DT_EMISSING,
                     "run '%s' has no tensors.jsonl: train with training.tensor_metrics=true", run);
    rc = rc < 0 ? rc : dt_input_open(&in, path, err);
    if (rc == 0) {
        rc = read_lines(m, in, path, err);
        dt_input_close(in);
    }
    free(path);
    return rc;
}

/* NAN: not measured, or 0, which has no logarithm. */
static double value_at(const struct map *m, int step, int row)
{
    const double *s = cell_at(m, step, row)->squares;
    double value = m->what == RATIO ? sqrt(s[UPDATE] / s[PARAMETER]) : sqrt(s[m->what]);
    return value > 0 && isfinite(value) ? value : NAN;
}

static void find_range(const struct map *m, double *low, double *high)
{
    *low = INFINITY;
    *high = 0;
    for (int step = 0; step < m->step_count; step++)
        for (int row = 0; row < m->row_count; row++) {
            double value = value_at(m, step, row);
            *low = value < *low ? value : *low;
            *high = value > *high ? value : *high;
        }
}

/* Darker is larger. */
static char shade(double value, double low, double high)
{
    static const char shades[] = ".:-=+*#%@";
    const int last = sizeof shades - 2;
    double place = high > low ? log(value / low) / log(high / low) : 1;
    return isnan(value) ? ' ' : shades[(int)lround(place * last)];
}

static void write_text(const struct map *m, const char *title, struct dt_buffer *out)
{
    double low, high;
    const int columns = m->step_count < TEXT_COLUMNS ? m->step_count : TEXT_COLUMNS;
    find_range(m, &low, &high);
    if (title)
        dt_buffer_printf(out, "%s\n", title);
    for (int row = 0; row < m->row_count; row++) {
        size_t length = strlen(m->rows[row]);
        dt_buffer_printf(out, "%-20.20s |", m->rows[row] + (length > 20 ? length - 20 : 0));
        for (int c = 0; c < columns; c++)
            dt_buffer_add_char(out,
                               shade(value_at(m, c * m->step_count / columns, row), low, high));
        dt_buffer_add_string(out, "|\n");
    }
    dt_buffer_printf(out, "%s: %.3g . to %.3g @, logarithmic; steps %ld to %ld\n", labels[m->what],
                     low, high, m->steps[0], m->steps[m->step_count - 1]);
}

static int draw(const struct map *m, enum dt_plot_format format, const char *title,
                struct dt_buffer *out, struct dt_error *err)
{
    struct dt_buffer script = DT_BUFFER_EMPTY;
    double low, high;
    find_range(m, &low, &high);
    dt_gnuplot_set_string(&script, "value_label", labels[m->what]);
    dt_buffer_printf(&script, "rows = %d\nevery_row = %d\nlow = %.9g\nhigh = %.9g\n", m->row_count,
                     (m->row_count + MOST_TICKS - 1) / MOST_TICKS, low,
                     high > low ? high : 2 * low);
    dt_figure_set_ticks(&script, "row", (const char *const *)m->rows, m->row_count);
    dt_buffer_add_string(&script, "$cells << end_of_data\n");
    for (int step = 0; step < m->step_count; step++) {
        long to = m->steps[step], from = step > 0 ? m->steps[step - 1] : to - 1;
        for (int row = 0; row < m->row_count; row++)
            if (!isnan(value_at(m, step, row)))
                dt_buffer_printf(&script, "%ld %ld %d %.9g\n", from, to, row + 1,
                                 value_at(m, step, row));
    }
    dt_buffer_add_string(&script, "end_of_data\n");
    int rc = dt_figure_draw(&(struct dt_figure){format, title, "inside", 1}, &script, out, err);
    dt_buffer_release(&script);
    return rc;
}

static int find_value(const char *value, int *what, struct dt_error *err)
{
    *what = RATIO;
    if (value == NULL || strcmp(value, "update_ratio") == 0)
        return 0;
    for (*what = 0; *what < SUMS; ++*what)
        if (strcmp(value, members[*what]) == 0)
            return 0;
    return dt_fail(err, DT_EINVALID,
                   "'%s' is not measured of tensors: choose parameter_norm, gradient_norm, "
                   "update_norm or update_ratio",
                   value);
}

int dt_plot_inside(enum dt_plot_format format, const char *title, const char *run,
                   const char *value, struct dt_buffer *out, struct dt_error *err)
{
    struct map m = {0};
    DT_TRY(find_value(value, &m.what, err));
    int rc = read_map(&m, run, err);
    if (rc == 0 && format == DT_PLOT_TEXT)
        write_text(&m, title, out);
    else if (rc == 0)
        rc = draw(&m, format, title, out, err);
    for (int i = 0; i < m.row_count; i++)
        free(m.rows[i]);
    free(m.rows);
    free(m.steps);
    free(m.cells);
    return rc;
}
