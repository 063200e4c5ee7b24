/* SPDX-License-Identifier: MIT */
/*
 * Runs a command once, and returns its output, exit status and resource usage.
 *
 *     struct dt_child_result r;
 *     DT_TRY(dt_child_run(words, 0, stop, &r, err));
 *     if (r.status == 0)
 *         use(r.output.data, r.wall);
 *     dt_child_release(&r);
 *
 * No shell is involved. The command's stdin is /dev/null. It runs in a new process group, which is
 * ended as a whole: SIGTERM, and SIGKILL after a grace period. If this program is killed, the group
 * is too.
 */
#ifndef DT_EXPERIMENT_CHILD_H
#define DT_EXPERIMENT_CHILD_H

#include <signal.h>

#include "base/buffer.h"
#include "base/error.h"

struct dt_child_result {
    int status;              /* exit status; 128 + signal number, as in a shell */
    double wall;             /* seconds */
    double user, system;     /* processor time with waited-for children, seconds */
    double peak_bytes;       /* peak RSS of the largest of these processes; NAN if not above
                              * this program's */
    double joules;           /* energy of the processor packages meanwhile; NAN if unreadable */
    struct dt_buffer output; /* stdout, the last 64 MiB */
    char complaint[256];     /* last line of stderr, printable, or why it was ended;
                              * may be "" */
};

/* words: NULL-terminated; words[0] is searched on PATH. A command that exceeds limit seconds (0: no
 * limit) is ended with status 124. A nonzero *stop ends it with DT_ESTOP. DT_EMISSING if it cannot
 * be started. */
int dt_child_run(char *const *words, double limit, const volatile sig_atomic_t *stop,
                 struct dt_child_result *result, struct dt_error *err) DT_MUST_CHECK;
void dt_child_release(struct dt_child_result *result);

#endif
