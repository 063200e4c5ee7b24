/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/program.h"
#include "eval/plot.h"

static const char *const x_names[] = {"step", "tokens", "time", NULL};
static const char *const log_names[] = {"x", "y", "xy", NULL};

static struct {
    const char *output, *title;
    int x, log;
    double floor;
} opt = {.output = "-", .log = -1, .floor = NAN};

static const struct dt_option options[] = {
    {"output", 'o', DT_OPT_STRING, &opt.output, "FILE",
     "write FILE.svg, FILE.png or FILE.txt (default: text on stdout)"},
    {"title", 0, DT_OPT_STRING, &opt.title, "TEXT", "write TEXT above the plot"},
    {"x", 0, DT_OPT_CHOICE, &opt.x, "AXIS", "draw over step, tokens or time (default step)",
     .choices = x_names},
    {"log", 0, DT_OPT_CHOICE, &opt.log, "AXES", "logarithmic axes: x, y or xy",
     .choices = log_names},
    {"floor", 0, DT_OPT_REAL, &opt.floor, "LOSS", "draw a level line at LOSS nats a token"},
    {NULL}};

static const struct dt_command command = {"dt-plot", "draw loss curves from metrics",
                                          "WHAT RUN ...", options};

static enum dt_plot_format format_of(const char *path)
{
    const char *dot = strrchr(dt_path_base(path), '.');
    if (strcmp(path, "-") == 0 || (dot && strcmp(dot, ".txt") == 0))
        return DT_PLOT_TEXT;
    if (dot && strcmp(dot, ".svg") == 0)
        return DT_PLOT_SVG;
    if (dot && strcmp(dot, ".png") == 0)
        return DT_PLOT_PNG;
    dt_usage("the name '%s' ends in none of .svg, .png and .txt", path);
}

static void warn_of_losses_left_out(const struct dt_run_metrics *runs, int count)
{
    size_t points = 0;
    for (int r = 0; r < count; r++)
        points += runs[r].not_finite;
    if (points > 0)
        dt_warn("%zu point%s not drawn: a loss that is not a finite number", points,
                points == 1 ? "" : "s");
}

static const char *what; /* a member of the metrics */

static int draw(const struct dt_run_metrics *runs, int count, struct dt_error *err)
{
    struct dt_plot plot = {.format = format_of(opt.output),
                           .x = (enum dt_plot_x)opt.x,
                           .log_x = opt.log == 0 || opt.log == 2,
                           .log_y = opt.log >= 1,
                           .floor = opt.floor,
                           .title = opt.title,
                           .member = strcmp(what, "loss") == 0 ? NULL : what};
    struct dt_output out;
    DT_TRY(dt_output_open(&out, opt.output, err));
    int rc = dt_plot_loss(&plot, runs, count, &out, err);
    if (rc == 0)
        rc = dt_output_commit(&out, err);
    if (rc < 0)
        dt_output_abandon(&out);
    return rc;
}

int main(int argc, char **argv)
{
    int first = dt_parse_options(&command, argc, argv), count = argc - first - 1, read = 0, rc = 0;
    if (count < 0)
        dt_usage("the first operand is what to plot: loss, lr, grad_norm, ...");
    if (count == 0)
        dt_usage("plot %s of which RUN?", argv[first]);
    what = argv[first];
    format_of(opt.output);
    struct dt_error err;
    struct dt_run_metrics *runs = dt_alloc((size_t)count, sizeof *runs);
    while (read < count && rc == 0) {
        rc = dt_run_metrics_read_member(&runs[read], argv[first + 1 + read], what, &err);
        read += rc == 0;
    }
    if (rc == 0)
        warn_of_losses_left_out(runs, count);
    if (rc == 0)
        rc = draw(runs, count, &err);
    while (read > 0)
        dt_run_metrics_release(&runs[--read]);
    free(runs);
    return rc < 0 ? dt_report(&err) : 0;
}
