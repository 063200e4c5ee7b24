/* SPDX-License-Identifier: MIT */
/*
 * Policy for input lines that are not documents: stop, or skip and count them, optionally copying
 * each to a quarantine file with its position and reason. Inputs that cannot be read or
 * decompressed, and truncated streams, always stop the program, except for files that should be
 * one page of HTML.
 */
#ifndef DT_DOCUMENT_ERRORS_H
#define DT_DOCUMENT_ERRORS_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"

/* All zero: stop at the first bad line. */
struct dt_bad_line_policy {
    bool skip;
    bool offered;           /* the program has --on-error, which an error names */
    uint64_t most;          /* limit of skipped lines; one more is an error */
    const char *quarantine; /* a file for skipped lines, or NULL; borrowed */
};

struct dt_bad_lines {
    struct dt_bad_line_policy policy;
    struct dt_output out; /* the quarantine file */
    uint64_t count;
    char *first;      /* "FILE:LINE: reason" of the first */
    uint64_t files;   /* skipped as a whole */
    char *first_file; /* "FILE: reason" of the first */
};

/* *b is released after a failure. */
int dt_bad_lines_open(struct dt_bad_lines *b, const struct dt_bad_line_policy *policy,
                      struct dt_error *err) DT_MUST_CHECK;
/* Applies the policy to a bad line; *err holds the reason. Returns 0 if it is skipped, else the
 * error, prefixed with "FILE:LINE: ". */
int dt_bad_lines_take(struct dt_bad_lines *b, const char *file, uint64_t number,
                      const struct dt_buffer *line, struct dt_error *err) DT_MUST_CHECK;
/* The same of a file that is skipped as a whole; *err holds "FILE: reason". A quarantine file gets
 * an empty line for its bytes. */
int dt_bad_lines_take_file(struct dt_bad_lines *b, const char *file,
                           struct dt_error *err) DT_MUST_CHECK;
/* Commits the quarantine file; further calls do nothing. */
int dt_bad_lines_finish(struct dt_bad_lines *b, struct dt_error *err) DT_MUST_CHECK;
void dt_bad_lines_release(struct dt_bad_lines *b);

#endif
