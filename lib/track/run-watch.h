/* SPDX-License-Identifier: MIT */
/*
 * Observes a run of dt-train from outside: its state, and its settings. It takes no locks, writes
 * nothing, and does not wait for the trainer.
 */
#ifndef DT_TRACK_RUN_WATCH_H
#define DT_TRACK_RUN_WATCH_H

#include "json/json.h"
#include <stdbool.h>

#include "base/error.h"

enum dt_run_state {
    DT_RUN_RUNNING,  /* a program holds the lock of the directory */
    DT_RUN_FINISHED, /* the last checkpoint is of the last step, or of early stopping */
    DT_RUN_STOPPED,  /* the last checkpoint is as new as the metrics; steps remain */
    DT_RUN_BROKEN    /* the metrics are newer than the last checkpoint */
};

/* last_step: of the metrics. locks: "/proc/locks", or a file of its format. If locks is unreadable,
 * an unfinished run counts as running. */
enum dt_run_state dt_run_watch_state(const char *run, long last_step, const char *locks);

/* The settings of the run's last checkpoint, {"training.max_steps": "100", ...}; NULL without a
 * checkpoint. Owned by the caller. */
struct json_object *dt_run_watch_settings(const char *run);

/* The same for those who must know: a file that exists and cannot be read is an error. *settings:
 * NULL without a checkpoint. */
int dt_run_watch_read_state(const char *run, long last_step, const char *locks,
                            enum dt_run_state *state, struct dt_error *err) DT_MUST_CHECK;
int dt_run_watch_read_settings(const char *run, struct json_object **settings,
                               struct dt_error *err) DT_MUST_CHECK;

#endif
