/* SPDX-License-Identifier: MIT */
/* dt-plot: draws curves, charts and timelines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/path.h"
#include "base/program.h"
#include "io/lineage.h"
#include "options/completion.h"
#include "options/options.h"
#include "plot/charts.h"
#include "plot/curves.h"
#include "plot/inside.h"
#include "plot/timeline.h"
#include "report/report.h"

static const char *const x_names[] = {"step", "tokens", "time", NULL};
static const char *const log_names[] = {"x", "y", "xy", NULL};

static struct {
    const char *output, *title, *axis;
    int x, log;
    double floor, target, peak, bandwidth;
    struct dt_string_list values;
} opt = {.output = "-", .log = -1, .floor = NAN, .target = NAN};

static const struct dt_option options[] = {
    {"output", 'o', DT_OPTION_STRING, &opt.output, "FILE",
     "write FILE.svg, .pdf, .eps, .png or .txt; report: .html or .md (default: text on stdout)",
     .writes = ""},
    {"title", 0, DT_OPTION_STRING, &opt.title, "TEXT", "write TEXT above the plot"},
    {"x", 0, DT_OPTION_CHOICE, &opt.x, "AXIS", "draw over step, tokens or time (default step)",
     .choices = x_names},
    {"log", 0, DT_OPTION_CHOICE, &opt.log, "AXES", "logarithmic axes: x, y or xy",
     .choices = log_names},
    {"floor", 0, DT_OPTION_REAL, &opt.floor, "LOSS",
     "draw a horizontal line at LOSS nats per token"},
    {"target", 0, DT_OPTION_REAL, &opt.target, "LOSS", "target: the target loss"},
    {"axis", 'a', DT_OPTION_STRING, &opt.axis, "NAME", "scaling: the x axis"},
    {"value", 'v', DT_OPTION_LIST, &opt.values, "NAME",
     "scaling, bars, points and inside: the value to draw"},
    {"peak", 0, DT_OPTION_REAL, &opt.peak, "GFLOPS", "roofline: peak GFLOP/s", .min = 1e-9,
     .max = 1e12},
    {"bandwidth", 0, DT_OPTION_REAL, &opt.bandwidth, "GBS", "roofline: peak GB/s", .min = 1e-9,
     .max = 1e12},
    {NULL}};

static const struct dt_use uses[] = {
    {"WHAT", "RUN ...", NULL, "output title x log floor"},
    {"target", "RUN ...", "target", "output title x"},
    {"scaling", "ROWS", NULL, "output title axis value"},
    {"bars", "ROWS", NULL, "output title value log"},
    {"points", "ROWS", NULL, "output title value log"},
    {"roofline", "ROWS", NULL, "output title peak bandwidth"},
    {"timeline", "TRACE", NULL, "output title"},
    {"difference", "PLANNED MEASURED", NULL, "output"},
    {"inside", "RUN", NULL, "output title value"},
    {"report", "RUN ...", NULL, "output title x log floor"},
    {NULL},
};

/* Members of dt-metrics(5) that are often drawn. */
static const char *const curve_names[] = {"loss",
                                          "lr",
                                          "grad_norm",
                                          "tokens_per_second",
                                          "samples_per_second",
                                          "mfu",
                                          "resident_memory",
                                          "peak_memory",
                                          "ranks",
                                          "waited_seconds",
                                          "loader_seconds",
                                          "logit_rms",
                                          "logit_max",
                                          "gradient_signal",
                                          "gradient_noise",
                                          NULL};

static void add_curves(struct dt_buffer *words)
{
    for (int i = 0; curve_names[i]; i++)
        dt_completion_add(words, curve_names[i]);
}

static const struct dt_command command = {
    "dt-plot", "draw curves of runs, results of matrices, and traces; report on runs",
    "",        options,
    uses,      add_curves};

static enum dt_plot_format format_of(const char *path)
{
    static const char *const suffixes[] = {".txt", ".svg", ".png", ".pdf", ".eps"};
    const char *dot = strrchr(dt_path_base(path), '.');
    if (strcmp(path, "-") == 0)
        return DT_PLOT_TEXT;
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcmp(dot, suffixes[i]) == 0)
            return (enum dt_plot_format)i;
    dt_program_usage("'%s' must end in .svg, .pdf, .eps, .png or .txt", path);
}

static void warn_of_losses_left_out(const struct dt_run_metrics *runs, int count)
{
    size_t points = 0;
    for (int r = 0; r < count; r++)
        points += runs[r].not_finite;
    if (points > 0)
        dt_program_warn("%zu point%s not drawn: no finite number up to 1e300", points,
                        dt_plural(points));
}

static bool is_log_x(void)
{
    return opt.log == 0 || opt.log == 2;
}

static bool is_log_y(void)
{
    return opt.log >= 1;
}

static int draw(const char *member, struct dt_run_metrics *runs, int count, struct dt_buffer *out,
                struct dt_error *err)
{
    struct dt_plot plot = {.format = format_of(opt.output),
                           .x = (enum dt_plot_x)opt.x,
                           .log_x = is_log_x(),
                           .log_y = is_log_y(),
                           .floor = opt.floor,
                           .title = opt.title,
                           .member = strcmp(member, "loss") == 0 ? NULL : member};
    size_t dropped = dt_plot_drop_below_zero(&plot, runs, count);
    if (dropped > 0)
        dt_program_warn("%zu point%s not drawn: not above 0, on a logarithmic axis", dropped,
                        dt_plural(dropped));
    if (count > DT_MOST_NAMED)
        dt_program_warn("%d runs are drawn without their names: more than %d", count,
                        DT_MOST_NAMED);
    return dt_plot_loss(&plot, runs, count, out, err);
}

/* Runs with equal names are labelled by their paths. */
static void tell_apart(char **names, char *const *paths, int count)
{
    bool *twice = dt_alloc((size_t)count, sizeof *twice);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            twice[i] |= i != j && strcmp(names[i], names[j]) == 0;
    for (int i = 0; i < count; i++)
        if (twice[i]) {
            free(names[i]);
            names[i] = dt_strdup(paths[i]);
        }
    free(twice);
}

static void tell_runs_apart(struct dt_run_metrics *runs, char *const *paths, int count)
{
    char **names = dt_alloc((size_t)count, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = runs[i].name;
    tell_apart(names, paths, count);
    for (int i = 0; i < count; i++)
        runs[i].name = names[i];
    free(names);
}

static int curves(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    int read = 0, rc = 0;
    struct dt_run_metrics *runs = dt_alloc((size_t)count, sizeof *runs);
    while (read < count - 1 && rc == 0) {
        rc = dt_run_metrics_read_member(&runs[read], operands[1 + read], operands[0], err);
        read += rc == 0;
    }
    if (rc == 0) {
        warn_of_losses_left_out(runs, count - 1);
        tell_runs_apart(runs, operands + 1, count - 1);
    }
    if (rc == 0)
        rc = draw(operands[0], runs, count - 1, out, err);
    while (read > 0)
        dt_run_metrics_release(&runs[--read]);
    free(runs);
    return rc;
}

/* --- charts --------------------------------------------------------------------------------- */

static struct dt_chart chart(void)
{
    return (struct dt_chart){.format = format_of(opt.output),
                             .title = opt.title,
                             .axis = opt.axis,
                             .values = opt.values.items,
                             .value_count = opt.values.count,
                             .log_x = is_log_x(),
                             .log_y = is_log_y(),
                             .peak = opt.peak,
                             .bandwidth = opt.bandwidth};
}

static int chart_of_rows(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    struct dt_results results;
    const struct dt_chart c = chart();
    const char *kind = operands[0];
    (void)count;
    const char *dot = strrchr(dt_path_base(operands[1]), '.');
    DT_TRY(dot && strcmp(dot, ".json") == 0 ? dt_results_read_report(&results, operands[1], err)
                                            : dt_results_read(&results, operands[1], err));
    int rc = strcmp(kind, "scaling") == 0  ? dt_plot_scaling(&c, &results, out, err)
             : strcmp(kind, "bars") == 0   ? dt_plot_bars(&c, &results, out, err)
             : strcmp(kind, "points") == 0 ? dt_plot_points(&c, &results, out, err)
                                           : dt_plot_roofline(&c, &results, out, err);
    dt_results_release(&results);
    return rc;
}

static int timeline(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    (void)count;
    return dt_plot_timeline(format_of(opt.output), opt.title, operands[1], out, err);
}

static int difference(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    (void)count;
    return dt_plot_difference(operands[1], operands[2], out, err);
}

static int inside(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    (void)count;
    const char *value = opt.values.count > 0 ? opt.values.items[0] : NULL;
    return dt_plot_inside(format_of(opt.output), opt.title, operands[1], value, out, err);
}

/* *position: where the curve first reaches the target; NAN if never. */
static int reached(const struct dt_curve *curve, const char *run, double *position,
                   struct dt_error *err)
{
    static const char *const members[] = {"step", "tokens", "time"};
    *position = NAN;
    for (size_t i = 0; i < curve->count; i++) {
        const struct dt_metric *m = &curve->items[i];
        if (m->loss > opt.target)
            continue;
        *position = opt.x == DT_PLOT_TIME ? m->time : opt.x == DT_PLOT_TOKENS ? m->tokens : m->step;
        if (isfinite(*position))
            return 0;
        return dt_fail(err, DT_EMISSING, "run '%s' lacks '%s' at step %.0f", run, members[opt.x],
                       m->step);
    }
    return 0;
}

/* Uses the validation loss, or without validation the smoothed training loss. */
static int time_to_target(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    static const char *const units[] = {"steps", "tokens", "seconds"};
    int runs = count - 1, rc = 0, names_read = 0;
    char **names = dt_alloc((size_t)runs, sizeof *names);
    double *values = dt_alloc((size_t)runs, sizeof *values);
    for (; names_read < runs && rc == 0; names_read += rc == 0) {
        struct dt_run_metrics m;
        if ((rc = dt_run_metrics_read(&m, operands[1 + names_read], err)) < 0)
            break;
        struct dt_curve smooth = dt_curve_smooth(&m.train);
        smooth.count -= dt_curve_reach(smooth.count); /* the last means are over few points */
        warn_of_losses_left_out(&m, 1);
        rc = reached(m.valid.count > 0 ? &m.valid : &smooth, m.name, &values[names_read], err);
        names[names_read] = rc == 0 ? dt_strdup(m.name) : NULL;
        free(smooth.items);
        dt_run_metrics_release(&m);
    }
    char *label = dt_asprintf("%s to loss %g", units[opt.x], opt.target);
    const struct dt_chart c = chart();
    if (rc == 0)
        tell_apart(names, operands + 1, runs);
    if (rc == 0)
        rc = dt_plot_named_bars(&c, label, (const char *const *)names, values, runs, out, err);
    for (int i = 0; i < names_read; i++)
        free(names[i]);
    free(label);
    free(names);
    free(values);
    return rc;
}

/* The page is for readers: HTML or Markdown, by its name. */
static enum dt_page_format page_format(const char *path)
{
    const char *dot = strrchr(dt_path_base(path), '.');
    if (strcmp(path, "-") == 0 || (dot && strcmp(dot, ".md") == 0))
        return DT_PAGE_MARKDOWN;
    if (dot && strcmp(dot, ".html") == 0)
        return DT_PAGE_HTML;
    dt_program_usage("'%s' must end in .html or .md", path);
}

static int report(char **operands, int count, struct dt_buffer *out, struct dt_error *err)
{
    const struct dt_report_options wanted = {.title = opt.title,
                                             .x = (enum dt_plot_x)opt.x,
                                             .log_x = is_log_x(),
                                             .log_y = is_log_y(),
                                             .floor = opt.floor};
    struct dt_page page = {.format = page_format(opt.output),
                           .file = strcmp(opt.output, "-") == 0 ? NULL : opt.output};
    int rc = dt_report(&wanted, operands + 1, count - 1, &page, err);
    if (rc == 0)
        dt_buffer_append(out, page.text.data, page.text.size);
    dt_page_release(&page);
    return rc;
}

/* In the order of uses[]. */
static int (*const drawings[])(char **operands, int count, struct dt_buffer *out,
                               struct dt_error *err) = {
    curves,        time_to_target, chart_of_rows, chart_of_rows, chart_of_rows,
    chart_of_rows, timeline,       difference,    inside,        report,
};
_Static_assert(sizeof drawings / sizeof *drawings + 1 == sizeof uses / sizeof *uses, "one each");

/* Names other than those of uses[] are members of the metrics, drawn by the first use. */
static int find_use(const char *name)
{
    for (int i = 1; uses[i].name; i++)
        if (strcmp(name, uses[i].name) == 0)
            return i;
    return 0;
}

static void check_usage(char **operands, int count)
{
    if (count < 1)
        dt_program_usage(
            "the first operand is what to plot: loss, lr, scaling, bars, timeline, ...");
    struct dt_use use = uses[find_use(operands[0])];
    use.name = operands[0];
    dt_options_check_use(&command, &use);
    if (count < 2)
        dt_program_usage("'%s' needs a file: dt-plot loss RUN draws the loss of a run",
                         operands[0]);
    if (strcmp(use.name, "difference") == 0 &&
        (count != 3 || format_of(opt.output) != DT_PLOT_TEXT))
        dt_program_usage("difference compares two traces, planned and measured, as text");
    if (count > 2 && strchr(use.operands, ' ') == NULL)
        dt_program_usage("%s draws one file", operands[0]);
    if (opt.log >= 1 && opt.floor <= 0)
        dt_program_usage("--floor must be above 0 on a logarithmic axis");
    if (strcmp(use.name, "bars") == 0 && (opt.log == 0 || opt.log == 2))
        dt_program_usage("bars have a logarithmic axis y alone");
    if (strcmp(use.name, "bars") == 0 && opt.log == 1 && opt.values.count > 1)
        dt_program_usage("stacked bars have no logarithmic axis: give one --value");
    if (strcmp(use.name, "points") == 0 && opt.values.count != 2)
        dt_program_usage("points need two values: --value X --value Y");
    if ((strcmp(use.name, "scaling") == 0 || strcmp(use.name, "inside") == 0) &&
        opt.values.count > 1)
        dt_program_usage("%s draws one --value", use.name);
}

/* The curve or drawing that was meant by a name that metrics lack; NULL: none. */
static const char *find_meant(const char *name)
{
    const char *drawn[sizeof uses / sizeof *uses],
        *near = dt_program_did_you_mean(name, curve_names);
    int count = 0;
    for (int i = 1; uses[i].name; i++)
        drawn[count++] = uses[i].name;
    drawn[count] = NULL;
    near = near ? near : dt_program_did_you_mean(name, drawn);
    return near && strcmp(near, name) != 0 ? near : NULL;
}

/* The runs' metrics, from which a report is made. */
static int add_inputs(struct dt_lineage *lineage, char **runs, int count, struct dt_error *err)
{
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++) {
        char *file = dt_file_is_directory(runs[i]) ? dt_path_join(runs[i], "metrics.jsonl")
                                                   : dt_strdup(runs[i]);
        rc = dt_lineage_add_path(lineage, file, err);
        free(file);
    }
    return rc;
}

static int write_drawing(char **operands, int count, struct dt_output *out,
                         struct dt_lineage *lineage, struct dt_error *err)
{
    struct dt_buffer drawing = DT_BUFFER_EMPTY;
    int use = find_use(operands[0]), rc = drawings[use](operands, count, &drawing, err);
    const char *meant = rc == DT_EFORMAT && use == 0 ? find_meant(operands[0]) : NULL;
    if (meant) {
        const struct dt_error earlier = *err;
        dt_fail(err, rc, "%s: did you mean 'dt-plot %s'?", earlier.text, meant);
    }
    if (rc == 0)
        rc = dt_output_write(out, drawing.data, drawing.size, err);
    if (rc == 0 && lineage)
        rc = add_inputs(lineage, operands + 1, count - 1, err);
    dt_buffer_release(&drawing);
    return rc;
}

int main(int argc, char **argv)
{
    int first = dt_options_parse(&command, argc, argv), count = argc - first;
    struct dt_output out;
    struct dt_error err;
    check_usage(argv + first, count);
    bool is_report = strcmp(argv[first], "report") == 0;
    if (is_report)
        page_format(opt.output);
    else
        format_of(opt.output);
    int rc = dt_output_open(&out, opt.output, &err);
    if (rc < 0)
        return dt_program_report(&err);
    struct dt_lineage *lineage = is_report ? dt_lineage_for(opt.output) : NULL;
    rc = write_drawing(argv + first, count, &out, lineage, &err);
    if (rc == 0)
        rc = dt_lineage_commit(lineage, &out, &err);
    if (rc < 0)
        dt_output_abandon(&out);
    dt_lineage_free(lineage);
    return rc < 0 ? dt_program_report(&err) : 0;
}
