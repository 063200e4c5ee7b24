/* SPDX-License-Identifier: MIT */
/*
 * One command run once: what it printed, how it ended, what it used.
 *
 *     struct dt_child_result r;
 *     DT_TRY(dt_child_run(words, 0, stop, &r, err));
 *     if (r.status == 0)
 *         use(r.output.data, r.wall);
 *     dt_child_release(&r);
 *
 * No shell is in between. The command has no input, and a process group of its own:
 * when it is to stop, all that it started is told to, and made to after some seconds.
 */
#ifndef DT_EXPERIMENT_CHILD_H
#define DT_EXPERIMENT_CHILD_H

#include <signal.h>

#include "base/buffer.h"
#include "base/error.h"

struct dt_child_result {
    int status;              /* of exit; 128 + the signal's number, as a shell counts */
    double wall;             /* seconds */
    double user, system;     /* processor time of it and what it waited for, seconds */
    double peak_bytes;       /* resident memory of the largest process among them; NAN if no
                              * more than that of this program */
    double joules;           /* that the processors' packages took meanwhile; NAN if unreadable */
    struct dt_buffer output; /* on stdout, up to 64 MB of it */
    char complaint[256];     /* the last line on stderr, or why it was ended; "" if none */
};

/* words ends with NULL; words[0] is looked for on PATH. A command that takes longer than
 * limit seconds (0: any time) is ended, with status 124. *stop that is not 0 ends it:
 * DT_ESTOP. DT_EMISSING if it cannot be started. */
int dt_child_run(char *const *words, double limit, const volatile sig_atomic_t *stop,
                 struct dt_child_result *result, struct dt_error *err) DT_MUST_CHECK;
void dt_child_release(struct dt_child_result *result);

#endif
