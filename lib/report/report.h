/* SPDX-License-Identifier: MIT */
/*
 * A report of runs of dt-train: what they are and how they differ, their curves with intervals over
 * seeds, final values with paired tests, tensors, evaluations, samples of text, and lineage. Equal
 * runs give equal pages.
 *
 *     struct dt_page page = {.format = DT_PAGE_HTML};
 *     DT_TRY(dt_report(&(struct dt_report_options){.title = "Depth"}, paths, count, &page, err));
 *     ... page.text ...
 *     dt_page_release(&page);
 */
#ifndef DT_REPORT_REPORT_H
#define DT_REPORT_REPORT_H

#include "plot/curves.h"
#include "report/page.h"

struct dt_report_options {
    const char *title; /* NULL: "Report of N runs" */
    enum dt_plot_x x;  /* of the curves */
    bool log_x, log_y; /* of the curve of losses */
    double floor;      /* its horizontal line; NAN: none */
};

/* paths: directories of dt-train, or files of metrics. DT_EFORMAT if one has no finite loss or a
 * damaged lineage, DT_EINVALID if a run is named twice, DT_EMISSING without gnuplot. */
int dt_report(const struct dt_report_options *options, char *const *paths, int count,
              struct dt_page *page, struct dt_error *err) DT_MUST_CHECK;

#endif
