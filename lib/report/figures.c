/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/path.h"
#include "plot/inside.h"
#include "report/report-internal.h"

struct figure {
    const char *name, *caption; /* of the files beside a page; below the figure */
    int curve;                  /* index; -1: the loss */
};

static const struct figure figures[] = {
    {"loss", "Training and validation loss.", -1},
    {"learning-rate", "Learning rate.", DT_REPORTED_CURVE_LR},
    {"gradients", "L2 norm of the gradients before clipping.", DT_REPORTED_CURVE_GRADIENTS},
    {"speed", "Tokens per second, without startup, validation and checkpoints.",
     DT_REPORTED_CURVE_SPEED},
};

static const struct dt_run_metrics *metrics_of(const struct dt_reported_run *run, int curve)
{
    return curve < 0 ? &run->loss : &run->curves[curve];
}

/* The curves of a figure: a mean with its interval of each configuration, and what is not drawn. */
struct means {
    struct dt_run_metrics *runs;
    struct dt_band *bands;
    int drawn;               /* configurations with points; the others have empty curves */
    size_t left_out;         /* steps that the axes cannot show */
    struct dt_buffer absent; /* names of those that have the number, but no step of all runs */
};

static bool have_any(const struct dt_run_metrics *const *runs, int count)
{
    for (int i = 0; i < count; i++)
        if (!dt_run_metrics_is_empty(runs[i]))
            return true;
    return false;
}

/* All configurations keep their places, so that each has one colour in all figures. */
static struct means average(const struct dt_reported *r, const struct dt_plot *plot, int curve)
{
    const struct dt_run_metrics **runs = dt_alloc((size_t)r->count, sizeof *runs);
    const size_t count = (size_t)r->configuration_count;
    struct means means = {.absent = DT_BUFFER_EMPTY};
    means.runs = dt_alloc(count, sizeof *means.runs);
    means.bands = dt_alloc(count, sizeof *means.bands);
    for (int c = 0; c < r->configuration_count; c++) {
        const struct dt_configuration *k = &r->configurations[c];
        size_t hidden;
        for (int i = 0; i < k->count; i++)
            runs[i] = metrics_of(&r->runs[k->runs[i]], curve);
        hidden = dt_plot_average(plot, runs, k->count, k->label, &means.runs[c], &means.bands[c]);
        means.left_out += hidden;
        means.drawn += !dt_run_metrics_is_empty(&means.runs[c]);
        if (dt_run_metrics_is_empty(&means.runs[c]) && hidden == 0 && have_any(runs, k->count))
            dt_buffer_printf(&means.absent, "%s%s", means.absent.size > 0 ? "; " : "", k->label);
    }
    free(runs);
    return means;
}

static void release_means(struct means *means, int count)
{
    for (int c = 0; c < count; c++) {
        dt_run_metrics_release(&means->runs[c]);
        dt_band_release(&means->bands[c]);
    }
    free(means->runs);
    free(means->bands);
    dt_buffer_release(&means->absent);
}

static int draw(struct dt_page *page, const struct dt_plot *plot, const struct figure *figure,
                const struct dt_run_metrics *means, int count, struct dt_error *err)
{
    struct dt_buffer drawing = DT_BUFFER_EMPTY;
    int rc = dt_plot_loss(plot, means, count, &drawing, err);
    if (rc == 0)
        rc = dt_page_figure(page, figure->name, figure->caption, &drawing, err);
    dt_buffer_release(&drawing);
    return rc;
}

static void add_notes(struct dt_page *page, const struct figure *figure, const struct means *means)
{
    const bool there = means->drawn > 0; /* with its caption above */
    if (means->left_out > 0)
        dt_page_paragraph(page, "%zu steps are not drawn: not above 0, on a logarithmic axis.",
                          means->left_out);
    if (means->absent.size > 0)
        dt_page_paragraph(page, "%s%sNot drawn, since no step has this number in all runs: %s.",
                          there ? "" : figure->caption, there ? "" : " ", means->absent.data);
    if (means->drawn > DT_MOST_NAMED)
        dt_page_paragraph(page, "More than %d configurations are drawn without their names.",
                          DT_MOST_NAMED);
}

static int add_curve(struct dt_page *page, const struct dt_reported *r,
                     const struct dt_report_options *o, const struct figure *figure,
                     struct dt_error *err)
{
    const bool loss = figure->curve < 0;
    struct dt_plot plot = {.format = dt_page_figure_format(page),
                           .x = o->x,
                           .log_x = o->log_x && loss,
                           .log_y = o->log_y && loss,
                           .floor = loss ? o->floor : NAN,
                           .member = loss ? NULL : r->members[figure->curve]};
    struct means means = average(r, &plot, figure->curve);
    plot.bands = means.bands;
    int rc =
        means.drawn > 0 ? draw(page, &plot, figure, means.runs, r->configuration_count, err) : 0;
    if (rc == 0)
        add_notes(page, figure, &means);
    release_means(&means, r->configuration_count);
    return rc;
}

/* A validation beside that of the loss. */
static int add_validation(struct dt_page *page, const struct dt_reported *r,
                          const struct dt_report_options *options, int curve, struct dt_error *err)
{
    char *name = dt_asprintf("validation-%d", curve - DT_REPORTED_CURVES + 1),
         *words = dt_figure_label(r->members[curve]),
         *caption = dt_asprintf("%c%s.", toupper((unsigned char)words[0]), words + 1);
    int rc = add_curve(page, r, options, &(struct figure){name, caption, curve}, err);
    free(caption);
    free(words);
    free(name);
    return rc;
}

int dt_report_curves(struct dt_page *page, const struct dt_reported *r,
                     const struct dt_report_options *options, struct dt_error *err)
{
    dt_page_heading(page, "Curves");
    dt_page_paragraph(page,
                      "Of a configuration with several seeds: the mean over them, at the steps "
                      "that all have, with its 95%% interval by Student's t. Training losses, "
                      "norms and speeds are running means over 1/50 of a run, as much before each "
                      "step as after it, and less near both ends; of fewer than 100 steps they "
                      "are each step.");
    DT_TRY(add_curve(page, r, options, &figures[0], err));
    for (size_t i = DT_REPORTED_CURVES; i < r->curve_count; i++)
        DT_TRY(add_validation(page, r, options, (int)i, err));
    for (size_t i = 1; i < sizeof figures / sizeof *figures; i++)
        DT_TRY(add_curve(page, r, options, &figures[i], err));
    return 0;
}

static int add_tensors(struct dt_page *page, const struct dt_reported *r, int configuration,
                       const struct dt_buffer *drawing, struct dt_error *err)
{
    char *name = dt_asprintf("tensors-%d", configuration + 1),
         *caption = dt_asprintf("%s: L2 norm of the update over that of the parameters, of run "
                                "'%s'.",
                                r->configurations[configuration].label,
                                dt_reported_first(r, configuration)->name);
    int rc = dt_page_figure(page, name, caption, drawing, err);
    free(caption);
    free(name);
    return rc;
}

/* A heat map of the first run of each configuration that recorded its tensors. */
int dt_report_tensors(struct dt_page *page, const struct dt_reported *r, struct dt_error *err)
{
    bool begun = false;
    int rc = 0;
    for (int c = 0; c < r->configuration_count && rc == 0; c++) {
        const struct dt_reported_run *run = dt_reported_first(r, c);
        struct dt_buffer drawing = DT_BUFFER_EMPTY;
        char *file = dt_path_join(run->path, "tensors.jsonl");
        bool there = dt_file_is_directory(run->path) && dt_file_is_regular(file);
        free(file);
        if (!there)
            continue;
        rc = dt_plot_inside(dt_page_figure_format(page), NULL, run->path, NULL, &drawing, err);
        if (rc == 0 && !begun)
            dt_page_heading(page, "Tensors");
        begun = begun || rc == 0;
        if (rc == 0)
            rc = add_tensors(page, r, c, &drawing, err);
        else if (rc == DT_EMISSING) /* lines of layers alone; gnuplot has drawn the curves */
            rc = 0;
        dt_buffer_release(&drawing);
    }
    return rc;
}
