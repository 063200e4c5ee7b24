/* SPDX-License-Identifier: MIT */
#include "io/document-options.h"

#include <inttypes.h>
#include <string.h>

#define QUARANTINE "quarantine="

void dt_reading_options_check(const struct dt_reading_options *o,
                              struct dt_documents_options *documents)
{
    const char *policy = o->on_error ? o->on_error : "stop";
    const char *file = NULL;
    if (strncmp(policy, QUARANTINE, strlen(QUARANTINE)) == 0)
        file = policy + strlen(QUARANTINE);
    bool skip = file || strcmp(policy, "skip") == 0;
    if (!skip && strcmp(policy, "stop") != 0)
        dt_program_usage("--on-error takes stop, skip or quarantine=FILE, not '%s'", policy);
    if (file && (*file == '\0' || strcmp(file, "-") == 0))
        dt_program_usage("--on-error quarantine=FILE needs the name of a file");
    if (!skip && o->max_errors >= 0)
        dt_program_usage("--max-errors goes with --on-error skip or quarantine=FILE");
    documents->bad_lines = (struct dt_bad_line_policy){
        .skip = skip,
        .most = o->max_errors >= 0 ? (uint64_t)o->max_errors : UINT64_MAX,
        .quarantine = file};
    struct dt_error err;
    if (o->part && dt_document_part_parse(o->part, &documents->part, &err) < 0)
        dt_program_usage("--part: %s", err.text);
    documents->partial = o->partial;
    documents->most = o->max_document ? (size_t)o->max_document : DT_DOCUMENT_BYTES;
}

void dt_reading_options_report(const struct dt_documents *documents)
{
    if (documents == NULL)
        return;
    const struct dt_documents_losses losses = dt_documents_losses(documents);
    if (!losses.ended)
        return;
    if (losses.skipped == 1)
        dt_program_warn("1 line skipped: %s", losses.first_skipped);
    if (losses.skipped > 1)
        dt_program_warn("%" PRIu64 " lines skipped, the first of them %s", losses.skipped,
                        losses.first_skipped);
    if (losses.first_partial)
        dt_program_warn("taken in part: %s", losses.first_partial);
    if (losses.missing_separator)
        dt_program_warn("separator '%s' not found: each input is one document",
                        losses.missing_separator);
}
