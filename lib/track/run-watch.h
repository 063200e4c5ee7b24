/* SPDX-License-Identifier: MIT */
/*
 * Looks at a run of dt-train from outside: whether it goes on, how it ended, what it
 * was told. Nothing here locks, writes or waits for anything of the trainer.
 */
#ifndef DT_TRACK_RUN_WATCH_H
#define DT_TRACK_RUN_WATCH_H

#include "json/json.h"
#include <stdbool.h>

#include "base/error.h"

enum dt_run_state {
    DT_RUN_GOES_ON,  /* a program holds the lock of the directory */
    DT_RUN_FINISHED, /* its last checkpoint is that of its last step, or of an early stop */
    DT_RUN_STOPPED,  /* the last checkpoint has all that the metrics tell; more steps are due */
    DT_RUN_BROKEN    /* the metrics go on behind the last checkpoint */
};

/* last_step: of the metrics. locks: "/proc/locks", or a stand-in. Where locks cannot be
 * read, a run that has not finished goes on. */
enum dt_run_state dt_run_watch_look(const char *run, long last_step, const char *locks);

/* The settings of the run, {"training.max_steps": "100", ...}, of its last checkpoint;
 * NULL before there is one. Owned by the caller. */
struct json_object *dt_run_watch_settings(const char *run);

#endif
