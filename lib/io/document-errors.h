/* SPDX-License-Identifier: MIT */
/*
 * Lines that are not documents: whether one ends the work, or is skipped and counted, and kept
 * in a quarantine file with its place and reason. Only what concerns one line is of this kind;
 * inputs that cannot be read or decompressed, and streams that were cut, end the work.
 */
#ifndef DT_IO_DOCUMENT_ERRORS_H
#define DT_IO_DOCUMENT_ERRORS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

/* All zero: the first bad line ends the work. */
struct dt_bad_line_policy {
    bool skip;
    uint64_t most;          /* that may be skipped; one more ends the work */
    const char *quarantine; /* a file for skipped lines, or NULL; borrowed */
};

struct dt_bad_lines {
    struct dt_bad_line_policy policy;
    struct dt_output out; /* the quarantine file */
    uint64_t count;
    char *first; /* "FILE:LINE: reason" of the first */
};

/* *b is released after a failure. */
int dt_bad_lines_open(struct dt_bad_lines *b, const struct dt_bad_line_policy *policy,
                      struct dt_error *err) DT_MUST_CHECK;
/* Judges a line, of which *err holds the reason: 0 if it is skipped, or the error, which then
 * begins with "FILE:LINE: ". */
int dt_bad_lines_take(struct dt_bad_lines *b, const char *file, uint64_t number,
                      const struct dt_buffer *line, struct dt_error *err) DT_MUST_CHECK;
/* Gives the quarantine file its name; further calls do nothing. */
int dt_bad_lines_finish(struct dt_bad_lines *b, struct dt_error *err) DT_MUST_CHECK;
void dt_bad_lines_release(struct dt_bad_lines *b);

#endif
