/* SPDX-License-Identifier: MIT */
/*
 * The report of a mode of dt-verify: a line per finding, and the number of those that differ.
 *
 *     struct dt_verify_report report = {.out = &out};
 *     DT_TRY(dt_verify_report_differ(&report, dt_asprintf("%s: is missing", path), err));
 */
#ifndef DT_VERIFY_REPORT_H
#define DT_VERIFY_REPORT_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

struct dt_verify_report {
    struct dt_output *out;  /* borrowed */
    uint64_t agree, differ; /* what was compared, by result */
};

/* Each writes a line and frees it. line: without a line feed. */
int dt_verify_report_say(struct dt_verify_report *r, char *line,
                         struct dt_error *err) DT_MUST_CHECK;
/* The same, and counts a difference. */
int dt_verify_report_differ(struct dt_verify_report *r, char *line,
                            struct dt_error *err) DT_MUST_CHECK;

#endif
