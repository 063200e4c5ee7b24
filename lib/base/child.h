/* SPDX-License-Identifier: MIT */
/*
 * Another program, found on PATH, or a function in a separate process, whose standard output is
 * read.
 *
 *     const char *const arguments[] = {"duckdb", "-c", sql, NULL};
 *     DT_TRY(dt_child_start(&child, arguments, fd, err));
 *     ... read child.output to its end
 *     DT_TRY(dt_child_finish(&child, err));
 */
#ifndef DT_BASE_CHILD_H
#define DT_BASE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct dt_child {
    const char *name; /* borrowed; NULL: never started */
    pid_t pid;        /* 0: none */
    int output;       /* the end of a pipe; closed by finish and stop unless it is -1 */
    int log;          /* its standard error, a file; -1: that of this program */
};

/* Starts arguments[0], whose standard input is the descriptor input, or empty if that is -1.
 * quiet: what it writes to standard error is kept for the error of finish. DT_EMISSING if it is not
 * on PATH. */
int dt_child_start(struct dt_child *child, const char *const *arguments, int input, bool quiet,
                   struct dt_error *err) DT_MUST_CHECK;
/* Calls work in a copy of this process, which ends with the status that it returns: a crash in code
 * of others ends the copy alone. What it writes to standard error is kept for the error of finish.
 * name: in errors; borrowed. This program may have other threads only if work needs none of what
 * they hold. */
int dt_child_call(struct dt_child *child, const char *name, int (*work)(void *context),
                  void *context, struct dt_error *err) DT_MUST_CHECK;
/* Waits for its end. DT_EIO "'NAME' failed: ..." unless its exit status is 0, with the first line
 * that it wrote to standard error. */
int dt_child_finish(struct dt_child *child, struct dt_error *err) DT_MUST_CHECK;
/* Ends it, if it runs; fine on an all-zero or finished one. */
void dt_child_stop(struct dt_child *child);

#endif
