/* SPDX-License-Identifier: MIT */
/*
 * Follows a run of dt-train to its end, and sends its metrics to TensorBoard and MLflow.
 *
 *     struct dt_track_options o = {.run = "run", .tensorboard = "run/tensorboard",
 *                                  .locks = "/proc/locks", .interval = 1,
 *                                  .stop = dt_stop_watch()};
 *     DT_TRY(dt_track(&o, &report, err));
 *
 * The trainer is not affected: its files are read, and its lock is found in /proc/locks. The state
 * of tracking is RUN/track/state.json: start time, key, and the run id at each server.
 */
#ifndef DT_TRACK_TRACK_H
#define DT_TRACK_TRACK_H

#include <signal.h>

#include "track/run-watch.h"
#include "track/server.h"

struct dt_track_options {
    const char *run;                             /* directory of the run */
    const char *tensorboard;                     /* directory of event files, or NULL */
    const struct dt_server *mlflow;              /* or NULL */
    const char *experiment;                      /* NULL: the run's project, or "dt" */
    const char *const *texts, *const *artifacts; /* files to send at the end */
    int text_count, artifact_count;
    double interval;   /* seconds between polls; first retry after it */
    double patience;   /* seconds to wait for a run to start or resume */
    double give_up;    /* after the run: seconds to retry an unreachable server */
    bool once;         /* send what the run holds now, without retries */
    const char *locks; /* "/proc/locks", or a file of its format */
    const volatile sig_atomic_t *stop;
    void (*say)(const char *text); /* reports unreachable servers; may be NULL */
};

struct dt_track_report {
    enum dt_run_state state;
    long last_step;
    char *event_file, *mlflow_run; /* or NULL; owned by the caller */
};

/* Returns when the run has ended and everything is sent, or *stop is set. DT_EMISSING without a
 * run; DT_EIO if a server stays unreachable: another call continues. */
int dt_track(const struct dt_track_options *options, struct dt_track_report *report,
             struct dt_error *err) DT_MUST_CHECK;

#endif
