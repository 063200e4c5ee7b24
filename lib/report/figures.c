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

/* A mean with its interval of each configuration whose runs all have the curve. Returns their
 * number. left_out: steps that the axes cannot show. */
static int average(const struct dt_reported *r, const struct dt_plot *plot, int curve,
                   struct dt_run_metrics *means, struct dt_band *bands, size_t *left_out)
{
    const struct dt_run_metrics **runs = dt_alloc((size_t)r->count, sizeof *runs);
    int used = 0;
    for (int c = 0; c < r->configuration_count; c++) {
        const struct dt_configuration *k = &r->configurations[c];
        for (int i = 0; i < k->count; i++)
            runs[i] = metrics_of(&r->runs[k->runs[i]], curve);
        *left_out += dt_plot_average(plot, runs, k->count, k->label, &means[used], &bands[used]);
        if (means[used].train.count + means[used].valid.count > 0) {
            used++;
            continue;
        }
        dt_run_metrics_release(&means[used]);
        dt_band_release(&bands[used]);
    }
    free(runs);
    return used;
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

static void add_notes(struct dt_page *page, size_t left_out, int count)
{
    if (left_out > 0)
        dt_page_paragraph(page, "%zu steps are not drawn: not above 0, on a logarithmic axis.",
                          left_out);
    if (count > DT_MOST_NAMED)
        dt_page_paragraph(page, "More than %d configurations are drawn without their names.",
                          DT_MOST_NAMED);
}

static int add_curve(struct dt_page *page, const struct dt_reported *r,
                     const struct dt_report_options *o, const struct figure *figure,
                     struct dt_error *err)
{
    const size_t most = (size_t)r->configuration_count;
    struct dt_run_metrics *means = dt_alloc(most, sizeof *means);
    struct dt_band *bands = dt_alloc(most, sizeof *bands);
    const bool loss = figure->curve < 0;
    const struct dt_plot plot = {.format = dt_page_figure_format(page),
                                 .x = o->x,
                                 .log_x = o->log_x && loss,
                                 .log_y = o->log_y && loss,
                                 .floor = loss ? o->floor : NAN,
                                 .member = loss ? NULL : r->members[figure->curve],
                                 .bands = bands};
    size_t left_out = 0;
    int count = average(r, &plot, figure->curve, means, bands, &left_out), rc = 0;
    if (count > 0)
        rc = draw(page, &plot, figure, means, count, err);
    if (rc == 0)
        add_notes(page, left_out, count);
    for (int i = 0; i < count; i++) {
        dt_run_metrics_release(&means[i]);
        dt_band_release(&bands[i]);
    }
    free(means);
    free(bands);
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
