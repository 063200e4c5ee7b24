/* SPDX-License-Identifier: MIT */
/*
 * Follows a run of dt-train from beside it, to its end, and passes on what it reports.
 *
 *     struct dt_track_options o = {.run = "run", .tensorboard = "run/tensorboard",
 *                                  .locks = "/proc/locks", .interval = 1,
 *                                  .stop = dt_stop_watch()};
 *     DT_TRY(dt_track(&o, &report, err));
 *
 * The trainer is not touched: its files are read, its lock is looked at in a table of locks.
 * What is remembered of a run is RUN/track/state.json: when it began, a key, and its
 * number at each server.
 */
#ifndef DT_TRACK_TRACK_H
#define DT_TRACK_TRACK_H

#include <signal.h>

#include "track/run-watch.h"
#include "track/server.h"

struct dt_track_options {
    const char *run;                             /* the directory */
    const char *tensorboard;                     /* where event files go; NULL for none */
    const struct dt_server *mlflow;              /* NULL for none */
    const char *experiment;                      /* NULL: the project that the run names, or "dt" */
    const char *const *texts, *const *artifacts; /* files, to pass on at the end */
    int text_count, artifact_count;
    double interval;   /* seconds between looks; what a server is first left alone */
    double patience;   /* seconds that a run may take to appear, or to go on */
    double give_up;    /* seconds without an answer, after the run, until it is an error */
    bool once;         /* pass on what is there, and end */
    const char *locks; /* "/proc/locks", or a stand-in */
    const volatile sig_atomic_t *stop;
    void (*say)(const char *text); /* servers that go and come; may be NULL */
};

struct dt_track_report {
    enum dt_run_state state;
    long last_step;
    char *event_file, *mlflow_run; /* NULL for none; owned by the caller */
};

/* Returns when the run has ended and all is passed on, or *stop is set. DT_EMISSING if
 * there is no run; DT_EIO if a server stays away: another call goes on. */
int dt_track(const struct dt_track_options *options, struct dt_track_report *report,
             struct dt_error *err) DT_MUST_CHECK;

#endif
