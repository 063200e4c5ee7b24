/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <stdlib.h>

#include "base/version.h"
#include "report/report-internal.h"

static void begin(struct dt_page *page, const struct dt_report_options *options,
                  const struct dt_reported *r)
{
    char *title = options->title
                      ? dt_strdup(options->title)
                      : dt_asprintf("Report of %d run%s", r->count, dt_plural((uint64_t)r->count));
    dt_page_begin(page, title);
    dt_page_paragraph(
        page,
        "%d run%s of dt-train in %d configuration%s; runs of one configuration differ "
        "in their seeds alone. Made by dt-plot %s from the files named below.",
        r->count, dt_plural((uint64_t)r->count), r->configuration_count,
        dt_plural((uint64_t)r->configuration_count), dt_version);
    free(title);
}

static int add_sections(struct dt_page *page, const struct dt_report_options *options,
                        const struct dt_reported *r, struct dt_error *err)
{
    dt_report_runs(page, r);
    dt_report_settings(page, r);
    DT_TRY(dt_report_curves(page, r, options, err));
    dt_report_values(page, r);
    DT_TRY(dt_report_evaluations(page, r, err));
    DT_TRY(dt_report_tensors(page, r, err));
    DT_TRY(dt_report_samples(page, r, err));
    dt_report_lineage(page, r);
    return 0;
}

int dt_report(const struct dt_report_options *options, char *const *paths, int count,
              struct dt_page *page, struct dt_error *err)
{
    struct dt_reported r;
    DT_TRY(dt_reported_read(&r, paths, count, err));
    begin(page, options, &r);
    int rc = add_sections(page, options, &r, err);
    dt_page_end(page);
    dt_reported_release(&r);
    return rc;
}
