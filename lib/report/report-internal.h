/* SPDX-License-Identifier: MIT */
/* The sections of a report; each appends itself to the page. */
#ifndef DT_REPORT_REPORT_INTERNAL_H
#define DT_REPORT_REPORT_INTERNAL_H

#include "report/report.h"
#include "report/runs.h"

/* tables.c */
void dt_report_runs(struct dt_page *page, const struct dt_reported *r);
void dt_report_settings(struct dt_page *page, const struct dt_reported *r);
void dt_report_lineage(struct dt_page *page, const struct dt_reported *r);
/* values.c: final values and their tests */
void dt_report_values(struct dt_page *page, const struct dt_reported *r);
/* figures.c */
int dt_report_curves(struct dt_page *page, const struct dt_reported *r,
                     const struct dt_report_options *options, struct dt_error *err) DT_MUST_CHECK;
int dt_report_tensors(struct dt_page *page, const struct dt_reported *r,
                      struct dt_error *err) DT_MUST_CHECK;
/* run-files.c: evaluations and samples of text that other programs wrote into the runs */
int dt_report_evaluations(struct dt_page *page, const struct dt_reported *r,
                          struct dt_error *err) DT_MUST_CHECK;
int dt_report_samples(struct dt_page *page, const struct dt_reported *r,
                      struct dt_error *err) DT_MUST_CHECK;

#endif
