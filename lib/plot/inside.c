/* SPDX-License-Identifier: MIT */
#include "plot/inside.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/path.h"
#include "io/json-lines.h"
#include "plot/gnuplot.h"
#include "json/json.h"

enum { TEXT_COLUMNS = 56, MOST_TICKS = 40 };

/* What can be drawn. Norms are of the tensors of a layer together. */
static const struct quantity {
    const char *name, *label;
    const char *member, *divisor; /* of a line; NULL: the name itself; none */
    bool is_linear;               /* from 0, not logarithmic */
} quantities[] = {
    {"update_ratio", "norm of the update / norm of the parameters", "update_norm", "parameter_norm",
     false},
    {"parameter_norm", "L2 norm of the parameters", NULL, NULL, false},
    {"gradient_norm", "L2 norm of the gradients", NULL, NULL, false},
    {"update_norm", "L2 norm of the updates", NULL, NULL, false},
    {"input_rms", "RMS of the residual stream at the layer's entry", NULL, NULL, false},
    {"middle_rms", "RMS of the residual stream between attention and MLP", NULL, NULL, false},
    {"attention_entropy", "mean entropy of attention, in nats", NULL, NULL, true},
    {"head_entropies", "entropy of the attention of each head, in nats", NULL, NULL, true},
    {"dead_units", "dead units of the MLP (never activated), fraction", NULL, NULL, true},
};
#define QUANTITIES (sizeof quantities / sizeof *quantities)

struct cell {
    bool is_set;
    double squares, divisor_squares; /* of the values of its lines */
};

struct map {
    const struct quantity *what;
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

/* Takes the name. */
static int row_of(struct map *m, char *name, const char *subject, int *row, struct dt_error *err)
{
    for (*row = 0; *row < m->row_count && strcmp(m->rows[*row], name) != 0; ++*row)
        ;
    if (*row < m->row_count) {
        free(name);
        return 0;
    }
    if (m->row_count == MOST_ROWS) {
        free(name);
        return dt_fail(err, DT_EINVALID, "%s: more than %d rows cannot be drawn", subject,
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

/* Adds a value, and what it is divided by, to the row of that name, which it takes. */
static int add_value(struct map *m, int64_t step, char *name, double value, double divisor,
                     const char *subject, struct dt_error *err)
{
    int row;
    if (m->step_count == 0 || m->steps[m->step_count - 1] != step)
        begin_step(m, (long)step);
    DT_TRY(row_of(m, name, subject, &row, err));
    struct cell *cell = cell_at(m, m->step_count - 1, row);
    cell->is_set = true;
    cell->squares += value * value;
    cell->divisor_squares += divisor * divisor;
    return 0;
}

static int add_heads(struct map *m, int64_t step, int64_t layer, struct json_object *heads,
                     const char *subject, struct dt_error *err)
{
    for (size_t i = 0; i < json_object_array_length(heads); i++) {
        struct json_object *entropy = json_object_array_get_idx(heads, i);
        char *name = dt_asprintf("layer %ld head %zu", (long)layer, i);
        DT_TRY(add_value(m, step, name, entropy ? json_object_get_double(entropy) : NAN, 1, subject,
                         err));
    }
    return 0;
}

/* A number of a line; NAN for null, which stands for one that was not finite. */
static int get_number(struct json_object *line, const char *name, const char *subject, double *x,
                      struct dt_error *err)
{
    struct json_object *found;
    *x = NAN;
    if (json_object_object_get_ex(line, name, &found) && found == NULL)
        return 0;
    return dt_json_get_real(line, name, subject, x, err);
}

/* A line about a tensor or a layer; one without the member that is drawn is skipped. */
static int add_line(void *context, struct json_object *line, const char *subject,
                    struct dt_error *err)
{
    struct map *m = context;
    const char *member = m->what->member ? m->what->member : m->what->name, *tensor;
    struct json_object *found;
    int64_t step, layer;
    double value, divisor = 1;
    DT_TRY(dt_json_get_int(line, "step", subject, &step, err));
    if (!json_object_object_get_ex(line, member, &found))
        return 0;
    const bool is_layer = json_object_object_get_ex(line, "layer", NULL);
    DT_TRY(is_layer ? dt_json_get_int(line, "layer", subject, &layer, err)
                    : dt_json_get_string(line, "tensor", subject, &tensor, err));
    if (is_layer && json_object_is_type(found, json_type_array))
        return add_heads(m, step, layer, found, subject, err);
    DT_TRY(get_number(line, member, subject, &value, err));
    if (m->what->divisor)
        DT_TRY(get_number(line, m->what->divisor, subject, &divisor, err));
    char *name = is_layer ? dt_asprintf("layer %ld", (long)layer) : row_name(tensor);
    return add_value(m, step, name, value, divisor, subject, err);
}

/* That makes dt-train measure a quantity. */
static const char *setting_of(const struct quantity *what)
{
    return what->is_linear             ? "layer_metrics=attention_entropy,dead_units"
           : strstr(what->name, "rms") ? "layer_metrics=activation_rms"
                                       : "tensor_metrics=true";
}

static int read_map(struct map *m, const char *run, struct dt_error *err)
{
    char *path = dt_path_join(run, "tensors.jsonl");
    int rc = dt_file_probe(path, err);
    if (rc == 0)
        rc = dt_fail(err, DT_EMISSING, "run '%s' has no tensors.jsonl: train with training.%s", run,
                     setting_of(m->what));
    rc = rc < 0 ? rc : dt_json_lines_read(path, add_line, m, err);
    if (rc == 0 && m->step_count == 0)
        rc = dt_fail(err, DT_EMISSING,
                     "%s: has no %s: name another --value, or train with training.%s", path,
                     m->what->name, setting_of(m->what));
    free(path);
    return rc;
}

/* NAN: not measured, or 0 where that has no logarithm. */
static double value_at(const struct map *m, int step, int row)
{
    const struct cell *c = cell_at(m, step, row);
    const double value = sqrt(m->what->divisor ? c->squares / c->divisor_squares : c->squares);
    const bool is_drawn = c->is_set && isfinite(value) && (value > 0 || m->what->is_linear);
    return is_drawn ? value : NAN;
}

/* Of what is drawn; with nothing drawn or a single value still a range. */
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
    *low = m->what->is_linear ? 0 : isfinite(*low) ? *low : 1;
    if (*high <= *low)
        *high = *low > 0 ? 2 * *low : 1;
}

/* Darker is larger. */
static char shade(const struct map *m, double value, double low, double high)
{
    static const char shades[] = ".:-=+*#%@";
    const int last = sizeof shades - 2;
    const double place = m->what->is_linear ? value / high : log(value / low) / log(high / low);
    return isnan(value) ? ' ' : shades[(int)lround(place * last)];
}

/* Its last `width` characters. */
static const char *end_of_name(const char *name, int width)
{
    const char *at = name + strlen(name);
    for (int count = 0; at > name && count < width;)
        count += ((unsigned char)*--at & 0xC0) != 0x80;
    return at;
}

static void write_text(const struct map *m, const char *title, struct dt_buffer *out)
{
    double low, high;
    const int columns = m->step_count < TEXT_COLUMNS ? m->step_count : TEXT_COLUMNS;
    find_range(m, &low, &high);
    if (title)
        dt_buffer_printf(out, "%s\n", title);
    for (int row = 0; row < m->row_count; row++) {
        dt_figure_add_label(out, end_of_name(m->rows[row], 20), 20);
        dt_buffer_add_string(out, " |");
        for (int c = 0; c < columns; c++)
            dt_buffer_add_char(out,
                               shade(m, value_at(m, c * m->step_count / columns, row), low, high));
        dt_buffer_add_string(out, "|\n");
    }
    dt_buffer_printf(out, "%s: %.3g . to %.3g @, %s; steps %ld to %ld\n", m->what->label, low, high,
                     m->what->is_linear ? "linear" : "logarithmic", m->steps[0],
                     m->steps[m->step_count - 1]);
}

/* Cells meet halfway between steps, and end at the first and the last of these. */
static double cell_begin(const struct map *m, int step)
{
    if (m->step_count == 1)
        return (double)m->steps[0] + (step > 0 ? 0.5 : -0.5);
    return step == 0               ? (double)m->steps[0]
           : step == m->step_count ? (double)m->steps[step - 1]
                                   : (double)(m->steps[step - 1] + m->steps[step]) / 2;
}

static void add_cells(const struct map *m, struct dt_buffer *script)
{
    for (int step = 0; step < m->step_count; step++)
        for (int row = 0; row < m->row_count; row++)
            if (!isnan(value_at(m, step, row)))
                dt_buffer_printf(script, "%.12g %.12g %d %.9g\n", cell_begin(m, step),
                                 cell_begin(m, step + 1), row + 1, value_at(m, step, row));
}

static int draw(const struct map *m, enum dt_plot_format format, const char *title,
                struct dt_buffer *out, struct dt_error *err)
{
    struct dt_buffer script = DT_BUFFER_EMPTY;
    double low, high;
    find_range(m, &low, &high);
    dt_gnuplot_set_string(&script, "value_label", m->what->label);
    dt_buffer_printf(&script, "rows = %d\nevery_row = %d\nlow = %.9g\nhigh = %.9g\nlinear = %d\n",
                     m->row_count, (m->row_count + MOST_TICKS - 1) / MOST_TICKS, low, high,
                     m->what->is_linear);
    dt_figure_set_ticks(&script, "row", (const char *const *)m->rows, m->row_count);
    dt_buffer_add_string(&script, "$cells << end_of_data\n");
    add_cells(m, &script);
    dt_buffer_add_string(&script, "end_of_data\n");
    int rc = dt_figure_draw(&(struct dt_figure){format, title, "inside", 1}, &script, out, err);
    dt_buffer_release(&script);
    return rc;
}

static int find_quantity(const char *name, const struct quantity **what, struct dt_error *err)
{
    struct dt_buffer names = DT_BUFFER_EMPTY;
    for (size_t i = 0; i < QUANTITIES; i++) {
        *what = &quantities[i];
        if (name == NULL || strcmp(name, quantities[i].name) == 0) {
            dt_buffer_release(&names);
            return 0;
        }
        dt_buffer_printf(&names, "%s%s",
                         i == 0               ? ""
                         : i + 1 < QUANTITIES ? ", "
                                              : " or ",
                         quantities[i].name);
    }
    int rc =
        dt_fail(err, DT_EINVALID, "'%s' is not measured of layers: choose %s", name, names.data);
    dt_buffer_release(&names);
    return rc;
}

int dt_plot_inside(enum dt_plot_format format, const char *title, const char *run,
                   const char *value, struct dt_buffer *out, struct dt_error *err)
{
    struct map m = {0};
    DT_TRY(find_quantity(value, &m.what, err));
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
