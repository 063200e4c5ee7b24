/* SPDX-License-Identifier: MIT */
/* Which evaluation texts were found in the documents, as JSON Lines: dt-clean(1) has the members.
 */
#ifndef DT_CLEAN_CONTAMINATION_REPORT_H
#define DT_CLEAN_CONTAMINATION_REPORT_H

#include "base/error.h"
#include "base/file.h"
#include "dedup/contamination.h"

/* A line for each text that was found, in the order of the files. The set was read with by_item;
 * out is committed by the caller. */
int dt_contamination_report_write(const struct dt_contamination *c, struct dt_output *out,
                                  struct dt_error *err) DT_MUST_CHECK;

#endif
